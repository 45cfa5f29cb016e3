"""A large state in named parts, so that a checkpoint writes only those that have changed.

Decides how parts are put together into the bytes of one state, and where those can be taken apart
again. An operator or coordinator returns `pack_parts(...)` as its state, and gets it back whole.
The store keeps each larger part by itself, and refers to one that an earlier checkpoint has. There
is no base and no chain of deltas: each checkpoint names all of its parts.
Pure functions, for any thread.

    def snapshot(self, checkpoint_id):
        return pack_parts({name: pack(bucket) for name, bucket in self.buckets.items()})

    def open(self, context, state):
        self.buckets = {name: unpack(part) for name, part in unpack_parts(state).items()}
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from itertools import accumulate, pairwise
from typing import Final

MAGIC: Final = b"\x89EPGPRTS"
_HEAD: Final = struct.Struct(">8sI")
_ENTRY: Final = struct.Struct(">IQ")


class PartsDamaged(ValueError):
    """Bytes that `pack_parts` has not made."""


def pack_parts(parts: Mapping[str, bytes]) -> bytes:
    """One state made of parts by name; equal parts in equal order give equal bytes.

    >>> unpack_parts(pack_parts({"a": b"12", "b": b""}))
    {'a': b'12', 'b': b''}
    """
    names = [name.encode() for name in parts]
    table = b"".join(
        _ENTRY.pack(len(name), len(part)) + name
        for name, part in zip(names, parts.values(), strict=True)
    )
    return b"".join((_HEAD.pack(MAGIC, len(names)), table, *parts.values()))


def unpack_parts(state: bytes | None) -> dict[str, bytes]:
    """The parts of a state; none of no state. Raises PartsDamaged."""
    if not state:
        return {}
    begin, found = _table_of(state)
    ends = list(accumulate((length for _, length in found), initial=begin))
    return {
        name: state[start:end]
        for (name, _), (start, end) in zip(found, pairwise(ends), strict=True)
    }


def pieces_of(state: bytes) -> list[bytes]:
    """The state cut where its parts begin; whole, if it does not consist of parts.

    >>> [len(piece) for piece in pieces_of(pack_parts({"a": b"12", "b": b"345"}))]
    [38, 2, 3]
    >>> pieces_of(b"anything")
    [b'anything']
    """
    try:
        begin, found = _table_of(state)
    except PartsDamaged:
        return [state]
    ends = list(accumulate((length for _, length in found), initial=begin))
    return [state[:begin], *(state[start:end] for start, end in pairwise(ends))]


def _table_of(state: bytes) -> tuple[int, list[tuple[str, int]]]:
    """Return the begin of the first part, and the names and lengths of all."""
    if len(state) < _HEAD.size or not state.startswith(MAGIC):
        raise PartsDamaged("a state in parts begins with its mark; pack_parts makes one")
    _, count = _HEAD.unpack_from(state)
    position, found = _HEAD.size, []
    for _ in range(count):
        if position + _ENTRY.size > len(state):
            raise PartsDamaged("the table of a state's parts is cut off")
        name_length, length = _ENTRY.unpack_from(state, position)
        position += _ENTRY.size
        try:
            name = state[position : position + name_length].decode()
        except UnicodeDecodeError as error:
            raise PartsDamaged("the name of a state's part is no text") from error
        found.append((name, length))
        position += name_length
    if position + sum(length for _, length in found) != len(state):
        raise PartsDamaged("the parts of a state do not have the lengths that its table has")
    return position, found
