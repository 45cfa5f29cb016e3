"""The CSV files of the corpus, each with its one right answer.

`csv/answers.jsonl` has a line for each file: how it is read, the inferred types, the rows (each
value as Python prints it, null where there is none), and the rows that are rejected (line, column,
a part of the reason); or a part of the reason why the file is refused. All files were written for
this corpus.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa

FILES = Path(__file__).parent / "csv"
ANSWERS: list[dict[str, Any]] = [
    json.loads(line) for line in (FILES / "answers.jsonl").read_text("utf-8").splitlines()
]


def copy_of(answer: dict[str, Any], folder: Path) -> Path:
    """The file of an answer, by its name in the folder; one that is not UTF-8 ends in `.bin`."""
    stored = FILES / str(answer["file"])
    copy = folder / stored.name
    shutil.copy(stored if stored.exists() else stored.with_suffix(".bin"), copy)
    return copy


def printed(batch: pa.RecordBatch) -> list[list[str | None]]:
    return [
        [None if value is None else str(value) for value in row.values()]
        for row in batch.to_pylist()
    ]
