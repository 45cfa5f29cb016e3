"""One form for the values of all files and tables, in which two are equal only if they are the
same: numbers by all their digits, texts and bytes apart, moments apart from wall clocks.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa

Cell = Any
"""None, or a pair of the kind of a value and the value."""
Row = tuple[tuple[str, Cell], ...]
Rows = Counter[Row]
NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
EPOCH, MICROSECOND = dt.datetime(1970, 1, 1), dt.timedelta(microseconds=1)


def of_scalar(scalar: pa.Scalar) -> Cell:
    """The cell of an Arrow scalar."""
    kind = scalar.type
    if not scalar.is_valid:
        return None
    if isinstance(kind, pa.BaseExtensionType):
        return of_scalar(scalar.value)
    if pa.types.is_dictionary(kind):
        return of_scalar(scalar.dictionary[scalar.index.as_py()])
    if pa.types.is_timestamp(kind):
        name = "wall" if kind.tz is None else "moment"
        return name, scalar.value * NANOSECONDS[kind.unit]
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        name = "time" if pa.types.is_time(kind) else "duration"
        return name, scalar.value * NANOSECONDS[kind.unit]
    if pa.types.is_date(kind):
        days = scalar.value if kind == pa.date32() else Fraction(scalar.value, 86_400_000)
        return "day", days
    if pa.types.is_map(kind):
        pairs = ((of_scalar(one["key"]), of_scalar(one["value"])) for one in scalar.values)
        return "map", tuple(pairs)
    if pa.types.is_struct(kind):
        return "struct", tuple((name, of_scalar(scalar[name])) for name in scalar)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return "list", tuple(map(of_scalar, scalar.values))
    return of_value(scalar.as_py())


def of_value(value: Any) -> Cell:
    """The cell of a Python value, as drivers of databases give them; KeyError for others."""
    return None if value is None else VALUES[type(value)](value)


def _of_datetime(value: dt.datetime) -> Cell:
    if value.tzinfo is None:
        return "wall", (value - EPOCH) // MICROSECOND * 1000
    return "moment", (value.astimezone(dt.UTC).replace(tzinfo=None) - EPOCH) // MICROSECOND * 1000


def _of_time(value: dt.time) -> Cell:
    seconds = value.hour * 3600 + value.minute * 60 + value.second
    return "time", (seconds * 10**6 + value.microsecond) * 1000


def _of_float(value: float) -> Fraction | str:
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return Fraction(value) if value or math.copysign(1, value) > 0 else "-0"


def of_table(table: pa.Table | pa.RecordBatch) -> Rows:
    """The rows of a table, however often each is there; a column that is null is as one absent."""
    rows: Rows = Counter()
    columns = [table.column(position) for position in range(table.num_columns)]
    for number in range(table.num_rows):
        rows[
            of_row(zip(table.schema.names, (of_scalar(c[number]) for c in columns), strict=True))
        ] += 1
    return rows


def of_row(named: Any) -> Row:
    """The cells of one row by name, without those that are null."""
    cells = ((name, cell) for name, cell in named if cell is not None)
    return tuple(sorted(cells, key=repr))


VALUES: Mapping[type, Callable[[Any], Cell]] = {
    bool: lambda value: ("truth", value),
    int: lambda value: ("number", Fraction(value)),
    float: lambda value: ("number", _of_float(value)),
    Decimal: lambda value: (
        "number",
        Fraction(value) if value.is_finite() else str(value).lower(),
    ),
    str: lambda value: ("text", value),
    bytes: lambda value: ("bytes", value),
    dt.datetime: _of_datetime,
    dt.date: lambda value: ("day", value.toordinal() - EPOCH.toordinal()),
    dt.time: _of_time,
    list: lambda value: ("list", tuple(map(of_value, value))),
}
