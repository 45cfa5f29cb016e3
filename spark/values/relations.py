"""The values that a column of a PostgreSQL table holds, so that its input functions decide nothing.

Decides, by the column's type, what is sent for a column of a batch: the same values, or a refusal.
A type that Arrow does not have (uuid, jsonb, an enum, an array) takes text in PostgreSQL's own
notation, which the server reads. Pure; runs in the task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from epochgate.spark.values.errors import ColumnNeverFits
from epochgate.spark.values.fitting import (
    CONVERTED,
    fitted,
    has_negative_zero,
    is_bytes,
    is_number,
    is_of,
    is_text,
    may_hold,
    require,
    require_length,
    shown,
    tried,
)

Verdict = Literal["exact", "by value", "refused"]
UNLIMITED: Final = -1
MICROSECONDS: Final = 6
_HEADER: Final = 4
"""What PostgreSQL adds to the length of a text, and to the digits of a numeric."""
_UUID_BYTES: Final = 16
_YEARS = (-62_135_596_800_000_000, 253_402_300_799_999_999)
"""The first and the last microsecond of the years 1 to 9999, since 1970."""
_HELD: Mapping[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "oid": pa.uint32(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "text": pa.string(),
    "varchar": pa.string(),
    "bpchar": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "time": pa.time64("us"),
    "bytea": pa.binary(),
}
_UNSURE: Mapping[str, str] = {
    "money": "its digits and its notation depend on the server's lc_monetary; use numeric",
    "name": "PostgreSQL cuts off what is longer than 63 bytes; use text",
    "char": "PostgreSQL keeps the first byte alone; use text",
    "timetz": "a time of day has no zone; use time",
}
_ROUNDED_IN_ARRAYS = ("float4", "money", "name", "char")
_DIGITS: Mapping[str, int] = {"s": 0, "ms": 3, "us": 6, "ns": 9}
"""Of a second, by the unit."""
_TIME = r"^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?$"
_BYTES = r"^\\x([0-9a-fA-F]{2})*$"


@dataclass(frozen=True)
class ColumnType:
    """The type of a column: `shown` as SQL writes it; `base`, the name of the type below all
    domains, "" for one that an extension or a user has made; its modifier, -1 for none; the name of
    an array's elements, "" for what is no array.
    """

    shown: str
    base: str
    modifier: int = UNLIMITED
    element: str = ""

    @property
    def length(self) -> int | None:
        """The characters that a text may have; none without a limit."""
        has_one = self.base in ("varchar", "bpchar") and self.modifier != UNLIMITED
        return self.modifier - _HEADER if has_one else None

    @property
    def fraction(self) -> int:
        """The digits of a second that a time keeps."""
        return MICROSECONDS if self.modifier == UNLIMITED else self.modifier

    @property
    def held(self) -> pa.DataType | None:
        """The Arrow type of the same values; none if Arrow has none, or PostgreSQL more."""
        if self.base == "numeric" and self.modifier != UNLIMITED:
            digits, scale = divmod(self.modifier - _HEADER, 1 << 16)
            if scale <= digits <= 38:
                return pa.decimal128(digits, scale)
            return pa.decimal256(digits, scale) if scale <= digits <= 76 else None
        return _HELD.get(self.base)

    @property
    def is_text_alone(self) -> bool:
        """True if Arrow has no type for its values, which are sent in PostgreSQL's notation."""
        return self.base not in _HELD and self.base not in ("numeric", *_UNSURE)


def verdict(found: pa.DataType, kind: ColumnType) -> Verdict:
    """Return whether all values of a type go into a column, or those that fit, or none.

    >>> at = ColumnType("date", "date")
    >>> verdict(pa.date32(), at), verdict(pa.timestamp("us"), at)
    ('exact', 'refused')
    """
    if why_never(found, kind):
        return "refused"
    is_any = kind.base == "numeric" and kind.held is None and not pa.types.is_floating(found)
    return "exact" if is_any or _holds_all(found, kind) else "by value"


