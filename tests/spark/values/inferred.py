"""Texts of which no type was said, and which values they may become."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
from hypothesis import strategies as st

from tests.spark.values.cells import EPOCH, MICROSECOND, Cell
from tests.spark.values.nasty import decimals, integers, texts

ROW = "row"
"""The column that tells rows apart."""
JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
PLAIN_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?(\.0)?")


def _padded(number: int) -> str:
    return f"{number:05d}"


STYLES: dict[str, st.SearchStrategy[str]] = {
    "whole": integers(-(2**63), 2**63 - 1).map(str),
    "large": st.integers(-(10**40), 10**40).map(str),
    "padded": st.integers(0, 99_999).map(_padded),
    "fraction": decimals(9, 2).map(lambda number: f"{number:f}"),
    "long fraction": decimals(20, 3).map(lambda number: f"{number:f}"),
    "double": st.floats(allow_nan=False, allow_infinity=False).map(repr),
    "digits": st.from_regex(r"-?[0-9]{1,20}(\.[0-9]{1,20})?", fullmatch=True),
    "truth": st.sampled_from(("true", "false")),
    "odd truth": st.sampled_from(("true", "False", "TRUE", "1", "yes")),
    "day": st.dates().map(dt.date.isoformat),
    "odd day": st.sampled_from(("2024-1-2", "20240102", "02.01.2024", "2024-02-30", "2024-01-02")),
    "moment": st.datetimes().map(lambda moment: moment.isoformat(" ", "seconds")),
    "fine moment": st.datetimes().map(dt.datetime.isoformat),
    "zoned": st.datetimes().map(lambda moment: f"{moment.isoformat()}Z"),
    "offset": st.datetimes().map(lambda moment: f"{moment.isoformat()}+02:00"),
    "nanoseconds": st.datetimes().map(lambda moment: f"{moment:%Y-%m-%d %H:%M:%S}.123456789"),
    "time": st.times().map(dt.time.isoformat),
    "nasty": texts,
}


@st.composite
def tables(draw: st.DrawFn, rows_max: int = 6) -> pa.Table:
    """Columns of texts, most of them in one style; a few nasty ones among them."""
    count = draw(st.integers(1, rows_max))
    columns: dict[str, pa.Array] = {ROW: pa.array([str(number) for number in range(count)])}
    for number in range(draw(st.integers(1, 4))):
        style = STYLES[draw(st.sampled_from(sorted(STYLES)))]
        one = st.none() | style | style | style | (texts if draw(st.booleans()) else style)
        values = draw(st.lists(one, min_size=count, max_size=count))
        columns[f"c{number}"] = pa.array(values, pa.string())
    return pa.table(columns)


def guessed(table: pa.Table) -> pa.Schema:
    """The types that someone gives columns at a look at the first text of each."""
    looks = (
        (r"-?[0-9]{1,18}", pa.int64()),
        (r"-?[0-9]{1,15}\.[0-9]{1,9}", pa.float64()),
        (r"true|false", pa.bool_()),
        (r"[0-9]{4}-[0-9]{2}-[0-9]{2}", pa.date32()),
        (r"[-0-9]{10}[T ][:0-9]{8}(\.[0-9]+)?", pa.timestamp("us")),
        (r"[-0-9]{10}[T ][:0-9]{8}(\.[0-9]+)?Z", pa.timestamp("us", tz="UTC")),
    )
    fields = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        first = next((one for one in column.to_pylist() if one is not None), "")
        kinds = (kind for look, kind in looks if re.fullmatch(look, first))
        fields.append(pa.field(name, next(kinds, pa.string())))
    return pa.schema(fields)


def may_be(text: str | None, cell: Cell) -> bool:
    """Return whether the value, printed, is the text again."""
    if cell is None or text is None:
        return cell is None and text is None
    kind, value = cell
    if kind == "text":
        return bool(value == text)
    if kind == "truth":
        return text == ("true" if value else "false")
    if (kind, value) == ("number", "-0"):
        return text in ("-0", "-0.0")
    if kind == "number":
        return isinstance(value, Fraction) and _is_number(text, value)
    if kind == "day":
        day = dt.date.fromordinal(EPOCH.toordinal() + int(value))
        return text == day.isoformat() and value == int(value)
    moment = EPOCH + value // 1000 * MICROSECOND
    zone = ("Z", "+00:00") if kind == "moment" else ("",)
    whole, fraction = moment.isoformat(" ", "microseconds").split(".")
    found = re.fullmatch(r"(.{10})[T ](.{8})(?:\.([0-9]{1,6}))?(Z|\+00:00)?", text)
    return (
        found is not None
        and f"{found[1]} {found[2]}" == whole
        and (found[3] or "").ljust(6, "0") == fraction
        and (found[4] or "") in zone
    )


def may_be_in_json(text: str | None, cell: Cell) -> bool:
    """True if the value is the text, or the number that the text, without quotes, denotes."""
    if cell is None or text is None or cell[0] != "number":
        return may_be(text, cell)
    if JSON_NUMBER.fullmatch(text) is None:
        return False
    told, value = Decimal(text), cell[1]
    if value == "-0":
        return not told and text.startswith("-")
    # A double is the number that it prints.
    return told == Decimal(repr(float(value))) or Fraction(told) == value


def _is_number(text: str, value: Fraction) -> bool:
    if PLAIN_NUMBER.fullmatch(text) is None or (text.startswith("-0") and not value):
        return False
    told = Decimal(text)
    if Fraction(told) == value:
        return True
    return Decimal(repr(float(value))) == told and Fraction(float(value)) == value
