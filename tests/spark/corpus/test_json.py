"""Each JSON lines file of the corpus has one right answer, whatever the size of blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from epochgate.spark.files import BadFile
from epochgate.spark.files.ddl import parse_schema
from tests.spark.corpus.answers import JSON_ANSWERS, copy_of
from tests.spark.corpus.test_csv import require_answer
from tests.spark.files.reading import rows


@pytest.mark.parametrize("answer", JSON_ANSWERS, ids=lambda one: one["file"])
@pytest.mark.parametrize("target", [1 << 20, 7])
def test_a_file_has_one_answer_at_every_block_size(
    tmp_path: Path, answer: dict[str, Any], target: int
) -> None:
    require_answer(tmp_path, answer, target)


@pytest.mark.parametrize(
    "answer", [one for one in JSON_ANSWERS if "rejected" in one], ids=lambda one: one["file"]
)
def test_unless_rows_are_rejected_a_file_is_bad_at_the_first_bad_one(
    tmp_path: Path, answer: dict[str, Any]
) -> None:
    copy_of(answer, tmp_path)
    options = dict(answer.get("options", {}))
    if "schema" in options:
        options["schema"] = parse_schema(options["schema"])
    (line, column, reason), *_ = answer["rejected"]
    with pytest.raises(BadFile) as caught:
        rows(tmp_path, **options)
    told = str(caught.value)
    assert f"line {line}" in told
    assert reason in told
    assert column is None or f"column {column!r}" in told
