"""Values that a closed system chooses: what an instance begins with, and what a step takes.

A check goes every way: it takes a step once for each combination of values. A `Tape` holds the
choices of one way, each as a position among what there is to choose from; after a way was taken,
`advance` makes it the next one. All engines go the ways in the same order, the last choice first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

CHOICES_MAX = 64
"""How many values one step may choose, one after the other."""
WAYS_MAX = 1 << 16
"""In how many ways one step of an instance may be taken in a state."""

Choices = tuple[int, ...]
"""What was chosen in one way, in order."""


class WayClosed(Exception):
    """A step cannot be taken with what was chosen; no fault, since it can be with something else,
    or not at all.
    """


class NothingToChoose(Exception):
    """There is no value to choose from."""


class TooManyChoices(Exception):
    """A step chooses too many values, or can be taken in too many ways."""


class Tape:
    """The choices of one way to take a step."""

    def __init__(self) -> None:
        self.positions: list[int] = []
        self._counts: list[int] = []
        self._next = 0
        self.told: list[int] = []
        """The values that were chosen, as far as the step has come."""
        self._wanted: Sequence[int] = ()

    def begin(self, positions: Choices = (), values: Sequence[int] = ()) -> None:
        """Take the first way that begins with these choices, by position or by value."""
        self.positions, self._counts = [*positions], [0] * len(positions)
        self._wanted = values
        self.rewind()

    def rewind(self) -> None:
        """Take this way from its beginning."""
        self._next, self.told = 0, []

    def choose(self, count: int) -> int:
        """A number below `count`; raises WayClosed for a known way that has another one, and
        TooManyChoices.
        """
        at = self._next
        if at == CHOICES_MAX:
            raise TooManyChoices(f"a step chooses more than {CHOICES_MAX} values")
        self._next += 1
        if at == len(self.positions):
            self.positions.append(0)
            self._counts.append(count)
        self._counts[at] = count
        if self.positions[at] >= count:
            raise WayClosed
        return self.positions[at]

    def value(self, options: Iterable[int]) -> int:
        """One of these values; raises NothingToChoose if there is none."""
        values = options if isinstance(options, range) else tuple(dict.fromkeys(options))
        if not values:
            raise NothingToChoose("there is nothing to choose from")
        if self._next < len(self._wanted):
            if (wanted := self._wanted[self._next]) not in values:
                raise WayClosed
            position = values.index(wanted)
            self.positions[self._next :] = [position]
            self._counts[self._next :] = [len(values)]
        chosen = int(values[self.choose(len(values))])
        self.told.append(chosen)
        return chosen

    def advance(self) -> bool:
        """Go over to the beginning of the next way; False if there is none."""
        is_over = not self._to_next()
        self.rewind()
        return not is_over

    def _to_next(self) -> bool:
        del self.positions[self._next :], self._counts[self._next :]
        while self.positions and self.positions[-1] + 1 >= self._counts[-1]:
            self.positions.pop()
            self._counts.pop()
        if not self.positions:
            return False
        self.positions[-1] += 1
        return True


Over = str | range | tuple[int, ...]
"""What a step chooses an argument from: the numbers below a constant of the system, or these."""


def options(over: Over, constants: dict[str, int]) -> Sequence[int]:
    """The values that an argument of a step may have; KeyError for an unknown constant."""
    if isinstance(over, str):
        return range(constants[over])
    return over if isinstance(over, range) else tuple(dict.fromkeys(over))


def fault_of(over: Over, constants: Iterable[str]) -> str:
    """Return what is wrong with what a step chooses an argument from; empty if nothing is."""
    if isinstance(over, str):
        return "" if over in constants else f"{over!r} is no constant; there are {[*constants]}"
    if over and all(type(one) is int for one in over):
        return ""
    return f"{over!r} is no choice; name a constant, or write a range or a tuple of numbers"


def named(step: str, values: Sequence[int]) -> str:
    """A step with what it chose, `shop.deliver(2)`, as a counterexample and a schedule name it."""
    return f"{step}({', '.join(map(str, values))})" if values else step


def parsed(step: str) -> tuple[str, tuple[int, ...]]:
    """The step and the values of such a name; ValueError for one that is not."""
    name, _, values = step.partition("(")
    return name, tuple(int(value) for value in values.rstrip(")").split(",") if value.strip())


F = TypeVar("F", bound=Callable[..., Any])


def initially(claim: str) -> Callable[[F], F]:
    """Let the system begin only in states in which the method holds, of all those that the fields
    and states of its machines may begin with.
    """

    def mark(method: F) -> F:
        method.epochgate_initially = claim  # type: ignore[attr-defined]  # `start_conditions` reads it
        return method

    return mark


def start_conditions(system: type) -> tuple[str, ...]:
    """The names of the methods of a system that hold in each of its initial states."""
    names = dict.fromkeys(n for c in reversed(system.__mro__) for n in vars(c))
    return tuple(n for n in names if hasattr(getattr(system, n, None), "epochgate_initially"))
