"""A guard in front of the parser of JSON lines: which bytes it may be given, and whether doubles
keep all their digits.

pyarrow's parser does not care for line ends, recurses into each bracket until the stack is full,
and rounds numbers. So a block is looked at before it is parsed: each line that is not empty begins
with `{` and ends with `}`, which leaves one record a line if there are as many records as lines,
and none is nested too deep. After it is parsed, each number that may have more digits than a double
is compared with its double. Both may say no where all is well, since brackets and digits within
strings count too, and never yes where it is not. Pure functions; used on the driver and in tasks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

DEPTH_MAX = 500
"""How deep objects and arrays of a record may be nested, the record counted as well."""
BLANK = " \t\r\n"

_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"|[][{}]')
_LINE_END, _RETURN, _MINUS, _POINT, _ZERO = b"\n\r-.0"
_CASE = ord(" ")
_OPEN, _CLOSE, _EXPONENT = b"{}e"
"""Brackets and braces differ in the bit `_CASE` alone, as capitals do."""
_LONG = 16
"""A number of fewer digits, its point counted, is printed from its double as it was."""
_WHOLE_MAX = 1e15
_NORMAL_MIN = 2.2250738585072014e-308
_PIECE_BYTES = 1 << 18
"""Looked at together: what numpy makes of so much stays in the processor's caches."""
_FULL, _HIGHEST = np.uint64(0x0101010101010101), np.uint64(56)
"""Eight truths; times them, the highest byte of eight truths is how many there are."""


def _table(letters: bytes) -> Any:
    table = np.zeros(256, bool)
    table[[*letters]] = True
    return table


_BEFORE, _AFTER = _table(b":,[ \t\r\n"), _table(b",]} \t\r\n")
_IN_EXPONENT, _EXPONENTS = _table(b"eE+"), _table(b"eE")


class Look(NamedTuple):
    """The result of a look at the bytes: how many records there are, if a parser may be given them,
    and whether some number may have more digits than a double.
    """

    records: int
    has_long_numbers: bool


def look_at(data: bytes, for_doubles: bool = True) -> Look | None:
    """Look at the bytes of whole lines; none if a parser may not be given them.

    for_doubles: whether long numbers are to be looked for.
    """
    if not data:
        return Look(0, False)
    text = np.frombuffer(data, np.uint8)
    # What is before each line end; a line end of its own begins no record.
    lasts = np.flatnonzero(text[1:] == _LINE_END)
    if not data.endswith(b"\n"):
        lasts = np.append(lasts, len(text) - 1)
    count = len(lasts)
    if not (text[0] == _OPEN and _are_records(text, lasts)):
        lines = [line.strip(BLANK.encode()) for line in data.split(b"\n")]
        lines = [line for line in lines if line]
        if not all(line.startswith(b"{") and line.endswith(b"}") for line in lines):
            return None
        count = len(lines)
    is_long = max(lasts[:1].sum(), np.diff(lasts).max(initial=0)) >= DEPTH_MAX
    if is_long and _may_be_deep(text, lasts, count):
        return None
    has_long_numbers = (
        for_doubles
        and (
            any(
                _may_have_runs(text[max(at - 8, 0) : at + _PIECE_BYTES + 8])
                for at in range(0, len(text), _PIECE_BYTES)
            )
            # The last words have none after them there.
            or _may_have_runs(np.append(text[-48:], np.zeros(16, np.uint8)))
        )
    )
    return Look(count, has_long_numbers)


def _are_records(text: Any, lasts: Any) -> bool:
    """Return whether what is around each line end is a brace, as it is between records."""
    before = text.take(lasts)
    if not (before == _CLOSE).all():
        # A carriage return may be there.
        before = text.take(lasts - (before == _RETURN))
    return bool((before == _CLOSE).all() and (text[2:].take(lasts[:-1]) == _OPEN).all())


def depth_of(line: str) -> int:
    """Measure how deep objects and arrays of a record are nested, well formed or not."""
    depth = deepest = 0
    for found in _BRACKETS.finditer(line):
        if found[0] in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif found[0] in "]}":
            depth -= 1
    return deepest


