"""ORC, Avro and whole files: each value as it was written, wherever reading goes on, or refused."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import orc

from epochgate.spark.files import (
    BadFile,
    FileEnumeration,
    SchemaChanged,
    SplitReader,
    UnknownFormat,
    avro,
    chunks,
)
from epochgate.spark.files.ddl import parse_schema
from epochgate.spark.files.source_columns import parse_added
from tests.spark.files.reading import batches, rejected, rows, write

COUNT = 9000
RECORD: dict[str, Any] = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"]},
    ],
}


def write_orc(path: Path, table: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    orc.write_table(table, path, stripe_size=1, batch_size=10, compression="zlib")


def write_avro(path: Path, schema: Any, records: list[Any], codec: str = "deflate") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        fastavro.writer(file, schema, records, codec=codec, sync_interval=50)


def numbered(folder: Path, kind: str, count: int = COUNT) -> None:
    """The numbers 0 to `count`, in several stripes or blocks."""
    names = [str(random.random()) for _ in range(count)]
    if kind == "orc":
        write_orc(folder / "a.orc", pa.table({"id": list(range(count)), "name": names}))
    else:
        write_avro(folder / "a.avro", RECORD, [{"id": n, "name": names[n]} for n in range(count)])


@pytest.mark.parametrize("kind", ["orc", "avro"])
def test_reading_goes_on_where_it_was(tmp_path: Path, kind: str) -> None:
    numbered(tmp_path, kind)
    enumeration = FileEnumeration(tmp_path, added=parse_added(["n=file.row"]), split_bytes_target=9)
    (split,) = enumeration.discover()
    layout = enumeration.layout_of(split)
    positions = [read.position for read in SplitReader(layout, batch_rows=700).read(split)]
    for position in positions:
        rest = pa.Table.from_batches(
            [read.batch for read in SplitReader(layout).read(split, position)],
            layout.output_schema,
        )
        expected = list(range(position.rows, COUNT))
        assert rest["id"].to_pylist() == expected
        assert rest["n"].to_pylist() == [number + 1 for number in expected]


def test_orc_is_cut_at_stripes(tmp_path: Path) -> None:
    numbered(tmp_path, "orc")
    assert orc.ORCFile(tmp_path / "a.orc").nstripes > 1
    enumeration = FileEnumeration(tmp_path, split_bytes_target=9)
    splits = enumeration.discover()
    assert len(splits) > 1
    found = [
        one
        for split in splits
        for read in SplitReader(enumeration.layout_of(split)).read(split)
        for one in read.batch.column("id").to_pylist()
    ]
    assert found == list(range(COUNT))


@pytest.mark.parametrize("kind", ["orc", "avro", "binary"])
def test_files_of_which_no_column_is_read_have_all_their_rows(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "day=7"
    if kind == "binary":
        write(folder / "a.bin", b"x")
    else:
        numbered(folder, kind, 20)
    given: dict[str, Any] = {"format": "binary"} if kind == "binary" else {}
    found = rows(tmp_path, projection=["day"], **given)
    assert found == [{"day": 7}] * (1 if kind == "binary" else 20)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "orc"])
def test_a_file_with_none_of_the_columns_has_all_its_rows(tmp_path: Path, kind: str) -> None:
    texts = {"csv": ("a,b\n1,2\n", "c\n5\n6\n"), "jsonl": ('{"a": 1}\n', '{"c": 5}\n{"c": 6}\n')}
    for name, table in {"1": pa.table({"a": [1]}), "2": pa.table({"c": [5, 6]})}.items():
        if kind == "orc":
            write_orc(tmp_path / f"{name}.orc", table)
        else:
            write(tmp_path / f"{name}.{kind}", texts[kind][int(name) - 1])
    found = rows(tmp_path, projection=["b", "a"] if kind == "csv" else ["a"], evolution="add")
    assert [row.get("a") for row in found] == [1, None, None]


@pytest.mark.parametrize("kind", ["orc", "avro"])
def test_a_missing_value_is_named_with_its_row(tmp_path: Path, kind: str) -> None:
    if kind == "orc":
        write_orc(tmp_path / "a.orc", pa.table({"id": [1, 2, 3], "name": ["a", None, "c"]}))
    else:
        records = [{"id": n, "name": name} for n, name in enumerate(("a", None, "c"))]
        write_avro(tmp_path / "a.avro", RECORD, records)
    schema = parse_schema("id BIGINT, name STRING NOT NULL")
    (bad,) = rejected(tmp_path, schema=schema, split_bytes_target=1)
    assert (bad.line, bad.column_name) == (2, "name")


# ORC.


def test_a_day_of_orc_before_the_gregorian_calendar_is_refused(tmp_path: Path) -> None:
    write_orc(tmp_path / "a.orc", pa.table({"d": [dt.date(1582, 10, 15), dt.date(9999, 12, 31)]}))
    assert [row["d"].year for row in rows(tmp_path)] == [1582, 9999]
    deep = pa.array([[{"d": dt.date(1582, 10, 14)}]])
    write_orc(tmp_path / "b.orc", pa.table({"deep": deep}))
    with pytest.raises(BadFile, match="column 'deep' has a date before 1582-10-15"):
        rows(tmp_path / "b.orc")


def test_a_wall_clock_that_spark_wrote_as_a_number_is_one() -> None:
    field = pa.field("t", pa.int64(), metadata={"spark.sql.catalyst.type": "timestamp_ntz"})
    assert chunks._as_spark_meant(field).type == pa.timestamp("us")
    assert chunks._as_spark_meant(field.remove_metadata()).type == pa.int64()


@pytest.mark.parametrize("kind", ["orc", "avro"])
def test_a_torn_file_is_bad(tmp_path: Path, kind: str) -> None:
    numbered(tmp_path, kind)
    path = tmp_path / f"a.{kind}"
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(BadFile):
        rows(tmp_path)
    write(path, b"no such file at all")
    with pytest.raises(BadFile):
        rows(tmp_path)


# Avro.


UUID = "12345678-1234-5678-1234-567812345678"
AVRO: list[tuple[Any, Any, Any]] = [
    ("boolean", True, True),
    ("int", -(2**31), -(2**31)),
    ("long", 2**63 - 1, 2**63 - 1),
    ("bytes", b"\x00\xff", b"\x00\xff"),
    ({"type": "enum", "name": "e", "symbols": ["a", "b"]}, "b", "b"),
    ({"type": "fixed", "name": "f", "size": 2}, b"ab", b"ab"),
    ({"type": "array", "items": ["null", "int"]}, [1, None], [1, None]),
    ({"type": "map", "values": "long"}, {"k": 1}, [("k", 1)]),
    (
        {"type": "array", "items": {"type": "map", "values": {"type": "map", "values": "int"}}},
        [{"a": {"b": 1}}, {}],
        [[("a", [("b", 1)])], []],
    ),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 10},
        Decimal("-1234567890123456789012345678.0123456789"),
        Decimal("-1234567890123456789012345678.0123456789"),
    ),
    ({"type": "int", "logicalType": "date"}, dt.date(1, 1, 1), dt.date(1, 1, 1)),
    ({"type": "string", "logicalType": "uuid"}, UUID, UUID),
    (
        {"type": "long", "logicalType": "timestamp-micros"},
        253402300799999999,
        dt.datetime(9999, 12, 31, 23, 59, 59, 999999, dt.UTC),
    ),
    (
        {"type": "long", "logicalType": "local-timestamp-millis"},
        -1,
        dt.datetime(1969, 12, 31, 23, 59, 59, 999000),
    ),
]


@pytest.mark.parametrize("is_null", [False, True])
@pytest.mark.parametrize(("kind", "value", "expected"), AVRO)
def test_a_value_of_avro_is_what_was_written(
    tmp_path: Path, kind: Any, value: Any, expected: Any, is_null: bool
) -> None:
    field = {"name": "v", "type": ["null", kind] if is_null else kind}
    records = [{"v": value}, *([{"v": None}] if is_null else [])]
    write_avro(tmp_path / "a.avro", {"type": "record", "name": "r", "fields": [field]}, records)
    found = [row["v"] for row in rows(tmp_path)]
    assert found == [expected, None][: len(records)]


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (["int", "string"], "a union of 2 types"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 39, "scale": 0},
            "a decimal of 39 digits",
        ),
        ({"type": "array", "items": ["null", "r"]}, "'r' is within itself"),
    ],
)
def test_a_type_of_avro_that_no_column_has_is_refused(tmp_path: Path, kind: Any, told: str) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "v", "type": kind}]}
    write_avro(tmp_path / "a.avro", schema, [])
    with pytest.raises(BadFile, match=told):
        rows(tmp_path)


def test_a_file_of_other_values_than_records_is_refused(tmp_path: Path) -> None:
    write_avro(tmp_path / "a.avro", "long", [1])
    with pytest.raises(BadFile, match="an Avro file of records is read"):
        rows(tmp_path)


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_codecs_of_avro(tmp_path: Path, codec: str) -> None:
    write_avro(tmp_path / "a.avro", RECORD, [{"id": 1, "name": None}], codec)
    assert rows(tmp_path) == [{"id": 1, "name": None}]


def test_avro_as_polars_writes_it(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [1, None], "b": ["x", "é"], "c": [[1.5], []]})
    frame.write_avro(tmp_path / "a.avro")
    assert rows(tmp_path) == frame.to_dicts()


def test_columns_of_avro_may_change_as_the_schema_may(tmp_path: Path) -> None:
    write_avro(tmp_path / "a.avro", RECORD, [{"id": 1, "name": "a"}])
    more = {**RECORD, "fields": [*RECORD["fields"], {"name": "x", "type": "int"}]}
    write_avro(tmp_path / "b.avro", more, [{"id": 2, "name": "b", "x": 3}])
    with pytest.raises(SchemaChanged, match="x: INT is new"):
        rows(tmp_path)
    assert rows(tmp_path, evolution="add")[1] == {"id": 2, "name": "b", "x": 3}


# Whole files.


def test_a_whole_file_is_a_row(tmp_path: Path) -> None:
    write(tmp_path / "k=1" / "a.png", b"\x89PNG\x00\n")
    write(tmp_path / "k=2" / "b", b"x")
    found = rows(tmp_path, format="binary", added=parse_added(["file.name"]), split_bytes_target=1)
    assert found == [
        {"content": b"\x89PNG\x00\n", "k": 1, "file_name": "a.png"},
        {"content": b"x", "k": 2, "file_name": "b"},
    ]


def test_a_file_that_is_no_value_is_bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CONTENT_BYTES_MAX", 2)
    write(tmp_path / "a", b"abc")
    with pytest.raises(BadFile, match="more than 2 bytes"):
        rows(tmp_path, format="binary")


def test_records_of_avro_without_a_field_are_refused(tmp_path: Path) -> None:
    write_avro(tmp_path / "a.avro", {"type": "record", "name": "r", "fields": []}, [{}, {}])
    with pytest.raises(BadFile, match="its records have no field"):
        rows(tmp_path)


def test_long_records_of_avro_are_few_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(avro, "BATCH_BYTES", 1000)
    numbered(tmp_path, "avro", 300)
    (batch, *more) = batches(tmp_path)
    assert 1 < batch.batch.num_rows < 60
    assert sum(one.batch.num_rows for one in (batch, *more)) == 300


@pytest.mark.parametrize("name", ["a.zip", "a.csv.gz", "a.tar", "a.png"])
def test_a_file_is_read_as_it_is_whatever_its_name_tells(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, b"PK\0")
    assert rows(tmp_path, format="binary") == [{"content": b"PK\0"}]


def test_a_file_that_is_compressed_within_is_not_read_from_another(tmp_path: Path) -> None:
    write(tmp_path / "a.orc.gz", b"x")
    with pytest.raises(UnknownFormat, match=r"compressed within, and not read from \.gz"):
        rows(tmp_path)
