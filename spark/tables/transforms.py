"""Rows by the partitions of an Iceberg table, whose columns stay in the files.

Decides to which partition a row belongs, by the transforms of Iceberg's specification: a file holds
rows of one partition, so that any of its values tells the driver which. Leaves the values of
partitions to the driver and its library. Runs in tasks; imports nothing of any format.

A transform of a column is written "bucket[16] id", and several are given in their order; users
write "bucket(16,id)", and the name of a column for its identity.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from epochgate.spark.parquet_sink.partitions import PartitionUnusable

_WRITTEN: Final = re.compile(r"(?P<kind>[a-z]+)(\[(?P<width>[0-9]+)\])? (?P<column>.+)", re.DOTALL)
_GIVEN: Final = re.compile(r"(?P<kind>[a-z]+)\(((?P<width>[0-9]+) *, *)?(?P<column>[^()]+)\)")
_WORD: Final = 0xFFFFFFFF
_LEAST: Final = -(2**63)


def transforms_of(given: Sequence[str]) -> tuple[str, ...]:
    """Read the transforms as users write them. Raises PartitionUnusable.

    >>> transforms_of(["country", "day(ts)", "bucket(16, id)"])
    ('identity country', 'day ts', 'bucket[16] id')
    """
    return tuple(map(_transform_of, given))


def _transform_of(given: str) -> str:
    found = _GIVEN.fullmatch(given)
    if found is None:
        return f"identity {given}"
    kind, width = found["kind"], found["width"]
    if kind not in TAKEN or (kind in _OF_WIDTH) != bool(width and int(width)):
        raise PartitionUnusable(given, f"the transforms of Iceberg are {_FORMS}")
    return f"{kind}[{int(width)}] {found['column']}" if width else f"{kind} {found['column']}"


def require_transformable(schema: pa.Schema, transforms: Sequence[str]) -> None:
    """Raise PartitionUnusable unless rows of `schema`, which has types of Iceberg, can be
    partitioned by these transforms.
    """
    for written in transforms:
        found = _WRITTEN.fullmatch(written)
        assert found is not None, written
        name, kind = found["column"], found["kind"]
        if name not in schema.names:
            raise PartitionUnusable(name, f"the output has {', '.join(schema.names)}")
        of = _named(schema.field(name).type)
        if of not in TAKEN[kind]:
            taken = ", ".join(sorted(TAKEN[kind]))
            raise PartitionUnusable(name, f"it is {of}, and {kind} is made of {taken}")


def _named(kind: pa.DataType) -> str:
    """The name that Iceberg has for a type; another one for those of which nothing is made."""
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "timestamptz"
    return _NAMES.get(str(kind), str(kind))


def split_by(transforms: Sequence[str], table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each partition, with a name for it that is the same for the same partition.
    Raises pa.ArrowInvalid for a number that has no partition.

    >>> table = pa.table({"id": [1, 12, 13]})
    >>> [part["id"].to_pylist() for _, part in split_by(["truncate[10] id"], table)]
    [[1], [12, 13]]
    """
    if not transforms:
        yield "", table
        return
    named = [_of_column(one, table) for one in transforms]
    rows: dict[tuple[Any, ...], list[int]] = {}
    for number, values in enumerate(zip(*named, strict=True)):
        rows.setdefault(values, []).append(number)
    for values, numbers in rows.items():
        yield repr(values), table.take(pa.array(numbers))


def _of_column(written: str, table: pa.Table) -> list[Any]:
    found = _WRITTEN.fullmatch(written)
    assert found is not None, written
    column = table[found["column"]].combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # of several, or of none
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    distinct = column.dictionary_encode()
    values = _KINDS[found["kind"]](distinct.dictionary, int(found["width"] or 0)).to_pylist()
    return [None if at is None else values[at] for at in distinct.indices.to_pylist()]


def _identity(values: pa.Array, _width: int) -> pa.Array:
    return values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values


def _bucket(values: pa.Array, width: int) -> pa.Array:
    return pa.array([(hash_of(one) & 0x7FFFFFFF) % width for one in _as_hashed(values)])


def _as_hashed(values: pa.Array) -> list[bytes]:
    """The bytes of which the specification makes the hash."""
    if pa.types.is_string(values.type):
        return [text.encode() for text in values.to_pylist()]
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    return [struct.pack("<q", number) for number in values.cast(pa.int64()).to_pylist()]


def hash_of(data: bytes) -> int:
    """Murmur3, x86, 32 bits, seed 0.

    >>> hash_of(struct.pack("<q", 34)), hash_of(b"iceberg")
    (2017239379, 1210000089)
    """
    found = 0
    whole = len(data) & ~3
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        found ^= _mixed(word)
        found = ((found << 13) | (found >> 19)) & _WORD
        found = (found * 5 + 0xE6546B64) & _WORD
    found ^= _mixed(int.from_bytes(data[whole:], "little")) if whole < len(data) else 0
    found ^= len(data)
    found = ((found ^ (found >> 16)) * 0x85EBCA6B) & _WORD
    found = ((found ^ (found >> 13)) * 0xC2B2AE35) & _WORD
    return found ^ (found >> 16)


def _mixed(word: int) -> int:
    word = (word * 0xCC9E2D51) & _WORD
    return (((word << 15) | (word >> 17)) * 0x1B873593) & _WORD


def _truncate(values: pa.Array, width: int) -> pa.Array:
    if pa.types.is_string(values.type):
        return pc.utf8_slice_codeunits(values, 0, width)
    numbers = values.to_pylist()
    if numbers and (least := min(numbers)) - least % width < _LEAST:
        raise pa.ArrowInvalid(f"{least} cannot be truncated to a multiple of {width}")
    return pa.array([number - number % width for number in numbers], pa.int64())


def _months(values: pa.Array, _width: int) -> pa.Array:
    return pc.add(pc.multiply(pc.year(values), 12), pc.month(values))


def _years(values: pa.Array, _width: int) -> pa.Array:
    return pc.year(values)


def _days(values: pa.Array, _width: int) -> pa.Array:
    if pa.types.is_date32(values.type):
        return values.cast(pa.int32())
    return _truncate(values.cast(pa.int64()), 86_400_000_000)


def _hours(values: pa.Array, _width: int) -> pa.Array:
    return _truncate(values.cast(pa.int64()), 3_600_000_000)


_KINDS: Final[dict[str, Callable[[pa.Array, int], pa.Array]]] = {
    "identity": _identity,
    "bucket": _bucket,
    "truncate": _truncate,
    "year": _years,
    "month": _months,
    "day": _days,
    "hour": _hours,
}
_WHOLE: Final = {"int", "long"}
_TIMES: Final = {"timestamp", "timestamptz"}
TAKEN: Final = {
    "identity": {*_WHOLE, *_TIMES, "boolean", "date", "string"},
    "bucket": {*_WHOLE, *_TIMES, "date", "string"},
    "truncate": {*_WHOLE, "string"},
    "year": {*_TIMES, "date"},
    "month": {*_TIMES, "date"},
    "day": {*_TIMES, "date"},
    "hour": _TIMES,
}
"""The types of Iceberg of which each transform is made."""
_OF_WIDTH: Final = {"bucket", "truncate"}
_FORMS: Final = (
    "a column's name, bucket(16,id), truncate(10,name), year(at), month(at), day(at) and hour(at)"
)
_NAMES: Final = {
    "int32": "int",
    "int64": "long",
    "bool": "boolean",
    "date32[day]": "date",
    "string": "string",
}
