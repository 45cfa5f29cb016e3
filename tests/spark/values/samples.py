"""Values of each Arrow type, the extremes and what gets lost among them; and types of columns."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from epochgate.spark.values.relations import ColumnType

NOON_S = 1_719_835_200
"""2024-07-01 12:00:00, in seconds since 1970."""
FIRST_S, LAST_S = -62_135_596_800, 253_402_300_799
"""The ends of the years 1 to 9999."""
FLOATS = (0.5, -0.0, 3.0, 2.675, 1e30, float("nan"), float("inf"))
INTERVAL = pa.month_day_nano_interval()


def whole(kind: pa.DataType) -> tuple[int, ...]:
    """The ends of a type of integers, and some between."""
    bits = kind.bit_width - pa.types.is_signed_integer(kind)
    low = -(2**bits) if pa.types.is_signed_integer(kind) else 0
    return low, 0, 1, 100, 2**bits - 1


def uuids() -> pa.Array:
    """Of the type of an extension."""
    return pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(range(16))], pa.binary(16)))


INTEGERS = (
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
)
VALUES: Mapping[pa.DataType, tuple[Any, ...]] = {
    pa.bool_(): (True, False),
    **{kind: whole(kind) for kind in INTEGERS},
    pa.float16(): (0.5, -0.0, 3.0, float("nan")),
    pa.float32(): (*FLOATS[:3], 0.10000000149011612, 1e10, *FLOATS[5:]),
    pa.float64(): (*FLOATS, 0.1, 5e-324, 1.7976931348623157e308),
    pa.decimal128(10, 3): tuple(map(Decimal, ("1.500", "1.005", "3.000", "-9999999.999"))),
    pa.decimal256(39, 0): (Decimal(7), Decimal(10**39 - 1)),
    pa.string(): ("", "ab ", "abc  ", "12:30:00.5", "\\x00ff", "5", "\\N", "\u00e9" * 30, "{}"),
    pa.large_string(): ("a", ""),
    pa.string_view(): ("a", ""),
    pa.binary(): (b"", b"\x00\xff"),
    pa.large_binary(): (b"a",),
    pa.binary(16): (bytes(range(16)),),
    pa.uuid(): (),
    pa.date32(): (FIRST_S // 86_400, 0, LAST_S // 86_400),
    pa.date64(): (0, NOON_S // 86_400 * 86_400_000, NOON_S * 1000),
    pa.timestamp("s"): (FIRST_S, NOON_S, LAST_S),
    pa.timestamp("ms"): (FIRST_S * 1000, NOON_S * 1000 + 250),
    pa.timestamp("us"): (FIRST_S * 10**6, NOON_S * 10**6, LAST_S * 10**6 + 999_999),
    pa.timestamp("us", "UTC"): (FIRST_S * 10**6, NOON_S * 10**6, LAST_S * 10**6 + 999_999),
    pa.timestamp("us", "Europe/Berlin"): (NOON_S * 10**6,),
    pa.timestamp("ns"): (NOON_S * 10**9, NOON_S * 10**9 + 123_456_789),
    pa.timestamp("ns", "UTC"): (NOON_S * 10**9, NOON_S * 10**9 + 123_456_789),
    pa.time32("s"): (0, 86_399),
    pa.time64("us"): (0, 45_000_000_000, 86_399_999_999),
    pa.time64("ns"): (0, 45_000_000_000_001),
    pa.duration("us"): (0, 5),
    INTERVAL: ((1, 2, 3),),
    pa.null(): (None,),
    pa.dictionary(pa.int8(), pa.string()): ("a", "b"),
    pa.list_(pa.int64()): ([1, None], []),
    pa.struct([("a", pa.int64())]): ({"a": 1}, {"a": None}),
    pa.map_(pa.string(), pa.int64()): ([("a", 1)], []),
    pa.struct([]): ({},),
    pa.list_(pa.time64("us")): ([0],),
}
"""By the types that the tables of the guide name; integers stand for moments, days and times."""


def array_of(kind: pa.DataType, *values: Any) -> pa.Array:
    """Of these values, or of all that a type has here."""
    values = values or VALUES[kind]
    if kind == pa.uuid():
        return uuids()
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        numbers = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array(values, numbers).view(kind)
    return pa.array(values, kind)


RELATIONS = (
    ColumnType("boolean", "bool"),
    ColumnType("smallint", "int2"),
    ColumnType("integer", "int4"),
    ColumnType("bigint", "int8"),
    ColumnType("numeric", "numeric"),
    ColumnType("numeric(10,2)", "numeric", (10 << 16 | 2) + 4),
    ColumnType("numeric(50,10)", "numeric", (50 << 16 | 10) + 4),
    ColumnType("real", "float4"),
    ColumnType("double precision", "float8"),
    ColumnType("text", "text"),
    ColumnType("character varying(20)", "varchar", 24),
    ColumnType("character(3)", "bpchar", 7),
    ColumnType("bytea", "bytea"),
    ColumnType("date", "date"),
    ColumnType("timestamp without time zone", "timestamp"),
    ColumnType("timestamp(3) without time zone", "timestamp", 3),
    ColumnType("timestamp with time zone", "timestamptz"),
    ColumnType("time without time zone", "time"),
    ColumnType("time(0) without time zone", "time", 0),
    ColumnType("uuid", "uuid"),
    ColumnType("jsonb", "jsonb"),
    ColumnType("integer[]", "_int4", -1, "int4"),
    ColumnType("numeric(10,2)[]", "_numeric", (10 << 16 | 2) + 4, "numeric"),
    ColumnType("interval", "interval"),
    ColumnType("money", "money"),
    ColumnType("name", "name"),
    ColumnType("time with time zone", "timetz"),
)
"""The types of columns that the guide names; a test compares them with what PostgreSQL says."""
