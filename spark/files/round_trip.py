"""Texts as values, where each value, printed, is the text again: the one rule of inference.

Decides which type a column of texts has, and that no later text becomes a value that would be
printed in another way: a leading zero, a plus sign, an exponent, a trailing zero of a fraction,
more digits than a type holds, an offset from UTC are kept as text, or refused. Some spellings tell
nothing apart: `T` or a space within a time, `Z` or `+00:00` behind it; zeros at the end of the
fraction of a second, and a `.0` behind a whole double, may be there or not. Leaves to others: which
texts mean that there is no value. Pure functions; used on the driver and in tasks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

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
    found = next((kind for kind in KINDS if typed(texts, kind) is not None), pa.string())
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
    """Why this one text is no value of the type, for a person.

    >>> why_not("007", pa.int64()), why_not("x", pa.int64())
    ("'007' is no int64: as that it would be '7'", "'x' is no int64")
    """
    what = f"{text[:_SHOWN_MAX]!r} is no {kind}"
    try:
        value = pa.scalar(text).cast(kind)
    except pa.ArrowInvalid:
        return what
    return f"{what}: as that it would be {_printed(value)!r}"


def _is_whole(texts: pa.ChunkedArray, _: pa.ChunkedArray) -> bool:
    # All else that the cast takes, hexadecimal digits too, begins with a zero.
    return _has_no_extra_zero(texts) and not _any(pc.starts_with(texts, "-0"))


def _is_large(texts: pa.ChunkedArray, _: pa.ChunkedArray) -> bool:
    return _all(pc.match_substring_regex(texts, _LARGE))


def _is_double(texts: pa.ChunkedArray, values: pa.ChunkedArray) -> bool:
    if not (_has_only(texts, b"0123456789.-") and _has_no_extra_zero(texts)):
        return False
    if _any(pc.ends_with(texts, ".")) or _any(pc.starts_with(texts, ".")):
        return False
    if _any(pc.starts_with(texts, "-")):
        below = texts.filter(pc.starts_with(texts, "-"))
        if not _has_no_extra_zero(pc.utf8_slice_codeunits(below, 1)):
            return False
        if _any(pc.starts_with(below, "-.")):
            return False
    ends = texts.filter(pc.ends_with(texts, "0"))
    if _any(pc.and_not(pc.match_substring(ends, "."), pc.ends_with(ends, ".0"))):
        return False
    return _are_digits_kept(texts, values)


def _has_no_extra_zero(texts: pa.ChunkedArray) -> bool:
    """Whether a zero that comes first is all there is before the point."""
    first = _count(pc.starts_with(texts, "0"))
    if not first:
        return True
    alone = _count(pc.equal(texts, "0"))
    return first == alone + _count(pc.starts_with(texts, "0."))


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
    """Whether numbers are doubles: some have a point, and all or none of the whole ones have `.0`,
    since `1.0` beside `1` is a name rather than a number.
    """
    has_point = pc.match_substring(texts, ".")
    return _any(has_point) and not (_any(pc.ends_with(texts, ".0")) and not _all(has_point))


def _is_truth(texts: pa.ChunkedArray, _: pa.ChunkedArray) -> bool:
    return _all(pc.or_(pc.equal(texts, "true"), pc.equal(texts, "false")))


def _is_day(texts: pa.ChunkedArray, _: pa.ChunkedArray) -> bool:
    # The cast takes YYYY-MM-DD alone, and the year 0, which others do not have.
    return not _any(pc.starts_with(texts, "0000"))


def _is_clock(texts: pa.ChunkedArray, values: pa.ChunkedArray) -> bool:
    # Of what the cast takes, only times with seconds are so long.
    return (
        _least_length(texts) >= len("2024-01-02 03:04:05")
        and not _any(pc.ends_with(texts, "."))
        and _is_day(texts, values)
    )


def _is_moment(texts: pa.ChunkedArray, values: pa.ChunkedArray) -> bool:
    if _all(pc.ends_with(texts, "Z")):
        # As above; and a point that is followed by the Z is no fraction.
        return (
            _least_length(texts) >= len("2024-01-02 03:04:05Z")
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


def _has_only(texts: pa.ChunkedArray, allowed: bytes) -> bool:
    for chunk in texts.drop_null().chunks if texts.null_count else texts.chunks:
        _, offsets, data = chunk.buffers()
        if data is None:
            continue
        places = memoryview(offsets).cast("i")
        held = memoryview(data)[places[chunk.offset] : places[chunk.offset + len(chunk)]]
        if held.tobytes().translate(None, allowed):
            return False
    return True


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


def _least_length(texts: pa.ChunkedArray) -> int:
    return pc.min(pc.binary_length(texts)).as_py() or 0


def _any(mask: pa.ChunkedArray) -> bool:
    return bool(pc.any(mask).as_py())


def _all(mask: pa.ChunkedArray) -> bool:
    return pc.all(mask).as_py() is not False


def _count(mask: pa.ChunkedArray) -> int:
    return pc.sum(mask).as_py() or 0