def are_digits_kept(data: bytes, look: Look, doubles: Iterable[pa.Array]) -> bool:
    """Return whether each number that has become one of these doubles is the one that the double
    prints, as far as can be told at once; `look` is one for doubles.
    """
    largest, has_zero, has_any = 0.0, False, False
    for values in doubles:
        if len(values) == values.null_count:
            continue
        has_any = True
        sizes = np.abs(values.drop_null().to_numpy(zero_copy_only=False))
        most, smallest = float(sizes.max()), float(sizes.min())
        if not most < np.inf:
            # The parser takes `NaN`, which is no JSON.
            return False
        largest = max(largest, most)
        if smallest < _NORMAL_MIN:
            has_zero = True
            if ((sizes > 0) & (sizes < _NORMAL_MIN)).any():
                return False
    if not has_any:
        return True
    text = np.frombuffer(data, np.uint8)
    if has_zero and b"-" in data and _has_tiny(text):
        return False
    return not look.has_long_numbers or _are_printed_again(
        data, text, has_whole=largest >= _WHOLE_MAX
    )


def is_printed_again(number: str) -> bool:
    """Return whether a JSON number is the number that its double prints.

    >>> is_printed_again("1.50"), is_printed_again("9007199254740993"), is_printed_again("1e400")
    (True, False, False)
    """
    value = float(number)
    if value - value != 0:
        return False
    if not value:
        return not re.search("[1-9]", re.split("[eE]", number)[0])
    return Decimal(repr(value)) == Decimal(number)


def _may_be_deep(text: Any, lasts: Any, records: int) -> bool:
    letters = text | _CASE
    is_open = letters == _OPEN
    # Each record has one bracket at least.
    if np.count_nonzero(is_open) < DEPTH_MAX + records:
        return False
    at = np.flatnonzero(is_open | (letters == _CLOSE))
    steps = np.where(is_open[at], 1, -1)
    depths = np.cumsum(steps)
    begins = np.concatenate(([0], lasts[:-1] + 2))
    # Each line begins with a bracket, unless it is empty.
    firsts = np.searchsorted(at, begins[begins <= at[-1]])
    before = depths[firsts] - steps[firsts]
    return bool((np.maximum.reduceat(depths, firsts) - before).max() > DEPTH_MAX)


def _has_tiny(text: Any) -> bool:
    """Return whether there may be a number with three digits in an exponent below zero."""
    at = np.flatnonzero(text[:-3] == _MINUS)
    at = at[text[at - 1] | _CASE == _EXPONENT]
    return bool(np.all([text[at + n] - _ZERO < 10 for n in (1, 2, 3)], axis=0).any())


def _are_printed_again(data: bytes, text: Any, has_whole: bool) -> bool:
    """Return whether the numbers of many digits are; whole ones only where they have become
    doubles.
    """
    is_digit = _are_digits(text)
    edges = np.flatnonzero(is_digit[1:] != is_digit[:-1]) + 1
    # The first byte is a brace or a blank, and so is the last.
    starts, ends = edges[::2], edges[1::2]
    is_long = ends - starts >= _LONG
    starts, ends = starts[is_long], ends[is_long]
    starts = starts - (text[starts - 1] == _MINUS)
    before, after = text[starts - 1], text[ends]
    if _IN_EXPONENT[before].any():
        return False
    begins_number = _BEFORE[before]
    for start in starts[begins_number & _EXPONENTS[after]].tolist():
        found = _NUMBER.match(data, start)
        if found is None or not is_printed_again(found[0].decode()):
            return False
    is_number = begins_number & _AFTER[after]
    texts = _texts_at(text, starts[is_number], ends[is_number])
    if not has_whole:
        texts = texts.filter(pc.match_substring(texts, "."))
    try:
        printed = texts.cast(pa.float64()).cast(pa.string())
    except pa.ArrowInvalid:
        return False
    # Arrow writes some numbers with an exponent, or without a zero, where others do not.
    return all(map(is_printed_again, texts.filter(pc.not_equal(printed, texts)).to_pylist()))


def _may_have_runs(text: Any) -> bool:
    """Return whether a long number may be among the digits."""
    words = _are_digits(text)[: len(text) // 8 * 8].view(np.uint64)
    full = np.flatnonzero(words == _FULL)
    # What is long fills a word, and the half of those beside it; that is told where both are there.
    full = full[(full > 0) & (full < len(words) - 1)]
    beside = (words[full - 1] * _FULL >> _HIGHEST) + (words[full + 1] * _FULL >> _HIGHEST)
    return bool((beside >= _LONG - 8).any())


def _are_digits(text: Any) -> Any:
    # The bytes from the point to the nine are the digits, the point and a slash.
    return text - _POINT < 12


def _texts_at(text: Any, starts: Any, ends: Any) -> pa.StringArray:
    lengths = ends - starts
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    places = np.repeat((starts - offsets[:-1]).astype(np.int32), lengths)
    places += np.arange(len(places), dtype=np.int32)
    kept = pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(text[places])
    return pa.StringArray.from_buffers(len(starts), *kept)
