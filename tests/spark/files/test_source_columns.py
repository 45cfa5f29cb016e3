"""Columns that say where a row comes from: right in each format, wherever reading goes on."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epochgate.spark.files import BadFile, FileEnumeration, SourceLayout, SplitReader
from epochgate.spark.files.asked import ReadingChanged
from epochgate.spark.files.source_columns import (
    FACTS,
    SourceColumnInFile,
    SourceColumnUnusable,
    parse_added,
)
from epochgate.spark.files.split import SplitPosition
from tests.spark.files.reading import rows, write

ALL = parse_added(["from=file.path", "file.name", "file.size", "file.modified", "n=file.row"])
BLOCKS: dict[str, Any] = {"split_bytes_target": 40, "block_bytes": 30}


def texts(folder: Path, kind: str) -> list[int]:
    """A file with the numbers 0 to 19, of which those that 5 divides are no rows of it."""
    if kind == "csv":
        lines = ["x", *("bad,row" if n % 5 == 0 else str(n) for n in range(20))]
    else:
        lines = ["[]" if n % 5 == 0 else json.dumps({"x": n}) for n in range(20)]
    write(folder / f"a.{kind}", "\n".join(lines) + "\n")
    return [n for n in range(20) if n % 5]


def test_the_facts_of_a_file(tmp_path: Path) -> None:
    path = write(tmp_path / "in" / "a b.csv", "x\n1\n2\n")
    (first, second) = rows(tmp_path / "in", added=ALL)
    assert first == {
        "x": 1,
        "from": str(path),
        "file_name": "a b.csv",
        "file_size": 6,
        "file_modified": datetime.fromtimestamp(path.stat().st_mtime_ns // 1000 / 1e6, UTC),
        "n": 1,
    }
    assert second["n"] == 2
    assert len(ALL) == len(FACTS)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_rows_are_counted_with_those_that_are_rejected(tmp_path: Path, kind: str) -> None:
    expected = texts(tmp_path / "in", kind)
    found = rows(tmp_path / "in", added=ALL, on_bad_row="reject", **BLOCKS)
    assert [(row["x"], row["n"]) for row in found] == [(n, n + 1) for n in expected]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_rows_keep_their_numbers_wherever_reading_goes_on(tmp_path: Path, kind: str) -> None:
    expected = texts(tmp_path / "in", kind)
    enumeration = FileEnumeration(tmp_path / "in", added=ALL, on_bad_row="reject")
    (split,) = enumeration.discover()
    layout = SourceLayout.from_bytes(enumeration.layout_of(split).to_bytes())
    reader = SplitReader(layout, batch_rows=3, block_bytes=40, on_bad_row="reject")
    for read in list(reader.read(split)):
        position = SplitPosition.from_list(read.position.to_list())
        other = SplitReader(layout, batch_rows=2, block_bytes=25, on_bad_row="reject")
        rest = [row for one in other.read(split, position) for row in one.batch.to_pylist()]
        assert [(row["x"], row["n"]) for row in rest] == [
            (n, n + 1) for n in expected if n in expected[position.rows :]
        ]


def test_rows_of_parquet_are_counted_over_splits_and_rejected_ones(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    table = pa.table({"x": [None if n % 5 == 0 else n for n in range(20)]})
    pq.write_table(table, tmp_path / "in" / "a.parquet", row_group_size=6)
    schema = pa.schema([pa.field("x", pa.int64(), nullable=False)])
    options: dict[str, Any] = {"schema": schema, "on_bad_row": "reject", "split_bytes_target": 1}
    found = rows(tmp_path / "in", added=parse_added(["n=file.row"]), **options)
    assert [(row["x"], row["n"]) for row in found] == [(n, n + 1) for n in range(20) if n % 5]


def test_a_text_file_is_cut_unless_its_rows_are_counted(tmp_path: Path) -> None:
    texts(tmp_path / "in", "jsonl")
    shares = []
    for added in (["file.path"], ["file.row"]):
        enumeration = FileEnumeration(
            tmp_path / "in", added=parse_added(added), split_bytes_target=40, on_bad_row="reject"
        )
        shares.append(len(enumeration.discover()))
    assert shares[0] > 1 == shares[1]


def test_added_columns_stay_beside_those_that_are_chosen(tmp_path: Path) -> None:
    write(tmp_path / "in" / "k=7" / "a.csv", "x,y\n1,2\n")
    (row,) = rows(tmp_path / "in", added=parse_added(["file.name"]), projection=["y", "k"])
    assert list(row.items()) == [("y", 2), ("k", 7), ("file_name", "a.csv")]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_column_of_the_file_is_not_hidden(tmp_path: Path, name: str) -> None:
    write(tmp_path / "in" / name, "From\n1\n" if name == "a.csv" else '{"From": 1}\n')
    with pytest.raises(SourceColumnInFile, match="one would hide the other"):
        rows(tmp_path / "in", added=parse_added(["from=file.path"]))


def test_a_field_that_comes_late_is_not_hidden(tmp_path: Path) -> None:
    write(tmp_path / "in" / "a.jsonl", '{"x": 1}\n' * 9 + '{"x": 1, "from": 2}\n')
    added = parse_added(["from=file.path"])
    with pytest.raises(BadFile, match="one would hide the other"):
        rows(tmp_path / "in", added=added, evolution="add", sample_bytes_max=30)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("file.paht", "there is no fact 'file.paht'"),
        ("=file.path", "the column has no name"),
        ("a=file.name,A=file.path", "the name 'A' is given twice"),
        ("checkpoint.id", "A Parquet target tells it by its directories"),
    ],
)
def test_a_column_that_cannot_be_added(text: str, why: str) -> None:
    with pytest.raises(SourceColumnUnusable, match=why):
        parse_added(text.split(","))


def test_a_later_start_adds_the_same_columns(tmp_path: Path) -> None:
    write(tmp_path / "in" / "a.csv", "x\n1\n")
    first = FileEnumeration(tmp_path / "in")
    first.discover()
    other = FileEnumeration(tmp_path / "in", added=ALL)
    with pytest.raises(ReadingChanged, match="--add-column"):
        other.restore(first.snapshot())
    may = FileEnumeration(tmp_path / "in", added=ALL, evolution="add")
    may.restore(first.snapshot())
    write(tmp_path / "in" / "b.csv", "x\n2\n")
    (split,) = may.discover()
    (read,) = SplitReader(may.layout_of(split)).read(split)
    assert read.batch.column("file_name").to_pylist() == ["b.csv"]


def test_a_layout_of_the_release_before_adds_nothing() -> None:
    layout = SourceLayout("csv", pa.schema([("x", pa.int64())]))
    assert SourceLayout.from_bytes(layout.to_bytes()) == layout
