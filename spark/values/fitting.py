"""Conversions in which values stay the same: arrow casts more than a table may take.

Decides which types hold which values: a number as a wider or narrower number that is equal to it, a
text as a text, a day as a moment; never a number as a text, or a moment as a day. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from epochgate.spark.values.errors import ColumnNeverFits, ValueDoesNotFit

CONVERTED: Final = "its values would be converted"
IsKind = Callable[[pa.DataType], bool]
SHOWN_MAX: Final = 100
"""Characters of a value in a message."""

LISTS: Final[tuple[IsKind, ...]] = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
)
is_text: Final[tuple[IsKind, ...]] = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
)
is_bytes: Final[tuple[IsKind, ...]] = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
)
is_number: Final[tuple[IsKind, ...]] = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
)
_SORTS: tuple[tuple[IsKind, ...], ...] = (
    is_number,
    is_text,
    is_bytes,
    (pa.types.is_boolean,),
    (pa.types.is_date,),
    (pa.types.is_time,),
    (pa.types.is_duration,),
)


def is_of(sort: tuple[IsKind, ...], kind: pa.DataType) -> bool:
    """Return whether a type is one of these."""
    return any(is_it(kind) for is_it in sort)


def may_hold(agreed: pa.DataType, found: pa.DataType) -> bool:
    """Return whether a column of type `agreed` may have values of type `found`, if each of them
    fits.

    >>> may_hold(pa.int32(), pa.int64()), may_hold(pa.string(), pa.int64())
    (True, False)
    """
    if agreed == found or pa.types.is_null(found):
        return True
    if pa.types.is_dictionary(found):
        return may_hold(agreed, found.value_type)
    if isinstance(found, pa.BaseExtensionType):
        return may_hold(agreed, found.storage_type)
    if pa.types.is_timestamp(agreed):
        is_same_sort = pa.types.is_timestamp(found) and (agreed.tz is None) == (found.tz is None)
        return is_same_sort or (agreed.tz is None and pa.types.is_date(found))
    if is_of(LISTS, agreed):
        return is_of(LISTS, found) and may_hold(agreed.value_type, found.value_type)
    if pa.types.is_map(agreed):
        return pa.types.is_map(found) and (
            may_hold(agreed.key_type, found.key_type)
            and may_hold(agreed.item_type, found.item_type)
        )
    if pa.types.is_struct(agreed):
        return pa.types.is_struct(found) and _may_hold_fields(agreed, found)
    return any(is_of(sort, agreed) and is_of(sort, found) for sort in _SORTS)


def _may_hold_fields(agreed: pa.StructType, found: pa.StructType) -> bool:
    names = [field.name for field in agreed]
    return names == [field.name for field in found] and all(
        may_hold(one.type, other.type) for one, other in zip(agreed, found, strict=True)
    )


def fit(column: pa.Array, name: str, agreed: pa.DataType, where: str) -> pa.Array:
    """The column as this type. Raises ColumnNeverFits, or ValueDoesNotFit with the first value
    that would change.
    """
    if column.type == agreed:
        return column
    if column.null_count == len(column):
        # A column of a text file without a value in the sample is text, whatever comes later.
        return pa.nulls(len(column), agreed)
    if not may_hold(agreed, column.type):
        raise ColumnNeverFits(name, str(agreed), str(column.type), CONVERTED, where)
    return tried(column, name, str(agreed), where, lambda part: fitted(part, agreed))


def require_held(columns: pa.Schema, schema: pa.Schema) -> None:
    """Raise ColumnNeverFits if a table's column may have no value of a column of the schema; of
    texts, each value is looked at when it is there.
    """
    for one in schema:
        if one.name in columns.names and not is_of(is_text, one.type):
            agreed = columns.field(one.name).type
            if not may_hold(agreed, one.type):
                raise ColumnNeverFits(one.name, str(agreed), str(one.type), CONVERTED, "")


def tried(
    column: pa.Array,
    name: str,
    kind: str,
    where: str,
    convert: Callable[[pa.Array], pa.Array],
) -> pa.Array:
    """Convert the column by `convert`; where it raises a pa.ArrowException, raise ValueDoesNotFit
    with the first value at fault.
    """
    try:
        return convert(column)
    except pa.ArrowException:
        row = _first(column, convert)
        one = column.slice(row, 1)
        try:
            convert(one)
        except pa.ArrowException as error:
            raise ValueDoesNotFit(name, kind, shown(one), str(error), row, where) from error
        raise


def _first(column: pa.Array, convert: Callable[[pa.Array], pa.Array]) -> int:
    """The first row that does not convert, where one does not."""
    low, high = 0, len(column)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            convert(column.slice(low, middle - low))
            low = middle
        except pa.ArrowException:
            high = middle
    return low


def require(holds: pa.Array, reason: str) -> None:
    """Raise pa.ArrowInvalid unless each value holds, or is null."""
    if pc.any(pc.invert(holds)).as_py():
        raise pa.ArrowInvalid(reason)


def require_length(texts: pa.Array, length: int, *, is_filled_up: bool) -> None:
    """Raise pa.ArrowInvalid for a text that is too long, and, where shorter ones are filled up with
    spaces, for one of another length.
    """
    lengths = pc.utf8_length(texts)
    require(pc.less_equal(lengths, length), f"it has more than {length} characters")
    if is_filled_up:
        told = f"it would be filled up to {length} characters; use varchar or text"
        require(pc.equal(lengths, length), told)


def shown(one: pa.Array) -> str:
    """The only value of an array, for a person."""
    is_plain = pa.types.is_temporal(one.type) and not pa.types.is_interval(one.type)
    value = one.cast(pa.string())[0].as_py() if is_plain else one[0].as_py()
    told = repr(value) if isinstance(value, str | bytes) and not is_plain else str(value)
    return told if len(told) <= SHOWN_MAX else f"{told[:SHOWN_MAX]}..."


def fitted(column: pa.Array, agreed: pa.DataType) -> pa.Array:
    """The column as this type, which may hold it. Raises pa.ArrowException for a value that would
    change.

    >>> fitted(pa.array([0.5]), pa.float32()).to_pylist()
    [0.5]
    """
    if column.type == agreed:
        return column
    if isinstance(column.type, pa.BaseExtensionType):
        return fitted(column.storage, agreed)
    if pa.types.is_decimal(agreed) and pa.types.is_integer(column.type):
        # Arrow asks for the digits of the type, and not of the values.
        column = column.cast(pa.decimal256(76, agreed.scale))
    if pa.types.is_float16(column.type):
        # Arrow computes little with these.
        column = column.cast(pa.float32())
    made = _cast(column, agreed)
    if _has_floats(column.type) or _has_floats(agreed):
        # Of these alone arrow rounds without a word.
        if not _is_same(_cast(made, column.type), column):
            raise pa.ArrowInvalid("a number would be rounded")
        if _loses_sign(column, agreed):
            raise pa.ArrowInvalid("a zero would lose its sign")
    return made


def _cast(column: pa.Array, agreed: pa.DataType) -> pa.Array:
    found = column.type
    for one, other in zip(_leaves(found), _leaves(agreed), strict=True):
        if pa.types.is_decimal(one) != pa.types.is_decimal(other) and (
            pa.types.is_floating(one) or pa.types.is_floating(other)
        ):
            if pa.types.is_nested(found):
                raise pa.ArrowInvalid(f"{one} within it would become {other}")
            # Arrow rounds between these to a neighbour of the nearest number.
            return column.cast(pa.string()).cast(agreed)
    return column.cast(agreed)


def _has_floats(kind: pa.DataType) -> bool:
    return any(map(pa.types.is_floating, _leaves(kind)))


def _leaves(kind: pa.DataType) -> Iterator[pa.DataType]:
    inner = types_in(kind)
    if not inner:
        yield kind
    for one in inner:
        yield from _leaves(one)


def _is_same(one: pa.Array, other: pa.Array) -> bool:
    """Return whether two arrays of one type have the same values; one NaN is as another."""
    if one.equals(other):
        return True
    kind = other.type
    if pa.types.is_float16(kind):
        # Arrow compares no numbers of this type.
        return _is_same(one.cast(pa.float32()), other.cast(pa.float32()))
    if pa.types.is_float16(kind):
        return _is_same(one.cast(pa.float32()), other.cast(pa.float32()))
    if pa.types.is_floating(kind):
        differing = pc.and_not(pc.not_equal(one, other), pc.and_(pc.is_nan(one), pc.is_nan(other)))
        return not pc.any(differing).as_py()
    return kind.num_fields > 0 and all(map(_is_same, values_in(one), values_in(other)))


def _loses_sign(column: pa.Array, agreed: pa.DataType) -> bool:
    """Return whether a zero with a sign becomes a number of a type that has none."""
    if pa.types.is_floating(column.type):
        return not pa.types.is_floating(agreed) and has_negative_zero(column)
    return any(map(_loses_sign, values_in(column), types_in(agreed)))


def has_negative_zero(column: pa.Array) -> bool:
    """Return whether one of the floating-point numbers is a zero with a sign."""
    zeros = column.filter(pc.equal(column, 0)).cast(pa.float64())
    return bool(pc.any(pc.less(pc.divide(1, zeros), 0)).as_py())


def types_in(kind: pa.DataType) -> list[pa.DataType]:
    """The types of what is within the values of a type."""
    if pa.types.is_map(kind):
        return [kind.key_type, kind.item_type]
    return [kind.field(at).type for at in range(kind.num_fields)]


def values_in(column: pa.Array) -> list[pa.Array]:
    """The values within those of a column, as far as they are of its rows."""
    kind = column.type
    if pa.types.is_struct(kind):
        return list(column.flatten())
    if pa.types.is_map(kind):
        begin, end = column.offsets[0].as_py(), column.offsets[-1].as_py()
        return [one.slice(begin, end - begin) for one in (column.keys, column.items)]
    return [column.flatten()] if kind.num_fields else []
