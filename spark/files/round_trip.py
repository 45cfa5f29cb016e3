"""Texts as values, where each value, printed, is the text again: the one rule of inference.

Decides which type a column of texts has, and that no later text becomes a value that would be
printed in another way: a leading zero, a plus sign, an exponent, a trailing zero of a fraction,
more digits than a type holds, an offset from UTC are kept as text, or refused. Some spellings tell
nothing apart: `T` or a space within a time, `Z` or `+00:00` behind it; zeros at the end of the
fraction of a second, and a `.0` behind a whole double, may be there or not. Leaves to others: which
texts mean that there is no value. Pure functions; used on the driver and in tasks.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from epochgate.spark.files.ddl import spark_type

WHOLE, LARGE, DOUBLE = pa.int64(), pa.decimal128(38, 0), pa.float64()
TRUTH, DAY, CLOCK, MOMENT = (
    pa.bool_(),
    pa.date32(),
    pa.timestamp("us"),
    pa.timestamp("us", tz="UTC"),
)
KINDS = (TRUTH, WHOLE, LARGE, DOUBLE, DAY, CLOCK, MOMENT)
"""The types that are inferred, besides text; the first one that all texts are is the column's.
Times have microseconds, which all readers of the targets know; times of day remain text, because
not all of them have such a type."""

_LARGE = r"^(?:0|-?[1-9][0-9]{0,37})$"
_MOMENT = r"^[0-9-]{10}[T ][0-9:]{8}(?:\.[0-9]{1,6})?(?:Z|\+00:00)$"
_EXACT_MAX = 15
"""Any decimal number of so few digits is printed from its double as it was."""
_FIRST_DAY = pa.scalar(datetime.date(1, 1, 1))
_FIRST = {kind: _FIRST_DAY.cast(kind) for kind in (DAY, CLOCK, MOMENT)}
_ZERO, _NINE, _POINT, _MINUS = b"09.-"
_TRIED_FIRST = 1000
_LIKELY = re.compile(r"true|false|-?[0-9]")
_SHOWN_MAX = 200


def infer(texts: pa.ChunkedArray) -> pa.DataType:
    """The type of a column of these texts, null where there is no value; null without any value.

    >>> infer(pa.chunked_array([["7", "8"]])), infer(pa.chunked_array([["7", "08"]]))
    (DataType(int64), DataType(string))
    """
    if texts.null_count == len(texts):
        return pa.null()
    first = next(text for text in texts if text.is_valid).as_py()
    if not _LIKELY.match(first):
        return pa.string()
    # Of a cast that fails each text costs dear, so most types are refuted by a few of them.
    few = texts.drop_null()[:_TRIED_FIRST]
    kinds = [kind for kind in KINDS if typed(few, kind) is not None]
    found = next((kind for kind in kinds if typed(texts, kind) is not None), pa.string())
    return found if found != DOUBLE or _is_of_one_style(texts) else pa.string()


def typed(texts: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    """The values of one of `KINDS` that the texts are, null where a text is null; none if a text
    would not be printed again as it is.
    """
    try:
        values = texts.cast(kind)
    except pa.ArrowInvalid:
        return None
    return values if _IS_PRINTED_AGAIN[kind](texts, values) else None


def why_not(text: str, kind: pa.DataType) -> str:
    """Tell why this one text is no value of the type, for a person.

    >>> why_not("007", pa.int64()), why_not("x", pa.int64())
    ("'007' is no BIGINT: as that it would be '7'", "'x' is no BIGINT")
    """
    what = f"{text[:_SHOWN_MAX]!r} is no {spark_type(kind)}"
    try:
        value = pa.scalar(text).cast(kind)
    except pa.ArrowInvalid:
        return what
    return f"{what}: as that it would be {_printed(value)!r}"


def _is_whole(texts: pa.ChunkedArray, _: pa.ChunkedArray) -> bool:
    # All else that the cast takes, hexadecimal digits too, begins with a zero.
    return all(_has_no_extra_zero(at) for at in _places(texts))


def _is_large(texts: pa.ChunkedArray, _: pa.ChunkedArray) -> bool:
    return _all(pc.match_substring_regex(texts, _LARGE))


def _is_double(texts: pa.ChunkedArray, values: pa.ChunkedArray) -> bool:
    is_long = False
    for at in _places(texts):
        letters = at.data[at.begins[0] : at.ends[-1]]
        # Of what the cast takes, nothing else lies between the minus and the nine.
        if letters.min() < _MINUS or letters.max() > _NINE:
            return False
        last = at.data[at.ends - 1]
        if (last == _POINT).any() or not _has_no_extra_zero(at):
            return False
        zeros = at.ends[last == _ZERO]
        # A text of one letter has no letter before, and that of another text does no harm.
        if (zeros := zeros[at.data[zeros - 2] != _POINT]).size:
            points = np.flatnonzero(at.data == _POINT)
            owners = np.searchsorted(at.ends, points, "right")
            if np.isin(at.ends[owners[owners < len(at.ends)]], zeros).any():
                return False
        is_long = is_long or bool((at.ends - at.begins > _EXACT_MAX).any())
    return not is_long or _are_digits_kept(texts, values)


class _Places(NamedTuple):
    """The bytes of texts, one after the other, and where each begins and ends."""

    data: Any
    begins: Any
    ends: Any


def _places(texts: pa.ChunkedArray) -> Iterator[_Places]:
    """Of the texts that are there, none of which is empty."""
    for chunk in texts.drop_null().chunks if texts.null_count else texts.chunks:
        _, offsets, data = chunk.buffers()
        if len(chunk):
            every = np.frombuffer(offsets, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
            yield _Places(np.frombuffer(data, np.uint8), every[:-1], every[1:])


def _has_no_extra_zero(at: _Places) -> bool:
    """Return whether a zero that comes first is all there is before the point, and no point comes
    first; whether a whole number has no sign before a zero that is all.
    """
    begins = at.begins
    first = at.data[begins]
    if first.min() > _ZERO:
        return True
    if (below := first == _MINUS).any():
        # Those of a number below zero are one further on.
        begins = begins + below
        first = at.data[begins]
    if (first == _POINT).any():
        return False
    zero = first == _ZERO
    begins, ends, below = begins[zero], at.ends[zero], below[zero]
    alone = ends - begins == 1
    return bool((alone & ~below | (at.data[np.minimum(begins + 1, ends - 1)] == _POINT)).all())


def _are_digits_kept(texts: pa.ChunkedArray, values: pa.ChunkedArray) -> bool:
    long = pc.greater(pc.binary_length(texts), _EXACT_MAX)
    if not _any(long):
        return True
    texts, values = texts.filter(long), values.filter(long)
    # Arrow prints with an exponent, or without a `.0`, where others do not.
    other = pc.not_equal(values.cast(pa.string()), texts)
    pairs = zip(texts.filter(other).to_pylist(), values.filter(other).to_pylist(), strict=True)
    return all(text.removesuffix(".0") == _positional(value) for text, value in pairs)


def _is_of_one_style(texts: pa.ChunkedArray) -> bool:
    """Return whether numbers are doubles: some have a point, and all or none of the whole ones have
    `.0`, since `1.0` beside `1` is a name rather than a number.
    """
    has_point = pc.match_substring(texts, ".")
    return _any(has_point) and not (_any(pc.ends_with(texts, ".0")) and not _all(has_point))


def _is_truth(texts: pa.ChunkedArray, _: pa.ChunkedArray) -> bool:
    return _all(pc.or_(pc.equal(texts, "true"), pc.equal(texts, "false")))


def _is_day(_: pa.ChunkedArray, values: pa.ChunkedArray) -> bool:
    # The cast takes YYYY-MM-DD alone, and the year 0, which others do not have.
    return pc.less(pc.min(values), _FIRST[values.type]).as_py() is not True


def _is_clock(texts: pa.ChunkedArray, values: pa.ChunkedArray) -> bool:
    # Of what the cast takes, only times with seconds are so long.
    return (
        _are_as_long(texts, "2024-01-02 03:04:05")
        and not _any(pc.ends_with(texts, "."))
        and _is_day(texts, values)
    )


def _is_moment(texts: pa.ChunkedArray, values: pa.ChunkedArray) -> bool:
    if _all(pc.ends_with(texts, "Z")):
        # As above; and a point that is followed by the Z is no fraction.
        return (
            _are_as_long(texts, "2024-01-02 03:04:05Z")
            and not _any(pc.ends_with(texts, ".Z"))
            and _is_day(texts, values)
        )
    return _all(pc.match_substring_regex(texts, _MOMENT)) and _is_day(texts, values)


_IS_PRINTED_AGAIN: dict[pa.DataType, Callable[[pa.ChunkedArray, pa.ChunkedArray], bool]] = {
    TRUTH: _is_truth,
    WHOLE: _is_whole,
    LARGE: _is_large,
    DOUBLE: _is_double,
    DAY: _is_day,
    CLOCK: _is_clock,
    MOMENT: _is_moment,
}


def _positional(value: float) -> str:
    """The shortest decimal number that is this double, without an exponent or a `.0`."""
    text = repr(value)
    return (format(Decimal(text), "f") if "e" in text else text).removesuffix(".0")


def _printed(value: pa.Scalar) -> str:
    plain = value.as_py()
    if isinstance(plain, bool):
        return "true" if plain else "false"
    if isinstance(plain, float):
        return _positional(plain)
    if pa.types.is_timestamp(value.type):
        return str(plain.replace(tzinfo=None)) + ("Z" if value.type.tz else "")
    return str(plain)


def has_empty(texts: pa.ChunkedArray) -> bool:
    """Return whether one of the texts has no letter."""
    return bool(pc.min(pc.binary_length(texts)).as_py() == 0)


def _are_as_long(texts: pa.ChunkedArray, example: str) -> bool:
    shortest = pc.min(pc.binary_length(texts)).as_py()
    return shortest is None or shortest >= len(example)


def _any(mask: pa.ChunkedArray) -> bool:
    return bool(pc.any(mask).as_py())


def _all(mask: pa.ChunkedArray) -> bool:
    return pc.all(mask).as_py() is not False
