"""Rescued values: the rest of their row stays in place, and their text is that of the file."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from epochgate.spark.files import FileEnumeration, SplitReader
from epochgate.spark.files.asked import ReadingChanged
from epochgate.spark.files.ddl import parse_schema
from epochgate.spark.files.source_columns import SourceColumnInFile, parse_added
from tests.spark.files.reading import FIRST_ALONE, batches, rows, write

SCHEMA = parse_schema("id BIGINT, amount DECIMAL(10,2), at TIMESTAMP, name STRING")


def rescued(row: dict[str, Any], path: Path) -> dict[str, Any]:
    """The rescued values of a row, numbers as they stand there."""
    if row["_rescued"] is None:
        return {}
    found: dict[str, Any] = json.loads(row["_rescued"], parse_float=Decimal)
    assert found.pop("_file_path") == str(path)
    return found


def read(source: Path, **options: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows, and the texts of those that were rejected."""
    found = batches(source, on_bad_row="rescue", **options)
    return (
        [row for one in found for row in one.batch.to_pylist()],
        [bad.raw for one in found for bad in one.rejected],
    )


@pytest.mark.parametrize("block_bytes", [1, 30, 1 << 20])
def test_a_value_of_csv_that_does_not_fit_is_rescued(tmp_path: Path, block_bytes: int) -> None:
    lines = ["id,amount,at,name", "1,1.5,2024-01-02,a", '2,"1,50",soon,"b ""x"""', "3", "4,4,,"]
    path = write(tmp_path / "a.csv", "\n".join(lines) + "\n")
    found, bad = read(tmp_path, schema=SCHEMA, block_bytes=block_bytes)
    assert [(row["id"], row["amount"], row["name"]) for row in found] == [
        (1, Decimal("1.50"), "a"),
        (2, None, 'b "x"'),
        (4, Decimal("4.00"), ""),
    ]
    assert [rescued(row, path) for row in found] == [{}, {"amount": "1,50", "at": "soon"}, {}]
    assert bad == ["3"]


@pytest.mark.parametrize("block_bytes", [1, 30, 1 << 20])
def test_columns_that_only_one_csv_file_has_are_rescued(tmp_path: Path, block_bytes: int) -> None:
    write(tmp_path / "a.csv", "id,name\n1,a\n")
    path = write(tmp_path / "b.csv", "more,name,other\n7,b,x\n,c,\n")
    found, bad = read(tmp_path, block_bytes=block_bytes)
    assert [(row["id"], row["name"]) for row in found] == [(1, "a"), (None, "b"), (None, "c")]
    assert [rescued(row, path) for row in found[1:]] == [{"more": "7", "other": "x"}, {}]
    assert not bad
    found, _ = read(tmp_path, schema=parse_schema("id INT, gone DATE"), block_bytes=block_bytes)
    assert [rescued(row, path) for row in found[1:]] == [
        {"more": "7", "name": "b", "other": "x"},
        {"name": "c"},
    ]


@pytest.mark.parametrize("block_bytes", [1, 30, 1 << 20])
def test_a_value_of_json_is_rescued_as_it_stands_there(tmp_path: Path, block_bytes: int) -> None:
    lines = [
        '{"id": 1, "amount": "1.5"}',
        '{"id": {"a": [1.50, "\\u00e9"]}, "amount": 1.505, "at": "2024-01-02"}',
        '{"id": 3, "new": 1e2, "name": null, "none": null}',
        '{"id": 4, "at": NaN}',
        '{"id": 5, "id": "x"}',
        '{"id": 6, "_file_path": "x"}',
        "[]",
    ]
    path = write(tmp_path / "a.jsonl", "\n".join(lines) + "\n")
    found, bad = read(tmp_path, schema=SCHEMA, block_bytes=block_bytes)
    assert [row["id"] for row in found] == [1, None, 3]
    told = '{"id": {"a": [1.50, "\\u00e9"]}, "amount": 1.505, '
    assert found[1]["_rescued"] == told + f'"_file_path": "{path}"}}'
    assert found[2]["_rescued"] == f'{{"new": 1e2, "_file_path": "{path}"}}'
    assert bad == lines[3:]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("seed", range(8))
