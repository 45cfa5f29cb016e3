"""One record of JSON lines as the values of its columns, each exactly or not at all.

Decides which JSON text is which value of a type: a column of text takes each JSON text, a string
as the text that it means and all else as it stands in the file; a number counts by the number that
it denotes, however it is written; times are strings; nothing is rounded, except to a float or a
double that was declared. The scanner of Python's `json` finds where a value ends. Leaves to others:
where a record begins (`records`), and which type a column has (`json_types`). Pure functions; used
in tasks where the faster parser may not be asked, and on the driver for a sample.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Container
from decimal import Decimal, InvalidOperation
from json import decoder
from typing import Any

import pyarrow as pa

from epochgate.spark.files.ddl import spark_type
from epochgate.spark.files.json_guard import BLANK, DEPTH_MAX, depth_of, is_printed_again
from epochgate.spark.files.rejected import ValueInvalid
from epochgate.spark.files.round_trip import typed
from epochgate.spark.files.times import is_time, times_of

Read = Callable[[str, int], tuple[Any, int]]
"""Reads the value that begins at an index; returns it, and the index behind it."""
_SURROGATE = "a half of a pair of surrogates, as \\ud800, is no character"
_SHOWN_MAX = 200
VALUE = "_VALUE"
"""The field of a text beside others, in records that are made of texts."""
_WHOLE_DIGITS_MAX = 20
_string: Callable[[str, int, bool], tuple[str, int]] = vars(decoder)["scanstring"]
_blanks = re.compile(f"[{BLANK}]*+").match


class Number(str):
    """A JSON number, as it stands in the file."""

    __slots__ = ()


class _Unfit(Exception):
    """A value does not fit its type: the fields and items on the way to it, why."""

    def __init__(self, why: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(why, path)
        self.why, self.path = why, path

    def within(self, step: str | int) -> _Unfit:
        return _Unfit(self.why, (step, *self.path))


def _no_number(text: str) -> Any:
    raise _Unfit(f"{text} is no JSON")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise _twice(next(name for name in names if names.count(name) > 1))
    return found


def _twice(name: str) -> _Unfit:
    return _Unfit(f"the field {name!r} is there twice")


def _scanner(**hooks: Any) -> Read:
    known: Any = json.JSONDecoder(parse_int=Number, parse_float=Number, **hooks)
    scan: Read = known.scan_once
    return scan


_over = _scanner()
_as_it_stands = _scanner(parse_constant=_no_number)
_whole = _scanner(parse_constant=_no_number, object_pairs_hook=_distinct)


class RecordReader:
    """Reads records as values of these columns.

    is_inferred: whether no user has declared them, so that a double has to print its number again.
    leaves_out_others: whether fields that are no columns are left out, instead of refused.
    declared: columns that a user has declared all the same. of_texts: whether the records are made
    of texts, so that an empty one is no value unless a column is of text, a declared type takes
    each text that has a value of it, a value may stand for an array or an object of it alone, and
    an inferred time has to print its text again.
    """

    def __init__(
        self,
        columns: pa.Schema,
        is_inferred: bool,
        leaves_out_others: bool,
        declared: Container[str] = (),
        of_texts: bool = False,
    ) -> None:
        self._leaves_out_others, self._of_texts = leaves_out_others, of_texts
        self._reads = {
            one.name: self._reader(one.type, is_inferred and one.name not in declared)
            for one in columns
        }

    def read(self, line: str) -> dict[str, Any]:
        """The values of the columns that are there. Raises ValueInvalid."""
        return _read_record(line, lambda at: self._members(line, at, self._reads))

    def rescue(self, line: str) -> tuple[dict[str, Any], dict[str, str]]:
        """The values of the columns that fit, and the JSON texts of the others by name. Raises
        ValueInvalid for what is no record.
        """
        rescued: dict[str, str] = {}
        values: dict[str, Any] = {}

        def member(name: str, at: int) -> int:
            if name in values or name in rescued:
                raise _twice(name).within(name)
            try:
                if name not in self._reads:
                    raise _Unfit(_unexpected(name))
                values[name], end = self._reads[name](line, at)
            except _Unfit:
                found, end = _whole(line, at)
                if found is not None:
                    rescued[name] = line[at:end]
            return end

        found = _read_record(line, lambda at: (values, _over_members(line, at, "}", member)))
        return found, rescued

    def _members(self, line: str, at: int, reads: dict[str, Read]) -> tuple[dict[str, Any], int]:
        values: dict[str, Any] = {}

        def member(name: str, at: int) -> int:
            read = reads.get(name)
            if read is None:
                if not self._leaves_out_others:
                    raise _Unfit(_unexpected(name))
                return _over(line, at)[1]
            if name in values:
                raise _twice(name).within(name)
            try:
                values[name], end = read(line, at)
            except _Unfit as unfit:
                raise unfit.within(name) from None
            return end

        return values, _over_members(line, at, "}", member)

    def _items(self, line: str, at: int, read: Read) -> tuple[list[Any], int]:
        items: list[Any] = []

        def item(_: str, at: int) -> int:
            try:
                value, end = read(line, at)
            except _Unfit as unfit:
                raise unfit.within(len(items)) from None
            items.append(value)
            return end

        return items, _over_members(line, at, "]", item)

    def _reader(self, kind: pa.DataType, is_inferred: bool) -> Read:
        if pa.types.is_struct(kind):
            reads = {one.name: self._reader(one.type, is_inferred) for one in kind}
            alone = reads.get(VALUE) if self._of_texts else None
            return _nested("{", kind, lambda line, at: self._members(line, at, reads), alone)
        if _is_list(kind):
            read = self._reader(kind.value_type, is_inferred)
            alone = read if self._of_texts else None
            return _nested("[", kind, lambda line, at: self._items(line, at, read), alone)
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return _read_text
        return _plain(kind, is_inferred, self._of_texts)


def whole_record(line: str) -> dict[str, Any]:
    """All fields of a record, numbers as `Number`. Raises ValueInvalid."""
    found = _read_record(line, lambda at: _whole(line, at))
    if "\\u" in line:
        try:
            json.dumps(found, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise ValueInvalid(None, _SURROGATE) from error
    return found


def _read_record(line: str, read: Callable[[int], tuple[dict[str, Any], int]]) -> dict[str, Any]:
    """Read the record, if it is one and all that the line has."""
    try:
        at = _over_blanks(line, 0)
        if not line.startswith("{", at):
            raise _Unfit(f"{_shown(line[at:])} is no object; each line is one, as {{...}}")
        if len(line) > DEPTH_MAX and (depth := depth_of(line)) > DEPTH_MAX:
            raise _Unfit(f"it is nested {depth} deep, and {DEPTH_MAX} is the most")
        values, at = read(at)
        if (at := _over_blanks(line, at)) < len(line):
            raise _Unfit(f"{_shown(line[at:])} follows the object; each line is one")
    except _Unfit as unfit:
        column, *steps = unfit.path or (None,)
        where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
        told = f"{unfit.why} (at {column}{where})" if where else unfit.why
        raise ValueInvalid(None if column is None else str(column), told) from unfit
    except json.JSONDecodeError as error:
        # Some of Python's messages expect a place, others do not.
        told = f"{error.msg[:1].lower()}{error.msg[1:].removesuffix(' at')}"
        told = f"{told} at character {error.pos + 1}"
        raise ValueInvalid(None, f"it is no JSON: {told}") from error
    except StopIteration as error:
        told = f"no value begins at character {int(error.value) + 1}"
        raise ValueInvalid(None, f"it is no JSON: {told}") from error
    return values


def _over_blanks(line: str, at: int) -> int:
    found = _blanks(line, at)
    assert found is not None
    return found.end()


def _over_members(line: str, at: int, close: str, member: Callable[[str, int], int]) -> int:
    """Call `member` with the name and the index of each value of an object, or of an array, which
    has no names; `member` returns the index behind it, and this the one behind the bracket.
    """
    at = _over_blanks(line, at + 1)
    if line.startswith(close, at):
        return at + 1
    while True:
        name = ""
        if close == "}":
            if not line.startswith('"', at):
                raise json.JSONDecodeError("a name in quotes is missing", line, at)
            name, at = _string(line, at + 1, True)
            at = _over_blanks(line, at)
            if not line.startswith(":", at):
                raise json.JSONDecodeError("a ':' is missing", line, at)
            at = _over_blanks(line, at + 1)
        at = _over_blanks(line, member(name, at))
        if line.startswith(close, at):
            return at + 1
        if not line.startswith(",", at):
            raise json.JSONDecodeError(f"a ',' or {close!r} is missing", line, at)
        at = _over_blanks(line, at + 1)


def _nested(opening: str, kind: pa.DataType, read_all: Read, alone: Read | None) -> Read:
    """Reads what begins with a bracket; `alone` what may stand for it, as the one value in it."""

    def read(line: str, at: int) -> tuple[Any, int]:
        if line.startswith(opening, at):
            return read_all(line, at)
        value, end = _as_it_stands(line, at)
        if value is not None and alone is not None:
            if opening == "{" and value == "":
                return None, end
            found, end = alone(line, at)
            return ([found] if opening == "[" else {VALUE: found}), end
        if value is not None:
            raise _Unfit(f"{_shown(line[at:end])} is no {spark_type(kind)}")
        return None, end

    return read


def _read_text(line: str, at: int) -> tuple[str | None, int]:
    if line.startswith('"', at):
        text, end = _string(line, at + 1, True)
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                raise _Unfit(_SURROGATE) from None
        return text, end
    value, end = _as_it_stands(line, at)
    return None if value is None else line[at:end], end


def _plain(kind: pa.DataType, is_inferred: bool, of_texts: bool) -> Read:
    convert = _converter(kind, is_inferred)
    if of_texts:
        convert = _of_text(kind, convert, is_inferred)

    def read(line: str, at: int) -> tuple[Any, int]:
        value, end = _whole(line, at)
        if value is None or (of_texts and value == ""):
            return None, end
        try:
            found = convert(value)
        except (pa.ArrowInvalid, InvalidOperation):
            found = None
        if found is None:
            shown = _shown(line[at:end])
            if is_inferred and pa.types.is_floating(kind) and isinstance(value, Number):
                raise _Unfit(
                    f"{shown} is no {spark_type(kind)}: as that it would be {float(value)!r}"
                )
            raise _Unfit(f"{shown} is no {spark_type(kind)}")
        return found, end

    return read


def _converter(kind: pa.DataType, is_inferred: bool) -> Callable[[Any], Any]:
    """Makes a value of the type from one that is there; none if there is none that is the same."""
    if pa.types.is_boolean(kind):
        return lambda value: value if isinstance(value, bool) else None
    if pa.types.is_integer(kind):
        return _to_whole(kind)
    if pa.types.is_floating(kind):
        return _to_floating(kind, is_inferred)
    if pa.types.is_decimal(kind):
        # To a declared column, a string may say a number.
        told = Number if is_inferred else str
        return lambda value: (
            pa.scalar(str(value)).cast(kind).as_py() if isinstance(value, told) else None
        )
    if is_time(kind):
        return lambda value: times_of(pa.array([value]), kind)[0].value if _is_text(value) else None
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return lambda value: value.encode() if _is_text(value) else None
    return lambda value: None


def _of_text(
    kind: pa.DataType, convert: Callable[[Any], Any], is_inferred: bool
) -> Callable[[Any], Any]:
    """The same of values that are texts: a declared type takes each text that has a value of it,
    and an inferred time no text that it would not print again.
    """

    def inferred(value: Any) -> Any:
        if not is_time(kind):
            return convert(value)
        values = typed(pa.chunked_array([[value]]), kind) if _is_text(value) else None
        return None if values is None else values[0].value

    def declared(value: Any) -> Any:
        plain = value.strip() if _is_text(value) else value
        found = convert(plain)
        if found is not None or is_time(kind) or not isinstance(plain, str):
            return found
        return pa.scalar(str(plain)).cast(kind).as_py()

    return inferred if is_inferred else declared


def _to_whole(kind: pa.DataType) -> Callable[[Any], int | None]:
    bits = kind.bit_width
    limits = range(2**bits)
    if pa.types.is_signed_integer(kind):
        limits = range(-(2 ** (bits - 1)), 2 ** (bits - 1))

    def whole(value: Any) -> int | None:
        found = whole_of(value) if isinstance(value, Number) else None
        return found if found is not None and found in limits else None

    return whole


def _to_floating(kind: pa.DataType, is_inferred: bool) -> Callable[[Any], float | None]:
    def floating(value: Any) -> float | None:
        if not isinstance(value, Number) or (is_inferred and not is_printed_again(value)):
            return None
        found: float = pa.scalar(str(value)).cast(kind).as_py()
        return found if math.isfinite(found) else None

    return floating


def whole_of(number: str) -> int | None:
    """The whole number that a JSON number is, if it is one that may have 64 bits.

    >>> whole_of("1e3"), whole_of("1.0"), whole_of("1.5"), whole_of("1e400")
    (1000, 1, None, None)
    """
    if number.removeprefix("-").isdigit():
        return int(number) if len(number) <= _WHOLE_DIGITS_MAX else None
    if abs(float(number)) >= 10.0**_WHOLE_DIGITS_MAX:
        return None
    value = Decimal(number)
    found = int(value)
    return found if found == value else None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(value, Number)


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def _unexpected(name: str) -> str:
    return (
        f"it has a field that the schema lacks, {name[:_SHOWN_MAX]!r}; start with "
        "--schema-evolution add (schema_evolution in Python) to take new fields as columns"
    )


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."
