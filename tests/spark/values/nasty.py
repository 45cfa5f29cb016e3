"""Types and the values of each that are known to get lost on the way."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, localcontext
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

TEXTS = (
    "",
    " ",
    "  padded  ",
    "01234",
    "+5",
    "-0",
    "1e5",
    "1.50",
    "007.10",
    "12345678901234567890",
    "0x1F",
    "1_000",
    "NaN",
    "inf",
    "null",
    "NULL",
    "NA",
    "\\N",
    "true",
    "True",
    "yes",
    "2024-02-30",
    "2024-07-01",
    "2024-07-01T12:00:00+02:00",
    "2024-07-01 12:00:00.250",
    "12:30",
    'say "no"',
    "it's",
    "a,b;c|d\te",
    "two\nlines",
    "two\r\nlines",
    "back\\slash\\",
    '\\"',
    "#comment",
    "=1+1",
    "\ufeffbom",
    "e\u0301 \u00e9",
    "\U0001f600\u200d",
    "\u2028",
    "{}",
    "[]",
    "x" * 300,
)
NAMES = (
    "a",
    "id",
    "select",
    "two words",
    "per%cent",
    "quo'te",
    "dotted.name",
    "caf\u00e9",
    "UPPER",
    "order",
    "a-b",
    "n\u00b0",
    "1st",
)
CLOCK_CHANGES = (
    1_710_053_999,
    1_710_054_000,
    1_710_037_800,
    1_711_846_800,
    1_711_852_200,
    1_729_992_600,
    1_729_996_200,
    1_730_611_800,
    1_730_597_400,
)
"""Seconds since 1970 around the hours that clocks leave out or repeat in 2024, in New York and in
Berlin, as moments and as what the clocks say: 02:30 on March 10, 02:30 on March 31, and 02:30 and
01:30 on October 27 and November 3.
"""
YEAR_1, YEAR_9999 = -62_135_596_800, 253_402_300_799
"""The first and the last second of the calendar of Python and SQL, since 1970."""


def integers(low: int, high: int) -> st.SearchStrategy[int]:
    """Numbers of a range, its ends and what rounds in doubles above all."""
    edges = {low, high, 0, 1, -1, 2**53 + 1, -(2**53) - 1, 2**31, 2**63 - 1}
    return st.sampled_from(sorted(e for e in edges if low <= e <= high)) | st.integers(low, high)


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    """All digits that there may be."""

    def scaled(number: int) -> Decimal:
        with localcontext(prec=40):
            return Decimal(number).scaleb(-scale)

    high = 10**precision - 1
    return integers(-high, high).map(scaled)


def moments() -> st.SearchStrategy[int]:
    """Microseconds since 1970, in the years 1 to 9999."""
    edges = (0, -1, 1, YEAR_1 * 10**6, YEAR_9999 * 10**6 + 999_999)
    at_changes = st.sampled_from(CLOCK_CHANGES).map(lambda seconds: seconds * 10**6)
    return st.sampled_from(edges) | at_changes | st.integers(YEAR_1 * 10**6, YEAR_9999 * 10**6)


texts = (
    st.just("")
    | st.sampled_from(TEXTS)
    | st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=8)
)
lines = texts.filter(lambda text: "\n" not in text and not text.endswith("\r"))
"""Those that a file of lines can hold."""
SIMPLE: Mapping[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int8(): integers(-(2**7), 2**7 - 1),
    pa.int16(): integers(-(2**15), 2**15 - 1),
    pa.int32(): integers(-(2**31), 2**31 - 1),
    pa.int64(): integers(-(2**63), 2**63 - 1),
    pa.uint8(): integers(0, 2**8 - 1),
    pa.uint16(): integers(0, 2**16 - 1),
    pa.uint32(): integers(0, 2**32 - 1),
    pa.uint64(): integers(0, 2**64 - 1),
    pa.float32(): st.floats(width=32) | st.sampled_from([-0.0, 1e-45, 16777216.0]),
    pa.float64(): st.floats() | st.sampled_from([-0.0, 5e-324, 0.1, 1.7976931348623157e308, 1e16]),
    pa.decimal128(9, 2): decimals(9, 2),
    pa.decimal128(18, 0): decimals(18, 0),
    pa.decimal128(38, 10): decimals(38, 10),
    pa.string(): texts,
    pa.binary(): st.binary(max_size=6),
    pa.date32(): integers(YEAR_1 // 86_400, YEAR_9999 // 86_400),
    pa.timestamp("us"): moments(),
    pa.timestamp("us", tz="UTC"): moments(),
    pa.timestamp("ms"): moments().map(lambda us: us // 1000),
    pa.timestamp("ns"): st.integers(-(2**63) + 1, 2**63 - 1),
    pa.time64("us"): st.integers(0, 86_399_999_999),
}
EXOTIC: Mapping[pa.DataType, st.SearchStrategy[Any]] = {
    pa.large_string(): texts,
    pa.dictionary(pa.int32(), pa.string()): texts,
    pa.binary(4): st.binary(min_size=4, max_size=4),
    pa.time32("ms"): st.integers(0, 86_399_999),
    pa.timestamp("us", tz="Europe/Berlin"): moments(),
    pa.timestamp("ms", tz="America/New_York"): moments().map(lambda us: us // 1000),
}
"""Types that Parquet files may have besides."""
SPEAKABLE = tuple(
    kind
    for kind in SIMPLE
    if not (
        pa.types.is_unsigned_integer(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_time(kind)
        or kind in (pa.timestamp("ms"), pa.timestamp("ns"))
    )
)
"""The types that a schema in Spark's words can name, and a text can hold."""

