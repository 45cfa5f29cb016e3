"""Each CSV file of the corpus has one right answer, whatever the size of blocks and splits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from epochgate.errors import EpochgateError
from epochgate.spark.files import FileEnumeration, SplitReader
from epochgate.spark.files.ddl import parse_schema
from epochgate.spark.files.dialect import Dialect
from tests.spark.corpus.answers import (
    ANSWER_LISTS,
    ANSWERS,
    CORPUS,
    EVERY,
    JSON_ANSWERS,
    copy_of,
    printed,
)

EACH_SIZE_TO = 60
"""A longer file is read in blocks of 1 to 60 bytes, and as a whole."""
SPLITS_MAX = 20
EACH_OF_SPLITS = 7
"""Of a file that is cut into splits, `make test` tries each seventh size of blocks."""


def read(source: Path, target: int, block_bytes: list[int], **options: Any) -> list[Any]:
    """For each size of blocks: types, rows, rejected rows."""
    given = dict(options)
    encoding = given.pop("encoding", "utf-8")
    null = given.pop("null", None)
    schema = given.pop("schema", None)
    dialect = Dialect(**given, null=None if null is None else tuple(null))
    enumeration = FileEnumeration(
        source,
        schema=None if schema is None else parse_schema(schema),
        dialect=dialect,
        encoding=encoding,
        on_bad_row="reject",
        split_bytes_target=target,
    )
    splits = enumeration.discover()
    layout = enumeration.layout
    types = None if layout is None else [str(field.type) for field in layout.schema]
    found = []
    for size in block_bytes:
        rows: list[list[str | None]] = []
        rejected = []
        for split in splits:
            reader = SplitReader(
                enumeration.layout_of(split),
                block_bytes=size,
                on_bad_row="reject",
                encoding=encoding,
            )
            for one in reader.read(split):
                rows += printed(one.batch)
                rejected += [(bad.line, bad.column_name, bad.reason) for bad in one.rejected]
        found.append((types, rows, rejected))
    return found


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda one: one["file"])
@pytest.mark.parametrize("target", [1 << 20, 7])
def test_a_file_has_one_answer_at_every_block_size(
    tmp_path: Path, answer: dict[str, Any], target: int
) -> None:
    require_answer(tmp_path, answer, target)


@pytest.mark.deep
@pytest.mark.parametrize(
    "answer", [*ANSWERS, *JSON_ANSWERS], ids=lambda one: f"{one['folder']}/{one['file']}"
)
def test_so_has_a_file_that_is_cut_into_splits(tmp_path: Path, answer: dict[str, Any]) -> None:
    require_answer(tmp_path, answer, 7, each=1)


def require_answer(
    tmp_path: Path, answer: dict[str, Any], target: int, each: int = EACH_OF_SPLITS
) -> None:
    """Read the file of an answer in blocks of each size, and splits of a target of bytes; of a file
    that is cut, in blocks of each such size.
    """
    source = copy_of(answer, tmp_path)
    options, size = answer.get("options", {}), source.stat().st_size
    sizes = [*range(1, min(size, EACH_SIZE_TO) + 1), size, 1 << 20]
    if target < size:
        target, sizes = max(target, size // SPLITS_MAX), [*sizes[::each], 1 << 20]
    if "refused" in answer:
        for size in sizes:
            with pytest.raises(EpochgateError) as caught:
                read(source, target, [size], **options)
            assert answer["refused"] in str(caught.value)
        return
    for block_bytes, (types, rows, rejected) in zip(
        sizes, read(source, target, sizes, **options), strict=True
    ):
        assert (block_bytes, types) == (block_bytes, answer["types"])
        assert (block_bytes, rows) == (block_bytes, answer["rows"])
        expected = answer.get("rejected", [])
        assert [one[:2] for one in rejected] == [tuple(one[:2]) for one in expected], block_bytes
        for (_, _, reason), (_, _, told) in zip(rejected, expected, strict=True):
            assert told in reason


def test_the_answers_are_those_of_the_files() -> None:
    names = [f"{answer['folder']}/{answer['file']}" for answer in EVERY]
    stored = [
        str(path.relative_to(CORPUS).with_suffix(_ending(path)))
        for folder in ANSWER_LISTS
        for path in (CORPUS / folder).rglob("*.*")
        if path.name != "answers.jsonl" and path.suffix != ".md"
    ]
    assert sorted(names) == sorted(stored)


def _ending(path: Path) -> str:
    if path.suffix != ".bin":
        return path.suffix
    return ".jsonl" if path.parent.name == "json" else ".csv"
