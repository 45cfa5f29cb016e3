"""Arrow types as Delta has them: what is converted, and what is refused before it is written."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from epochgate.spark.delta_sink.log import DeltaLog
from epochgate.spark.files.column_names import NameTwice
from epochgate.spark.parquet_sink import OutputSchemaChanged
from epochgate.spark.tables.types import OF_SPARK, conformed
from epochgate.spark.values.errors import (
    ColumnNeverFits,
    TypeNotInTable,
    ValueDoesNotFit,
    ValueMissing,
)
from epochgate.spark.values.formats import DELTA

deltalake = pytest.importorskip("deltalake", reason="the extra `delta` is not installed")

NOON = datetime(2024, 2, 29, 12, tzinfo=UTC)
VALUES = [
    (pa.int8(), -7, -7),
    (pa.uint8(), 255, 255),
    (pa.uint32(), 2**32 - 1, 2**32 - 1),
    (pa.uint64(), 2**64 - 1, Decimal(2**64 - 1)),
    (pa.float16(), 0.5, 0.5),
    (pa.large_string(), "ü", "ü"),
    (pa.string_view(), "ü", "ü"),
    (pa.dictionary(pa.int8(), pa.string()), "one", "one"),
    (pa.binary(2), b"ab", b"ab"),
    (pa.date64(), date(2024, 2, 29), date(2024, 2, 29)),
    (pa.timestamp("s"), NOON.replace(tzinfo=None), NOON.replace(tzinfo=None)),
    (pa.timestamp("ms", "Europe/Berlin"), NOON, NOON),
    (pa.null(), None, None),
    (pa.list_(pa.uint8()), [1, 255], [1, 255]),
    (pa.list_(pa.int8(), 2), [1, 2], [1, 2]),
    (pa.struct([("a", pa.uint16())]), {"a": 65535}, {"a": 65535}),
    (pa.map_(pa.string(), pa.uint8()), [("a", 255)], [("a", 255)]),
]


@pytest.mark.parametrize(("kind", "value", "expected"), VALUES, ids=lambda one: str(one))
def test_a_value_is_the_same_in_the_table(
    kind: pa.DataType, value: object, expected: object
) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([value], kind)], names=["c"])
    agreed = DELTA.schema(batch.schema)
    assert conformed(batch, agreed, "here").to_pylist() == [{"c": expected}]
    assert DELTA.schema(agreed) == agreed
    library = deltalake.Schema.from_arrow(agreed)
    assert pa.schema(library.to_arrow()) == agreed, "a restart reads the schema from the log"


@pytest.mark.parametrize("kind", [pa.time64("us"), pa.duration("s"), pa.decimal256(50, 2)])
def test_a_type_that_delta_does_not_have_is_named(kind: pa.DataType) -> None:
    with pytest.raises(TypeNotInTable, match=r"column 'c\.inner'"):
        DELTA.schema(pa.schema([("c", pa.struct([("inner", kind)]))]))


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([("x", pa.int64()), ("X", pa.int64())]),
        pa.schema([("x", pa.int64()), ("x", pa.string())]),
        pa.schema([("c", pa.struct([("x", pa.int64()), ("X", pa.int64())]))]),
    ],
)
def test_names_that_are_one_to_delta_are_refused_before_they_are_written(schema: pa.Schema) -> None:
    with pytest.raises(NameTwice, match="the same column to Delta Lake"):
        DELTA.schema(schema)


@pytest.mark.parametrize(
    ("value", "kind", "agreed"),
    [
        (0, pa.int64(), pa.string()),
        ("012", pa.string(), pa.int64()),
        (5, pa.int64(), pa.bool_()),
        (True, pa.bool_(), pa.int64()),
        (5, pa.int64(), pa.timestamp("us")),
        (NOON, pa.timestamp("us", "UTC"), pa.timestamp("us")),
        (NOON.replace(tzinfo=None), pa.timestamp("us"), pa.date32()),
        (b"x", pa.binary(), pa.string()),
        (0.1, pa.float64(), pa.float32()),
        (-0.0, pa.float64(), pa.int64()),
        (-0.0, pa.float64(), pa.decimal128(10, 2)),
        ([Decimal("1.5")], pa.list_(pa.decimal128(10, 3)), pa.list_(pa.float64())),
        (0.125, pa.float64(), pa.decimal128(10, 2)),
        (2**53 + 1, pa.int64(), pa.float64()),
        ([1], pa.list_(pa.int64()), pa.list_(pa.string())),
        ({"a": 1}, pa.struct([("a", pa.int64())]), pa.struct([("a", pa.string())])),
        ([("a", 1)], pa.map_(pa.string(), pa.int64()), pa.map_(pa.string(), pa.string())),
        ("a", pa.string(), pa.list_(pa.string())),
    ],
    ids=lambda one: str(one),
)
def test_a_value_that_would_change_in_the_column_of_a_table_is_refused(
    value: object, kind: pa.DataType, agreed: pa.DataType
) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([value], kind)], names=["c"])
    with pytest.raises((ValueDoesNotFit, ColumnNeverFits), match="column 'c' "):
        conformed(batch, pa.schema([("c", agreed)]), "here")


@pytest.mark.parametrize(
    ("value", "kind", "agreed"),
    [
        (7, pa.int64(), pa.int32()),
        (7, pa.int32(), pa.float64()),
        (0.5, pa.float64(), pa.float32()),
        (float("nan"), pa.float64(), pa.float32()),
        (Decimal("0.10"), pa.decimal128(10, 2), pa.float64()),
        (Decimal("1.500"), pa.decimal128(10, 3), pa.float32()),
        (Decimal("1.005"), pa.decimal128(10, 3), pa.float64()),
        (1.005, pa.float64(), pa.decimal128(10, 3)),
        (12, pa.int64(), pa.decimal128(5, 2)),
        (float("nan"), pa.float16(), pa.float32()),
        ([0.5, float("nan")], pa.list_(pa.float16()), pa.list_(pa.float32())),
        (
            [("a", float("nan"))],
            pa.map_(pa.string(), pa.float64()),
            pa.map_(pa.string(), pa.float32()),
        ),
        (date(2024, 2, 29), pa.date32(), pa.timestamp("us")),
        ([0.5, None], pa.list_(pa.float64()), pa.list_(pa.float32())),
    ],
    ids=lambda one: str(one),
)
def test_a_value_that_stays_the_same_is_taken_by_another_type(
    value: object, kind: pa.DataType, agreed: pa.DataType
) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([value], kind)], names=["c"])
    made = conformed(batch, pa.schema([("c", agreed)]), "here").column("c")
    assert made.type == agreed
    (found,) = made.to_pylist()
    if isinstance(found, datetime):
        found = found.date()
    if isinstance(value, Decimal) or isinstance(found, Decimal):
        found, value = (Decimal(str(one)).normalize() for one in (found, value))
    assert repr(found) == repr(value) or found == value


@pytest.mark.parametrize(
    ("declared", "text", "is_taken"),
    [
        ("varchar(3)", "\u00e4bc", True),
        ("varchar(3)", "abc ", False),
        ("varchar(3)", "", True),
        ("char(3)", "ab ", True),
        ("char(3)", "ab", False),
        ("char(3)", "abcd", False),
        ("varchar(3)", None, True),
    ],
)
def test_texts_have_the_length_that_spark_has_declared(
    tmp_path: Path, declared: str, text: str | None, is_taken: bool
) -> None:
    column = deltalake.Field(
        "s", deltalake.schema.PrimitiveType("string"), metadata={OF_SPARK.decode(): declared}
    )
    deltalake.DeltaTable.create(tmp_path / "out", deltalake.Schema([column]))
    log = DeltaLog(str(tmp_path / "out"))
    assert log.read()
    batch = pa.RecordBatch.from_arrays([pa.array([text], pa.string())], names=["s"])
    if is_taken:
        assert conformed(batch, log.schema(), "here").to_pylist() == [{"s": text}]
    else:
        with pytest.raises(ValueDoesNotFit, match=f"cannot be written as {re.escape(declared)}"):
            conformed(batch, log.schema(), "here")


def test_a_value_that_does_not_fit_is_refused_and_not_changed() -> None:
    agreed = pa.schema([pa.field("x", pa.int8()), pa.field("y", pa.string(), nullable=False)])

    def of(x: object, y: object) -> pa.RecordBatch:
        return conformed(pa.RecordBatch.from_pydict({"x": [x], "y": [y]}), agreed, "subtask 1")

    assert of(1, "a").to_pylist() == [{"x": 1, "y": "a"}]
    with pytest.raises(ValueDoesNotFit, match=r"column 'x' .* int8 \(subtask 1\)"):
        of(1000, "a")
    with pytest.raises(ValueMissing, match="column 'y'"):
        of(1, None)
    with pytest.raises(OutputSchemaChanged):
        conformed(pa.RecordBatch.from_pydict({"x": [1]}), agreed, "subtask 1")
