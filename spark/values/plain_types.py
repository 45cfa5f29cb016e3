"""The type that all readers know for one that Parquet files of Arrow may have.

Decides which types differ in nothing but how Arrow keeps their values, and which wider one holds
those of a type that Spark has not. Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

_PLAIN: Final[Mapping[pa.DataType, pa.DataType]] = {
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
}


def plain(kind: pa.DataType) -> pa.DataType:
    """The type of Spark that holds each value of `kind`; another one stays as it is.

    >>> plain(pa.dictionary(pa.int32(), pa.large_string())), plain(pa.list_(pa.uint8(), 2))
    (DataType(string), ListType(list<element: int16>))
    """
    if kind in _PLAIN:
        return _PLAIN[kind]
    if isinstance(kind, pa.BaseExtensionType):
        return plain(kind.storage_type)
    of = pa.types
    if of.is_dictionary(kind):
        return plain(kind.value_type)
    if of.is_fixed_size_binary(kind):
        return pa.binary()
    if of.is_time(kind):
        return pa.time64("us" if kind.unit != "ns" else "ns")
    if of.is_struct(kind):
        return pa.struct([pa.field(one.name, plain(one.type)) for one in kind])
    if of.is_map(kind):
        return pa.map_(plain(kind.key_type), plain(kind.item_type))
    # Not views of lists: pyarrow casts them to lists whose last offset is missing.
    lists = (of.is_list, of.is_large_list, of.is_fixed_size_list)
    if any(is_such(kind) for is_such in lists):
        return pa.list_(pa.field("element", plain(kind.value_type)))
    return kind
