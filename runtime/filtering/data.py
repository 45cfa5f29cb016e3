"""Filtering data: the values that matter, or everything when there are too many to name.

Values are compared as they are packed, so 1, 1.0 and True are three values. Equal data has equal
plain forms. Pure; driver and tasks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Self

import msgpack

from epochgate.runtime.api.plain_values import insist_on_plain

EVENT: Final = "filtering data"


@dataclass(frozen=True)
class FilteringData:
    """A set of plain values; `packed` is None when it is every value.

    >>> data = FilteringData.of(["north", 7])
    >>> data.allows("north"), data.allows("south"), FilteringData.everything().allows("south")
    (True, False, True)
    >>> FilteringData.from_plain(data.to_plain()) == data
    True
    """

    packed: frozenset[bytes] | None

    @classmethod
    def of(cls, values: Iterable[Any]) -> Self:
        """The data of these values. Raises ValueNotPlain."""
        return cls(frozenset(map(packed_value, values)))

    @classmethod
    def everything(cls) -> Self:
        """Data that leaves nothing out."""
        return cls(None)

    @classmethod
    def merged(cls, parts: Iterable[FilteringData], values_max: int) -> Self:
        """Merge filters into one that allows what any part allows; everything if those are more
        than `values_max` values.
        """
        values: set[bytes] = set()
        for part in parts:
            if part.packed is None:
                return cls.everything()
            values |= part.packed
        return cls(frozenset(values)) if len(values) <= values_max else cls.everything()

    def allows(self, value: Any) -> bool:
        """Return whether `value` may matter."""
        return self.packed is None or packed_value(value) in self.packed

    def to_plain(self) -> list[bytes] | None:
        """The form in which it travels and is kept."""
        return None if self.packed is None else sorted(self.packed)

    @classmethod
    def from_plain(cls, plain: list[bytes] | None) -> Self:
        """Inverse of `to_plain`."""
        return cls(None if plain is None else frozenset(plain))

    def __str__(self) -> str:
        if self.packed is None:
            return "everything"
        shown = [repr(msgpack.unpackb(value)) for value in sorted(self.packed)[:10]]
        more = len(self.packed) - len(shown)
        return f"{{{', '.join(shown)}{f' and {more} more' if more else ''}}}"


def packed_value(value: Any) -> bytes:
    """One value in msgpack. Raises ValueNotPlain."""
    insist_on_plain("a value to filter by", value)
    data: bytes = msgpack.packb(value)
    return data


def event_of(operator_id: str, data: FilteringData) -> list[Any]:
    """Return the event that the coordinator of `operator_id` gives to those who listen."""
    return [EVENT, operator_id, data.to_plain()]
