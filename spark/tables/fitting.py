"""Whether values stay the same as another type: arrow casts more than a table may take.

Decides which types hold which values: a number as a wider or narrower number that is equal to it, a
text as a text, a day as a moment; never a number as a text, or a moment as a day. Pure.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

IsKind = Callable[[pa.DataType], bool]


_LISTS: tuple[IsKind, ...] = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
)
_SORTS: tuple[tuple[IsKind, ...], ...] = (
    (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal),
    (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_binary_view,
        pa.types.is_fixed_size_binary,
    ),
    (pa.types.is_boolean,),
    (pa.types.is_date,),
    (pa.types.is_time,),
    (pa.types.is_duration,),
)


def _is_of(sort: tuple[IsKind, ...], kind: pa.DataType) -> bool:
    return any(is_it(kind) for is_it in sort)


def may_hold(agreed: pa.DataType, found: pa.DataType) -> bool:
    """Whether a column of type `agreed` may have values of type `found`, if each of them fits.

    >>> may_hold(pa.int32(), pa.int64()), may_hold(pa.string(), pa.int64())
    (True, False)
    """
    if agreed == found or pa.types.is_null(found):
        return True
    if pa.types.is_dictionary(found):
        return may_hold(agreed, found.value_type)
    if pa.types.is_timestamp(agreed):
        is_same_sort = pa.types.is_timestamp(found) and (agreed.tz is None) == (found.tz is None)
        return is_same_sort or (agreed.tz is None and pa.types.is_date(found))
    if _is_of(_LISTS, agreed):
        return _is_of(_LISTS, found) and may_hold(agreed.value_type, found.value_type)
    if pa.types.is_map(agreed):
        return pa.types.is_map(found) and (
            may_hold(agreed.key_type, found.key_type)
            and may_hold(agreed.item_type, found.item_type)
        )
    if pa.types.is_struct(agreed):
        return pa.types.is_struct(found) and _may_hold_fields(agreed, found)
    return any(_is_of(sort, agreed) and _is_of(sort, found) for sort in _SORTS)


def _may_hold_fields(agreed: pa.StructType, found: pa.StructType) -> bool:
    names = [field.name for field in agreed]
    return names == [field.name for field in found] and all(
        may_hold(one.type, other.type) for one, other in zip(agreed, found, strict=True)
    )


def fitted(column: pa.Array, agreed: pa.DataType) -> pa.Array:
    """The column as this type, which may hold it. Raises pa.ArrowException for a value that would
    change.

    >>> fitted(pa.array([0.5]), pa.float32()).to_pylist()
    [0.5]
    """
    if column.type == agreed:
        return column
    made = column.cast(agreed)
    if _has_floats(column.type) or _has_floats(agreed):
        # Of these alone arrow rounds without a word.
        again = made.cast(column.type)
        if not again.equals(column) and not _differ_in_nan_alone(again, column):
            raise pa.ArrowInvalid("a number would be rounded")
    return made


def _has_floats(kind: pa.DataType) -> bool:
    if pa.types.is_floating(kind):
        return True
    inner = [kind.field(at).type for at in range(kind.num_fields)]
    return any(map(_has_floats, inner))


def _differ_in_nan_alone(one: pa.Array, other: pa.Array) -> bool:
    if not pa.types.is_floating(other.type):
        return False
    differing = pc.and_not(pc.not_equal(one, other), pc.is_nan(other))
    return not pc.any(differing).as_py()