def why_never(found: pa.DataType, kind: ColumnType) -> str:
    """Tell why no value of a type goes into a column; "" if some do."""
    if pa.types.is_null(found):
        return ""
    if pa.types.is_dictionary(found):
        return why_never(found.value_type, kind)
    if isinstance(found, pa.BaseExtensionType):
        return why_never(found.storage_type, kind)
    if kind.base in _UNSURE:
        return _UNSURE[kind.base]
    if pa.types.is_nested(found) or pa.types.is_duration(found) or pa.types.is_interval(found):
        return "turn it into text (JSON, for a jsonb column) or into columns of its own"
    if kind.is_text_alone:
        return _why_never_in_words(found, kind)
    if kind.base == "numeric":
        is_odd = kind.held is None and kind.modifier != UNLIMITED
        fits = is_of(is_number, found) and not is_odd
    elif kind.base == "timestamptz":
        fits = pa.types.is_timestamp(found)
    else:
        is_written = kind.base in ("time", "bytea") and is_of(is_text, found)
        assert kind.held is not None, "of a type that is no numeric and has a name"
        fits = is_written or may_hold(kind.held, found)
    return "" if fits else CONVERTED


def require_fitting(
    found: pa.DataType,
    name: str,
    kind: ColumnType,
    where: str = "",
    examples: pa.Array | None = None,
) -> None:
    """Raise ColumnNeverFits if no value of a type goes into a column."""
    if reason := why_never(found, kind):
        told = str(found)
        if examples is not None:
            told += f", as {shown(examples.drop_null().slice(0, 1))}"
        raise ColumnNeverFits(name, kind.shown, told, reason, where)


def _why_never_in_words(found: pa.DataType, kind: ColumnType) -> str:
    is_json = kind.base in ("json", "jsonb")
    if is_json and (is_of(is_number, found) or pa.types.is_boolean(found)):
        return ""
    if kind.base == "uuid" and pa.types.is_fixed_size_binary(found):
        return "" if found.byte_width == _UUID_BYTES else "a uuid has 16 bytes"
    if not is_of(is_text, found):
        return "it takes text in PostgreSQL's notation alone"
    is_rounded = kind.element and (kind.modifier != UNLIMITED or kind.element in _ROUNDED_IN_ARRAYS)
    if is_rounded or (kind.base == "interval" and kind.modifier != UNLIMITED):
        return "PostgreSQL may round or cut off what the text says"
    return ""


def _holds_all(found: pa.DataType, kind: ColumnType) -> bool:
    """Return whether each value of an Arrow type, of the years 1 to 9999 and without NUL, fits."""
    if pa.types.is_dictionary(found):
        return _holds_all(found.value_type, kind)
    if isinstance(found, pa.BaseExtensionType):
        return _holds_all(found.storage_type, kind)
    held = kind.held
    if held is None:
        return is_of(is_bytes, found)
    if is_of(is_number, found):
        return _holds_all_numbers(found, held)
    if is_of(is_text, found):
        return pa.types.is_string(held) and kind.length is None
    if pa.types.is_timestamp(found) or pa.types.is_time(found):
        return _DIGITS[found.unit] <= kind.fraction
    return not pa.types.is_date64(found)


def _holds_all_numbers(found: pa.DataType, held: pa.DataType) -> bool:
    if pa.types.is_floating(found):
        return bool(pa.types.is_floating(held) and found.bit_width <= held.bit_width)
    if pa.types.is_decimal(found):
        digits = found.precision - found.scale
        is_wide = pa.types.is_decimal(held) and digits <= held.precision - held.scale
        return bool(is_wide and found.scale <= held.scale)
    bits = found.bit_width - pa.types.is_signed_integer(found)
    if pa.types.is_integer(held):
        is_odd = pa.types.is_unsigned_integer(held) and pa.types.is_signed_integer(found)
        return bool(bits <= held.bit_width - pa.types.is_signed_integer(held) and not is_odd)
    if pa.types.is_decimal(held):
        return bool(len(str(2**bits)) <= held.precision - held.scale)
    return bool(bits <= (24 if pa.types.is_float32(held) else 53))


def sent(column: pa.Array, name: str, kind: ColumnType, where: str) -> pa.Array:
    """Return what is sent for a column, for CSV. Raises ColumnNeverFits, or ValueDoesNotFit with
    the first value that the column would not hold.
    """
    found = column.type
    if pa.types.is_dictionary(found):
        return sent(column.dictionary_decode(), name, kind, where)
    if isinstance(found, pa.BaseExtensionType):
        return sent(column.storage, name, kind, where)
    if column.null_count == len(column):
        # A column of a text file without a value in the sample is text, whatever comes later.
        return pa.nulls(len(column), pa.string())
    require_fitting(found, name, kind, where, column)
    return tried(column, name, kind.shown, where, lambda part: _converted(part, kind))


