"""What all searches have in common: numbered states, levels, and what stops a search.

A search numbers the states in the order in which it finds them, remembers from which state it found
each, and goes on level by level. Between pieces of a level it asks whether to go on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from epochgate.fsm.checker.compiler.ir import Program

Words = tuple[int, ...]
Span = tuple[int, int]
"""States by number, the second excluded."""

DEADLOCK = -2
PROPERTY = -3


@dataclass(frozen=True)
class Finding:
    """Something is wrong: in a step out of a state, or in the state.

    `fault` is the number of a fault, DEADLOCK, or PROPERTY: then `held` has a bit for each property
    that holds in the state.
    """

    state: int
    fault: int
    step: int | None = None
    held: int = 0


class Stopped(Exception):
    """A budget is used up; the text says which."""


class Unsuited(Exception):
    """A saved search cannot be gone on with by this one."""


Pause = Callable[[], None]
"""Called between pieces of work; raises Stopped."""


class Search(ABC):
    """The states found so far; `held` has a bit for each property that held somewhere."""

    transitions: int = 0
    terminal_states: int = 0
    held: int = 0
    expanded: int = 0
    """States whose successors are known."""
    begun_at: int = 0
    """The depth of the level that `begin` returns: more where a search keeps its levels itself."""

    @property
    @abstractmethod
    def states(self) -> int:
        """How many distinct states there are."""

    @property
    @abstractmethod
    def memory_bytes(self) -> int:
        """What the states and the table of them take."""

    @abstractmethod
    def begin(self, initial: Iterable[Words]) -> list[Span]:
        """Enter the initial states, each once; returns the first level."""

    @abstractmethod
    def expand(self, level: Sequence[Span], pause: Pause) -> Finding | list[Span]:
        """Find the successors of a level: the next one, or the first violation."""

    @abstractmethod
    def examine(self, level: Sequence[Span], demanded: int, pause: Pause) -> Finding | None:
        """Evaluate all properties in the states of a level; those of the mask must hold."""

    @abstractmethod
    def words(self, state: int) -> Words:
        """The packed state of this number."""

    @abstractmethod
    def parent(self, state: int) -> int:
        """The state from which it was found; an initial one is its own."""

    @abstractmethod
    def covered(self) -> set[int]:
        """The numbers of the rows that were taken, in the states in which they were."""

    @abstractmethod
    def descend(self, pause: Pause) -> Finding | list[Span]:
        """Find everything depth-first; returns the states as one level."""

    @abstractmethod
    def saved(self, level: Sequence[Span]) -> tuple[Any, Any]:
        """The words and the parents of a level as bytes, in the order of the spans."""

    @abstractmethod
    def restore(self, level: Sequence[Span], words: bytes, parents: bytes, rows: set[int]) -> None:
        """Enter a level that was saved."""

    def close(self) -> None:
        """End what was begun beside the search; what was found can still be read."""

    def recount(self, transitions: int, terminal_states: int, held: int) -> None:
        """Go on counting from what a saved search had counted."""
        self.transitions, self.terminal_states, self.held = transitions, terminal_states, held

    def chain(self, state: int) -> list[int]:
        """The states on the way from an initial one, both included."""
        found = [state]
        while (before := self.parent(found[-1])) != found[-1]:
            found.append(before)
        return found[::-1]

    def initial(self) -> list[int]:
        """The numbers of the initial states, of a search by one worker: the first ones."""
        return [*takewhile(lambda state: self.parent(state) == state, range(self.states))]


def distinct(program: Program, states: Iterable[Words]) -> list[Words]:
    """The states that stand for these, each once, in their order."""
    return [*dict.fromkeys(canonical(program, words) for words in states)]


def size(level: Sequence[Span]) -> int:
    """How many states a level has."""
    return sum(end - first for first, end in level)


def canonical(program: Program, words: Words) -> Words:
    """The state that stands for this one and all that an exchange of instances makes of it."""
    blocks, first, width = program.blocks
    if blocks < 2:
        return words
    parts = sorted(words[first + b * width : first + (b + 1) * width] for b in range(blocks))
    last = first + blocks * width
    return (*words[:first], *(word for part in parts for word in part), *words[last:])


def states_of(level: Sequence[Span]) -> Iterator[int]:
    """The states of a level, one after the other."""
    for first, end in level:
        yield from range(first, end)
