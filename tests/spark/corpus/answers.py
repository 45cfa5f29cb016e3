"""The stored files of the corpus, each with its one right answer.

`answers.jsonl` has a line for each file: how it is read, the types, the rows (each value as Python
prints it, null where there is none), and the rows that are rejected (line, column, a part of the
reason); or a part of the reason why the file is refused. The files of `csv` and `json` were written
for this corpus, those of `public` come from others, as `public/LICENCES.md` says.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa

Answer = dict[str, Any]
CORPUS = Path(__file__).parent
ANSWER_LISTS = sorted(path.parent.name for path in CORPUS.glob("*/answers.jsonl"))


def answers_in(folder: str) -> list[Answer]:
    """The answers to the files of a folder of the corpus, which they then name."""
    with (CORPUS / folder / "answers.jsonl").open(encoding="utf-8") as lines:
        return [{"folder": folder, **json.loads(line)} for line in lines]


EVERY = [answer for folder in ANSWER_LISTS for answer in answers_in(folder)]
ANSWERS = [answer for answer in EVERY if answer["file"].endswith(".csv")]
"""Those to CSV files."""
JSON_ANSWERS = [answer for answer in EVERY if answer["file"].endswith(".jsonl")]
"""Those to files of JSON lines."""
TEXT_ANSWERS = [answer for answer in EVERY if not answer["file"].endswith(".parquet")]
PARQUET_ANSWERS = [answer for answer in EVERY if answer["file"].endswith(".parquet")]
"""Those to Parquet files that are stored; the others are in `parquet_files`."""


def stored(answer: Answer) -> Path:
    """Return where the file of an answer lies; one that is not UTF-8 ends in `.bin`."""
    path: Path = CORPUS / answer["folder"] / answer["file"]
    return path if path.exists() else path.with_suffix(".bin")


def copy_of(answer: Answer, folder: Path) -> Path:
    """The file of an answer, by its name in the folder."""
    return Path(shutil.copy(stored(answer), folder / Path(answer["file"]).name))


def printed(batch: pa.RecordBatch | pa.Table) -> list[list[str | None]]:
    """The rows, each value as Python prints it."""
    return [
        [None if value is None else str(value) for value in row.values()]
        for row in batch.to_pylist()
    ]
