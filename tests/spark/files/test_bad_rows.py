"""A row that does not fit is named by line and column, or kept while all others are read."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epochgate.spark.files import BadFile, BadRow, FileEnumeration, SplitPosition, SplitReader
from epochgate.spark.files.rejected import (
    REJECTED_SCHEMA,
    RejectedRow,
    rejected_batch,
)
from tests.spark.files.reading import rejected, rows, write

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("price", pa.decimal128(10, 2)),
        pa.field("at", pa.timestamp("us", tz="UTC")),
    ]
)
HEAD = "id,name,price,at\n"


def refusal(source: Path, **options: Any) -> str:
    with pytest.raises(BadRow) as caught:
        rows(source, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("line", "place", "reason"),
    [
        ("x2,Bob,1,", "line 3, column 'id'", "'x2' is no BIGINT"),
        (",Bob,1,", "line 3, column 'id'", "there is no value, and the column is NOT NULL"),
        ("2,Bob,1.555,", "line 3, column 'price'", "would cause data loss (the column is DECIMAL"),
        ("2,Bob,1,yesterday", "line 3, column 'at'", "'yesterday' is no TIMESTAMP"),
        ("2,Bob", "line 3", "2 fields, expected 4 (id, name, price, at)"),
        ("2,Bob,1,,5", "line 3", "5 fields, expected 4"),
        ("2,M\udcfcller,1,", "line 3", "line 3 is not utf-8 (byte 0xFC)"),
    ],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_a_bad_row_of_csv_is_named_by_line_and_column(
    tmp_path: Path, line: str, place: str, reason: str, compressed: bool
) -> None:
    data = (
        f"{HEAD}1,Ada,0.50,2024-01-01 10:00:00\n{line}\n3,Cyd,2,2024-01-01T10:00:00+02:00\n"
    ).encode("utf-8", "surrogateescape")
    path = tmp_path / ("a.csv.gz" if compressed else "a.csv")
    path.write_bytes(gzip.compress(data) if compressed else data)
    told = refusal(tmp_path, schema=SCHEMA)
    for part in (str(path), f"at {place}: ", reason, "--on-bad-row reject", "--on-bad-file skip"):
        assert part in told
    (one,) = rejected(tmp_path, schema=SCHEMA)
    column = place.partition("'")[2].rstrip("'") or None
    assert (one.file, one.line, one.column_name) == (str(path), 3, column)
    assert reason in one.reason
    assert one.raw == line.replace("\udcfc", "\\xfc")
    read = rows(tmp_path, schema=SCHEMA, on_bad_row="reject")
    assert [(row["id"], str(row["at"])) for row in read] == [
        (1, "2024-01-01 10:00:00+00:00"),
        (3, "2024-01-01 08:00:00+00:00"),
    ]


@pytest.mark.parametrize(
    ("line", "column", "reason"),
    [
        ('{"id": "x"}', "id", '"x" is no BIGINT'),
        ('{"id": null}', "id", "NOT NULL"),
        ('{"name": "x"}', "id", "NOT NULL"),
        ('{"id": 1', None, "it is no JSON: a ',' or '}' is missing at character 9"),
        ('{"id": 1, "other": 2}', None, "--schema-evolution add"),
        ("no json", None, "no json is no object"),
    ],
)
def test_a_bad_row_of_json_lines_is_named_by_line_and_column(
    tmp_path: Path, line: str, column: str | None, reason: str
) -> None:
    write(tmp_path / "a.jsonl", '{"id": 1, "price": 0.5}\n\n' + line + '\n{"id": 3}\n')
    (one,) = rejected(tmp_path, schema=SCHEMA)
    assert (one.line, one.column_name, one.raw) == (3, column, line)
    assert reason in one.reason
    assert [row["id"] for row in rows(tmp_path, schema=SCHEMA, on_bad_row="reject")] == [1, 3]
    assert "at line 3" in refusal(tmp_path, schema=SCHEMA)


def test_a_row_of_parquet_without_a_value_that_it_needs_is_named_by_its_row(
    tmp_path: Path,
) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
    table = pa.table(
        {"id": pa.array([0, 1, 2, None, 4, None, 6, 7], pa.int32()), "name": ["x"] * 8}
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=3)
    told = refusal(tmp_path, schema=schema)
    assert "row group 1, row 0, column 'id'" in told
    found = rejected(tmp_path, schema=schema)
    assert [(one.line, one.column_name, one.raw) for one in found] == [
        (4, "id", '{"id": null, "name": "x"}'),
        (6, "id", '{"id": null, "name": "x"}'),
    ]
    read = rows(tmp_path, schema=schema, on_bad_row="reject", split_bytes_target=1)
    assert [row["id"] for row in read] == [0, 1, 2, 4, 6, 7]


def spoiled(seed: int, kind: str) -> tuple[bytes, list[int], list[int]]:
    """A file of 60 rows of which some are bad: bytes, the good numbers, and the bad lines."""
    chance = random.Random(seed)
    lines = ["number,text"] if kind == "csv" else []
    good, bad = [], []
    for number in range(60):
        if chance.random() < chance.choice([0.05, 0.6]):
            bad.append(len(lines) + 1)
            lines.append(chance.choice(["x,y", "1,2,3", "only"]) if kind == "csv" else "{")
        else:
            good.append(number)
            text = "t" * chance.randrange(20)
            lines.append(f"{number},{text}" if kind == "csv" else f'{{"number": {number}}}')
    return "\r\n".join(lines).encode(), good, bad


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_lines_are_right_and_each_bad_row_comes_once_from_any_split_block_and_position(
    tmp_path: Path, seed: int, kind: str
) -> None:
    data, good, bad = spoiled(seed, kind)
    path = write(tmp_path / f"a.{kind}", data)
    lines = data.decode().split("\r\n")
    schema = pa.schema([("number", pa.int64()), ("text", pa.string())])
    if kind == "jsonl":
        schema = schema.remove(1)
    for target, block in ((1 << 20, 1 << 20), (100, 30), (40, 1 << 20)):
        enumeration = FileEnumeration(
            path, schema=schema, split_bytes_target=target, on_bad_row="reject"
        )
        splits = enumeration.discover()
        assert (len(splits) > 1) == (target < 1000)
        assert enumeration.layout is not None
        reader = SplitReader(
            enumeration.layout, batch_rows=4, block_bytes=block, on_bad_row="reject"
        )
        again = SplitReader(enumeration.layout, batch_rows=7, block_bytes=25, on_bad_row="reject")
        numbers: list[int] = []
        found: list[RejectedRow] = []
        for split in splits:
            reads = list(reader.read(split))
            for number, one in enumerate(reads):
                numbers += one.batch.column(0).to_pylist()
                found += one.rejected
                position = SplitPosition.from_list(one.position.to_list())
                rest = [row for later in again.read(split, position) for row in later.rejected]
                assert rest == [row for later in reads[number + 1 :] for row in later.rejected]
        assert numbers == good
        assert [one.line for one in found] == bad
        assert all(one.raw == lines[one.line - 1] for one in found)


def test_a_file_whose_first_rows_are_bad_is_read_from_the_first_good_one(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "id,name\nragged\nragged,2,3\n3,Cyd\n")
    write(tmp_path / "b.csv", "id,name\nx\n")
    assert rows(tmp_path, on_bad_row="reject") == [{"id": 3, "name": "Cyd"}]
    assert [(Path(one.file).name, one.line) for one in rejected(tmp_path)] == [
        ("a.csv", 2),
        ("a.csv", 3),
        ("b.csv", 2),
    ]
    write(tmp_path / "j" / "a.jsonl", b'no\n{"id": "\xfc"}\n{"id": 3}\n')
    assert rows(tmp_path / "j", on_bad_row="reject") == [{"id": 3}]
    assert [one.line for one in rejected(tmp_path / "j")] == [1, 2]


def test_a_file_of_bad_rows_alone_is_rejected_row_by_row_or_as_a_file(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "id,name\nx\ny\n")
    assert [one.line for one in rejected(tmp_path)] == [2, 3]
    write(tmp_path / "b" / "a.jsonl", "no\nno\n")
    with pytest.raises(BadFile, match="no line is a record; of the first, no is no object"):
        rejected(tmp_path / "b")


def test_rejected_rows_are_a_table_of_five_columns() -> None:
    one = RejectedRow("/in/a.csv", 3, None, "why", "raw")
    assert rejected_batch([one]).to_pylist() == [
        {"file": "/in/a.csv", "line": 3, "column_name": None, "reason": "why", "raw": "raw"}
    ]
    assert rejected_batch([]).schema == REJECTED_SCHEMA