FIXED = (pa.int8(), pa.int32(), pa.int64(), pa.float64(), pa.date32(), pa.timestamp("us"))
"""Types whose values all take as many bytes in a Parquet file."""


def nested(simple: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    """Lists, structs and maps of them, two deep."""

    def deeper(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
        names = st.lists(st.sampled_from(("x", "y", "z w")), min_size=1, max_size=2, unique=True)
        fields = st.builds(lambda ns, kind: pa.struct([(n, kind) for n in ns]), names, inner)
        maps = st.builds(lambda kind: pa.map_(pa.string(), kind), inner)
        return st.builds(pa.list_, inner) | fields | maps

    return deeper(simple) | deeper(deeper(simple))


def values_of(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of a type, None among them."""
    return st.none() | present(kind)


def present(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of a type that are there."""
    if pa.types.is_list(kind):
        return st.lists(values_of(kind.value_type), max_size=3)
    if pa.types.is_map(kind):
        keys = st.sampled_from(("k", "k 2", ""))
        return st.dictionaries(keys, values_of(kind.item_type), max_size=2).map(
            lambda pairs: list(pairs.items())
        )
    if pa.types.is_struct(kind):
        return st.fixed_dictionaries({field.name: values_of(field.type) for field in kind})
    return SIMPLE[kind] if kind in SIMPLE else EXOTIC[kind]


@st.composite
def names(draw: st.DrawFn, count: int) -> list[str]:
    """Names of columns, two of which are seldom the same, or differ in capitals alone."""
    apart = st.lists(
        st.sampled_from(NAMES), min_size=count, max_size=count, unique_by=lambda name: name.lower()
    )
    found = draw(apart)
    if count > 1 and draw(st.integers(0, 29)) == 0:
        found[1] = draw(st.sampled_from((found[0], found[0].swapcase())))
    return found


@st.composite
def tables(draw: st.DrawFn, kinds: st.SearchStrategy[pa.DataType], rows_max: int = 6) -> pa.Table:
    """Some columns of some types."""
    chosen = draw(st.lists(kinds, min_size=1, max_size=4))
    count = draw(st.integers(1, rows_max))
    columns = [
        pa.array(draw(st.lists(values_of(kind), min_size=count, max_size=count)), kind)
        for kind in chosen
    ]
    return pa.Table.from_arrays(columns, names=draw(names(len(chosen))))
