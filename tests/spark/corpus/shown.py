"""Cells in a table of Markdown, in few letters: the same text for the same value."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from tests.spark.values.cells import EPOCH, MICROSECOND, Cell

SHOWN_MAX = 60
DIGITS_MAX = 40


def shown(cell: Cell, *, is_quoted: bool = False) -> str:
    """The value alone; a text in quotes, if it is to be told from a number."""
    if cell is None:
        return "∅"
    kind, value = cell
    if kind == "text" and is_quoted:
        return f"'{value}'"
    return SHOWN.get(kind, str)(value)


def code(text: str) -> str:
    """The text as a cell of a table, on one line."""
    plain = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)
    short = plain if len(plain) <= SHOWN_MAX else plain[: SHOWN_MAX - 1] + "…"
    told = short.replace("|", "\\|").replace("`", "'")
    return f"`{told}`" if told.strip() else "an empty text"


def _number(value: Any) -> str:
    if not isinstance(value, Fraction):
        return str(value)
    is_whole = value.denominator == 1
    if is_whole and len(str(value.numerator)) <= DIGITS_MAX:
        return str(value.numerator)
    if abs(value) < 2**1024 and Fraction(float(value)) == value:
        return repr(float(value))
    with localcontext(prec=80):
        return f"{Decimal(value.numerator) / value.denominator:f}"


def _day(value: Any) -> str:
    number = EPOCH.toordinal() + int(value)
    is_known = 0 < number <= dt.date.max.toordinal()
    return dt.date.fromordinal(number).isoformat() if is_known else f"day {value} since 1970"


def _wall(value: int) -> str:
    moment: dt.datetime = EPOCH + value // 1000 * MICROSECOND
    # Spark adds the day to a time of day.
    return moment.isoformat(" ").replace(dt.datetime.now(dt.UTC).date().isoformat(), "today")


def _time(value: int) -> str:
    seconds, rest = divmod(value, 10**9)
    return f"{dt.timedelta(seconds=seconds)}{f'.{rest:09d}'.rstrip('0') if rest else ''}"


def _fields(value: Any) -> str:
    return f"{{{', '.join(f'{name}: {shown(cell)}' for name, cell in value)}}}"


def _pairs(value: Any) -> str:
    return f"{{{', '.join(f'{shown(key)} → {shown(cell)}' for key, cell in value)}}}"


SHOWN: Mapping[str, Callable[[Any], str]] = {
    "number": _number,
    "truth": lambda value: str(value).lower(),
    "day": _day,
    "wall": _wall,
    "moment": lambda value: f"{_wall(value)}Z",
    "time": _time,
    "duration": lambda value: f"{value / 10**9} s",
    "list": lambda value: f"[{', '.join(map(shown, value))}]",
    "struct": _fields,
    "map": _pairs,
}
"""By the kinds of cells; any other is printed."""
