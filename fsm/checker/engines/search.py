"""The common part of all searches: states with ids, levels, and what stops a search.

A search gives each state that it finds an id, and goes on level by level. Between pieces of a level
it asks whether to go on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from epochgate.fsm.checker.compiler.ir import Program

Words = tuple[int, ...]
Level = Sequence[Sequence[int]]
"""The ids of the states of one level, in parts."""

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


Pause = Callable[[], None]
"""Called between pieces of work; raises Stopped."""


class Search(ABC):
    """The states found so far; `held` has a bit for each property that held somewhere."""

    transitions: int = 0
    terminal_states: int = 0
    held: int = 0
    expanded: int = 0
    """States whose successors are known."""
    left_out: int = 0
    """Possible steps that were not taken, under partial-order reduction."""
    begun_at: int = 0
    """The depth of the level that `begin` returns: more where a search keeps its levels itself."""

    @property
    @abstractmethod
    def states(self) -> int:
        """The number of distinct states."""

    @property
    @abstractmethod
    def initial(self) -> Sequence[int]:
        """The ids of the initial states, in their order."""

    @property
    @abstractmethod
    def memory_bytes(self) -> int:
        """The memory of the states and their table, in bytes."""

    @property
    def disk_bytes(self) -> int:
        """The bytes of the states on disk, if they are kept there."""
        return 0

    def room_for(self, memory_max: int) -> tuple[int, str]:
        """Guess for how many states there is room, and where."""
        return self.states * memory_max // max(1, self.memory_bytes), "memory"

    @abstractmethod
    def begin(self, initial: Iterable[Words]) -> Level:
        """Enter the initial states, each once; returns the first level."""

    @abstractmethod
    def expand(self, level: Level, pause: Pause) -> Finding | Level:
        """Find the successors of a level: the next one, or the first violation."""

    @abstractmethod
    def examine(
        self, level: Iterable[Sequence[int]], demanded: int, pause: Pause
    ) -> Finding | None:
        """Evaluate all properties in the states of a level; those of the mask must hold."""

    @abstractmethod
    def words(self, state: int) -> Words:
        """The packed state of this id."""

    @abstractmethod
    def chain(self, state: int) -> list[int]:
        """The states on a way from an initial one, both included: a shortest way if the search is
        breadth-first.
        """

    @abstractmethod
    def covered(self) -> set[int]:
        """The numbers of the rows that were taken, in the states in which they were."""

    @abstractmethod
    def descend(self, pause: Pause) -> Finding | None:
        """Find everything depth-first."""

    @abstractmethod
    def everything(self) -> Iterator[Sequence[int]]:
        """The ids of all states, some at a time."""

    @abstractmethod
    def saved(self, level: Level) -> Iterator[bytes]:
        """The words of the states of a level, some states at a time."""

    @abstractmethod
    def restore(self, states: Iterable[bytes], rows: set[int]) -> Level:
        """Enter the next level that was saved."""

    def close(self) -> None:
        """End what was begun beside the search; what was found can still be read."""

    def recount(self, transitions: int, terminal_states: int, held: int, left_out: int) -> None:
        """Go on counting from what a saved search had counted."""
        self.transitions, self.terminal_states, self.held = transitions, terminal_states, held
        self.left_out = left_out


def distinct(program: Program, states: Iterable[Words]) -> list[Words]:
    """The states that stand for these, each once, in their order."""
    return [*dict.fromkeys(canonical(program, words) for words in states)]


def size(level: Level) -> int:
    """Return the number of states of a level."""
    return sum(len(part) for part in level)


def canonical(program: Program, words: Words) -> Words:
    """The state that stands for this one and all that an exchange of instances makes of it."""
    blocks, first, width = program.blocks
    if blocks < 2:
        return words
    parts = sorted(words[first + b * width : first + (b + 1) * width] for b in range(blocks))
    last = first + blocks * width
    return (*words[:first], *(word for part in parts for word in part), *words[last:])


def states_of(level: Iterable[Sequence[int]]) -> Iterator[int]:
    """The states of a level, one after the other."""
    return (int(state) for part in level for state in part)