def test_no_value_is_lost_however_odd(tmp_path: Path, kind: str, seed: int) -> None:
    chance = random.Random(seed)
    odd = ["x", "007", "", "1.50", "2024-13-01", "é\u2028", '"', "a,b", "1e400", "true", "{}"]
    written = []
    for number in range(40):
        row = {"id": str(number), "amount": "2.00", "name": "n"}
        for name in ("id", "amount", "name", "more")[: 3 + (kind == "jsonl")]:
            if chance.random() < 0.3:
                row[name] = chance.choice(odd)
        written.append(row)
    if kind == "csv":
        quoted = [
            ",".join(f'"{v.replace(chr(34), chr(34) * 2)}"' for v in r.values()) for r in written
        ]
        text = "id,amount,name\n" + "".join(f"{line}\n" for line in quoted)
    else:
        text = "".join(json.dumps(row) + "\n" for row in written)
    path = write(tmp_path / f"a.{kind}", text)
    schema = parse_schema("id SMALLINT, amount DECIMAL(10,2), name STRING")
    found, bad = read(tmp_path, schema=schema, block_bytes=chance.choice([1, 50, 1 << 20]))
    assert not bad
    for row, was in zip(found, written, strict=True):
        own = rescued(row, path)
        for name, text in was.items():
            if name in own:
                assert own[name] == text, row
                assert row.get(name) is None
            elif name == "name":
                assert row[name] == text
            else:
                assert (None if not text and kind == "csv" else Decimal(text)) == row[name]


def test_a_required_value_that_does_not_fit_rejects_the_row(tmp_path: Path) -> None:
    schema = parse_schema("id INT NOT NULL, name STRING")
    for name, text in {"a.csv": "id,name\nx,a\n", "b.jsonl": '{"id": "x", "name": "a"}\n'}.items():
        write(tmp_path / name / name, text)
        found, bad = read(tmp_path / name, schema=schema)
        assert (found, len(bad)) == ([], 1)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_value_of_a_type_that_was_inferred_is_rescued(tmp_path: Path, kind: str) -> None:
    for number, value in enumerate((1, "seven")):
        text = f"v\n{value}\n" if kind == "csv" else json.dumps({"v": value}) + "\n"
        write(tmp_path / f"{number}.{kind}", text)
    found, _ = read(tmp_path, added=parse_added(["n=file.row"]), **FIRST_ALONE)
    assert [row["v"] for row in found] == [1, None]
    assert rescued(found[1], tmp_path / f"1.{kind}") == {"v": "seven"}
    assert list(found[1]) == ["v", "_rescued", "n"]


def test_rows_go_on_wherever_reading_does(tmp_path: Path) -> None:
    lines = [f"{n if n % 3 else 'x'},{n}" for n in range(20)]
    write(tmp_path / "a.csv", "\n".join(["id,name", *lines]) + "\n")
    options: dict[str, Any] = {"schema": parse_schema("id INT, name INT"), "on_bad_row": "rescue"}
    enumeration = FileEnumeration(tmp_path, **options)
    (split,) = enumeration.discover()
    layout = enumeration.layout_of(split)
    reader = SplitReader(layout, batch_rows=3, block_bytes=20, on_bad_row="rescue")
    for one in list(reader.read(split)):
        rest = SplitReader(layout, on_bad_row="rescue").read(split, one.position)
        names = [row["name"] for batch in rest for row in batch.batch.to_pylist()]
        assert names == [*range(one.position.rows, 20)]


def test_new_columns_are_columns_where_the_schema_may_grow(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "id\n1\n")
    write(tmp_path / "b.csv", "id,more\nx,2\n")
    found = rows(tmp_path, on_bad_row="rescue", evolution="add", **FIRST_ALONE)
    assert (found[1]["id"], found[1]["more"]) == (None, 2)


def test_a_column_of_its_name_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "id,_RESCUED\n1,2\n")
    with pytest.raises(SourceColumnInFile, match="--on-bad-row rescue"):
        read(tmp_path)


def test_a_later_field_of_its_name_is_rescued(tmp_path: Path) -> None:
    lines = ['{"a": 1}', '{"a": 2, "_rescued": "own"}', '{"a": "x", "_Rescued": 3}']
    write(tmp_path / "a.jsonl", "\n".join(lines))
    found = rows(tmp_path, on_bad_row="rescue", evolution="add", sample_bytes_max=9)
    assert [one["a"] for one in found] == [1, 2, None]
    told = [json.loads(one["_rescued"] or "{}") for one in found]
    for one in told:
        one.pop("_file_path", None)
    assert told == [{}, {"_rescued": "own"}, {"a": "x", "_Rescued": 3}]


def test_a_later_start_rescues_as_well(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "id\n1\n")
    first = FileEnumeration(tmp_path)
    first.discover()
    other = FileEnumeration(tmp_path, on_bad_row="rescue")
    with pytest.raises(ReadingChanged, match="--on-bad-row"):
        other.restore(first.snapshot())


def test_a_row_that_fits_has_nothing_in_the_column(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", '{"a": 1}\n')
    (one,) = batches(tmp_path, on_bad_row="rescue")
    assert one.batch.schema.field("_rescued").type == pa.string()
    assert one.batch.column("_rescued").to_pylist() == [None]
