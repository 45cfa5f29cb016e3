"""The typed fields of a machine: what they hold when it runs, and what bounds them when it is
checked.

A field is declared like a dataclass field, `latest: int = Int("checkpoints")`. In production it is
a plain Python value without a bound; in a closed system "checkpoints" names a constant of that
system and the value is packed into as few bits as the bound needs. What a machine only passes on is
`Opaque`: a real payload in production, a small number in a model.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any, TypeVar, cast

from epochgate.fsm.errors import DeclarationError
from epochgate.fsm.rows import ANY

T = TypeVar("T")
Start = int | range | tuple[int, ...] | list[int] | str
"""What a field begins with; of several values, or of all that it may have (`ANY`), a check chooses
each.
"""
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

    def take(self, index: int) -> T:
        """Remove the item at an index, counted from the oldest, and return it; IndexError if there
        is none.
        """
        if index < 0:
            raise IndexError(f"a channel is looked into from its head on, and not at {index}")
        item = self[index]
        del self[index]
        return item

    def remove(self, item: T) -> None:
        """Remove the oldest item of this value; IndexError if there is none."""
        try:
            super().remove(item)
        except ValueError:
            raise IndexError(f"the channel does not hold {item!r}") from None

    def empty(self) -> bool:
        """Return whether nothing is held."""
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
    start: Start = 0
    low: int = 0
    wraps: bool = field(default=False, repr=False)
    names: str = field(default="", repr=False)
    """The constants of its module that its values are, for a reader."""

    def fresh(self, constants: dict[str, int]) -> int:
        return self.low if self.start == ANY else next(iter(_several(self.start)))

    def starts(self, constants: dict[str, int]) -> Sequence[int]:
        """The values that it may begin with, in their order."""
        if self.start == ANY:
            last = self.bound if isinstance(self.bound, int) else constants[self.bound]
            return range(self.low, last + 1)
        return self.start if isinstance(self.start, range) else [*_several(self.start)]


@dataclass(frozen=True)
class BoolField:
    """A truth value, false unless `start` says otherwise."""

    start: bool | str = False

    def fresh(self, constants: dict[str, int]) -> bool:
        return self.starts(constants)[0]

    def starts(self, constants: dict[str, int]) -> tuple[bool, ...]:
        """The values that it may begin with."""
        return (False, True) if self.start == ANY else (bool(self.start),)


@dataclass(frozen=True)
class FifoField:
    """A channel of at most `capacity` items; `item` says what they are: a bound for ints, or an
    opaque kind.
    """

    item: str
    capacity: str | int
    names: str = field(default="", repr=False)

    def fresh(self, constants: dict[str, int]) -> Fifo[Any]:
        return Fifo()


@dataclass(frozen=True)
class ArrayField:
    """One `item` for each number below the constant named `over`."""

    item: FieldSpec
    over: str
    start: tuple[Any, ...] | None = field(default=None, repr=False)
    """What each item begins with; None if they begin alike."""

    def fresh(self, constants: dict[str, int]) -> list[Any]:
        return [item.fresh(constants) for item in self.items(constants)]

    def items(self, constants: dict[str, int]) -> list[FieldSpec]:
        """Each item, with what it begins with; DeclarationError if these are more or fewer."""
        size = constants[self.over]
        if self.start is None:
            return [self.item] * size
        if len(self.start) != size:
            raise DeclarationError(
                f"an array over {self.over!r} has {size} items, but `start` gives it "
                f"{len(self.start)}, {self.start!r}; give one for each"
            )
        return [replace(cast(IntField, self.item), start=start) for start in self.start]


@dataclass(frozen=True)
class SetField:
    """A set of numbers below the constant `over`, which begins with those of `start`."""

    over: str | int
    start: tuple[int, ...] = ()

    def fresh(self, constants: dict[str, int]) -> set[int]:
        return {*self.start}


FieldSpec = IntField | BoolField | FifoField | SetField | ArrayField
FIELD_KINDS = (IntField, BoolField, FifoField, SetField, ArrayField)


def _several(start: Any) -> Iterable[Any]:
    """Each value once, of one value or of several."""
    return dict.fromkeys(start) if isinstance(start, range | tuple | list) else (start,)


def starts_differ(spec: FieldSpec) -> bool:
    """Return whether a field may begin with one of several values."""
    if isinstance(spec, ArrayField):
        several = any(len([*_several(start)]) > 1 or start == ANY for start in spec.start or ())
        return several or (spec.start is None and starts_differ(spec.item))
    if isinstance(spec, FifoField | SetField):
        return False
    return spec.start == ANY or len([*_several(spec.start)]) > 1


def wrapping(name: str, spec: IntField) -> property:
    """An attribute of a machine that holds a field which wraps, bound or not by a system."""
    hidden = f"_{name}"

    def read(machine: Any) -> int:
        return int(getattr(machine, hidden))

    def write(machine: Any, value: int) -> None:
        bound = spec.bound
        last = bound if isinstance(bound, int) else machine.system.constants[bound]
        setattr(machine, hidden, (value - spec.low) % (last - spec.low + 1) + spec.low)

    return property(read, write)


def Int(
    bound: str | int, start: Start = 0, *, low: int = 0, wraps: bool = False, names: str = ""
) -> int:
    """Declare an integer field with values from `low`, perhaps a negative number, to the constant
    that `bound` names. What is assigned is bounded by a check alone, unless the field `wraps`: then
    `low` comes after the bound, wherever the machine runs. It begins with `start`; in a closed
    system that may be a range, several values, or ANY, of which a check chooses each. `names`:
    constants of the module, as in "OPEN, SHUT", by which its values are shown.

    Raises DeclarationError for a start that is none of these.
    """
    if start != ANY and (isinstance(start, str) or not [*_several(start)]):
        raise DeclarationError(
            f"an Int cannot start as {start!r}; give it a number, a range or a list of numbers "
            f"that is not empty, or ANY for each number that it may hold"
        )
    given = tuple(start) if isinstance(start, list) else start
    return cast(int, IntField(bound, given, low, wraps, names))


def Bool(start: bool | str = False) -> bool:
    """Declare a boolean field; with `start=ANY` a check begins with either value.

    Raises DeclarationError for another start.
    """
    if start not in (False, True, ANY):
        raise DeclarationError(f"a Bool cannot start as {start!r}; write True, False or ANY")
    return cast(bool, BoolField(start))


def Channel(item: str, capacity: str | int, *, names: str = "") -> Fifo[Any]:
    """Declare a FIFO field whose items are of the kind `item` and, in a model, at most
    `capacity`; `names` as for `Int`.
    """
    return cast("Fifo[Any]", FifoField(item, capacity, names))


def Set(over: str | int, start: Iterable[int] = ()) -> set[int]:
    """Declare a set of numbers below the constant `over`, of at most 62; it begins with those of
    `start`.
    """
    return cast("set[int]", SetField(over, tuple(sorted(start))))


def Array(item: T, over: str, start: Iterable[Any] | None = None) -> list[T]:
    """Declare a fixed array of as many items as the constant `over` says: for one item per machine
    of an index set, the constant that INDEX_SETS names for it. `start` says what each of them
    begins with, if they do not begin alike.

    Raises DeclarationError for a start of channels, and for items that wrap.
    """
    if isinstance(item, IntField) and item.wraps:
        raise DeclarationError("an item of an array does not wrap; assign it `n % size`")
    if start is not None and isinstance(item, FifoField | SetField):
        raise DeclarationError(
            "an array of channels or sets has no `start`: they begin alike; fill them in a step"
        )
    given = None if start is None else tuple(start)
    return cast("list[T]", ArrayField(cast(FieldSpec, item), over, given))
