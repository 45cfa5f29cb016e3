"""A split: a part of a source that one reader reads from beginning to end, and its plain form.

Whatever travels or is kept is packed here, so that a value that is not plain is refused where it
comes from, in simulation as in production, and no two owners share a mutable value.
Pure; driver and tasks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgpack

from epochgate.runtime.api.plain_values import ValueNotPlain


@dataclass(frozen=True)
class SourceSplit:
    """One part of a source. `split_id` is its name, unique in the source; `value` is what a reader
    needs to know, a plain value: none, bool, int, float, str, bytes, lists and dicts of these.
    """

    split_id: str
    value: Any = None


def pack(value: Any, what: str) -> bytes:
    """`value` in msgpack; `what` names it in the error. Raises ValueNotPlain.

    >>> unpack(pack([1, b"x", {"rows": None}], "the state"))
    [1, b'x', {'rows': None}]
    """
    try:
        packed: bytes = msgpack.packb(value, strict_types=True)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ValueNotPlain(
            f"{what} is {value!r}, which cannot be kept or sent: {error}. It must be made of none, "
            "bool, int of 64 bits, float, str, bytes, and lists and dicts of these; turn tuples "
            "into lists and objects into lists of their fields"
        ) from error
    return packed


def unpack(data: bytes) -> Any:
    """Inverse of `pack`. Raises ValueError for bytes that it never made."""
    return msgpack.unpackb(data, strict_map_key=False)


def pack_splits(splits: Iterable[SourceSplit]) -> bytes:
    """The splits as they are sent to a reader. Raises ValueNotPlain.

    >>> unpack_splits(pack_splits([SourceSplit("a", [1, 2])]))
    [SourceSplit(split_id='a', value=[1, 2])]
    """
    values = [[split.split_id, split.value] for split in splits]
    return pack(values, "a list of [split id, split value]")


def unpack_splits(data: bytes) -> list[SourceSplit]:
    """Inverse of `pack_splits`."""
    return [SourceSplit(split_id, value) for split_id, value in unpack(data)]