def _converted(column: pa.Array, kind: ColumnType) -> pa.Array:
    """The same values as CSV has them. Raises pa.ArrowInvalid for one that would change."""
    found, held = column.type, kind.held
    if is_of(is_text, found):
        return _text(column.cast(pa.string()), kind)
    if kind.is_text_alone:
        return _in_words(column, kind)
    if kind.base == "numeric":
        return _digits(column, held)
    assert held is not None, "why_never has looked"
    if kind.base == "timestamptz" and found.tz is None:
        # As in files: without a zone it is UTC.
        column = column.cast(pa.timestamp(found.unit, "UTC"))
    made = fitted(column, held)
    if pa.types.is_temporal(held):
        _require_time(made, kind)
    if is_of(is_bytes, held):
        return _hexadecimal(made, "\\x")
    return made


def _text(column: pa.Array, kind: ColumnType) -> pa.Array:
    require(pc.invert(pc.match_substring(column, "\0")), "PostgreSQL has no texts with NUL")
    if kind.base == "time":
        require(pc.match_substring_regex(column, _TIME), "it is no time as 12:30:00.250")
        _require_time(_times(column), kind)
    if kind.base == "bytea":
        require(pc.match_substring_regex(column, _BYTES), r"it is no bytes as \x00ff")
    if kind.length is not None:
        require_length(column, kind.length, is_filled_up=kind.base == "bpchar")
    return column


def _times(column: pa.Array) -> pa.Array:
    """Times of day of texts that are some."""
    seconds = pc.utf8_slice_codeunits(column, 0, 8)
    digits = pc.utf8_rpad(pc.utf8_slice_codeunits(column, 9, 15), 6, "0")
    whole = pc.strptime(seconds, format="%H:%M:%S", unit="us").cast(pa.time64("us"))
    total = pc.add(whole.cast(pa.int64()), digits.cast(pa.int64()))
    return total.cast(pa.time64("us"))


def _in_words(column: pa.Array, kind: ColumnType) -> pa.Array:
    if is_of(is_bytes, column.type):
        return _hexadecimal(column, "")
    if pa.types.is_floating(column.type) and kind.base in ("json", "jsonb"):
        require(pc.is_finite(column), "JSON has no such number")
        _require_plain(column)
    return _digits(column, None) if is_of(is_number, column.type) else column


def _digits(column: pa.Array, held: pa.DataType | None) -> pa.Array:
    """Numbers by all their digits."""
    if pa.types.is_floating(column.type):
        column = column.cast(pa.float32()) if pa.types.is_float16(column.type) else column
        if held is not None:
            is_nan = pc.is_nan(column)
            fitted(pc.if_else(is_nan, pa.scalar(None, column.type), column), held)
        _require_plain(column)
        return column
    if held is not None:
        fitted(column, held)
    return column.cast(pa.string()) if pa.types.is_decimal(column.type) else column


def _require_plain(column: pa.Array) -> None:
    if has_negative_zero(column):
        raise pa.ArrowInvalid("a zero would lose its sign")


def _require_time(column: pa.Array, kind: ColumnType) -> None:
    """Refuse what the digits of the column round, and years that are written otherwise."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s"))
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz))
        first, last = (pa.scalar(one, pa.int64()).cast(column.type) for one in _YEARS)
        told = "it is not of the years 1 to 9999"
        require(pc.and_(pc.greater_equal(column, first), pc.less_equal(column, last)), told)
    if kind.fraction < MICROSECONDS:
        unit, numbers = 10 ** (MICROSECONDS - kind.fraction), column.cast(pa.int64())
        whole = pc.multiply(pc.divide(numbers, unit), unit)
        told = f"the column keeps {kind.fraction} digits of a second"
        require(pc.equal(whole, numbers), told)


def _hexadecimal(column: pa.Array, prefix: str) -> pa.Array:
    texts = [None if value is None else prefix + value.hex() for value in column.to_pylist()]
    return pa.array(texts, pa.string())
