"""The typed fields of a machine: what they hold when it runs, and what bounds them when it is
checked.

A field is declared like a dataclass field, `latest: int = Int("checkpoints")`. In production it is
a plain Python value without a bound; in a closed system "checkpoints" names a constant of that
system and the value is packed into as few bits as the bound needs. What a machine only passes on is
`Opaque`: a real payload in production, a small number in a model.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import repeat
from typing import Any, TypeVar, cast

T = TypeVar("T")
Opaque = Any


class Fifo(deque[T]):
    """A first-in-first-out channel; all operations but `drain` and `take_all` are O(1)."""

    __slots__ = ()

    push = deque.append
    """Append an item."""
    pop = deque.popleft
    """Remove the oldest item and return it; IndexError if there is none."""
    size = deque.__len__
    """How many items are held."""

    def head(self) -> T:
        """Return the oldest item and keep it; IndexError if there is none."""
        return self[0]

    def empty(self) -> bool:
        """Whether nothing is held."""
        return not self

    def drain(self, other: Fifo[T]) -> None:
        """Append everything that `other` holds, in its order, and leave `other` empty."""
        self.extend(other)
        other.clear()

    def take_all(self) -> Iterable[T]:
        """Pop every item that is there now, oldest first."""
        return map(deque.popleft, repeat(self, len(self))) if self else ()


@dataclass(frozen=True)
class IntField:
    """An integer from `low` to the constant `bound`."""

    bound: str | int
    start: int = 0
    low: int = 0

    def fresh(self, constants: dict[str, int]) -> int:
        return self.start


@dataclass(frozen=True)
class BoolField:
    """A truth value, false unless `start` says otherwise."""

    start: bool = False

    def fresh(self, constants: dict[str, int]) -> bool:
        return self.start


@dataclass(frozen=True)
class FifoField:
    """A channel of at most `capacity` items; `item` says what they are: a bound for ints, or an
    opaque kind.
    """

    item: str
    capacity: str | int

    def fresh(self, constants: dict[str, int]) -> Fifo[Any]:
        return Fifo()


@dataclass(frozen=True)
class ArrayField:
    """One `item` for each number below the constant named `over`."""

    item: FieldSpec
    over: str

    def fresh(self, constants: dict[str, int]) -> list[Any]:
        return [self.item.fresh(constants) for _ in range(constants[self.over])]


FieldSpec = IntField | BoolField | FifoField | ArrayField


def Int(bound: str | int, start: int = 0, *, low: int = 0) -> int:
    """Declare an integer field with values from `low`, perhaps a negative number, to the constant
    that `bound` names.
    """
    return cast(int, IntField(bound, start, low))


def Bool(start: bool = False) -> bool:
    """Declare a boolean field."""
    return cast(bool, BoolField(start))


def Channel(item: str, capacity: str | int) -> Fifo[Any]:
    """Declare a FIFO field whose items are of the kind `item` and, in a model, at most
    `capacity`.
    """
    return cast("Fifo[Any]", FifoField(item, capacity))


def Array(item: T, over: str) -> list[T]:
    """Declare a fixed array of as many items as the constant `over` says: for one item per machine
    of an index set, the constant that INDEX_SETS names for it.
    """
    return cast("list[T]", ArrayField(cast(FieldSpec, item), over))
