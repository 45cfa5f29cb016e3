"""Breadth-first and depth-first search in plain Python, over any target: the compiled text, or the
machines themselves.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.compiler.python_target import StepFault
from epochgate.fsm.checker.engines.search import (
    DEADLOCK,
    PROPERTY,
    Finding,
    Level,
    Pause,
    Search,
    Words,
    canonical,
    distinct,
)
from epochgate.fsm.choosing import Choices

if TYPE_CHECKING:
    from epochgate.fsm.checker.reduction.chooser import Chooser

PIECE = 512
"""States between two pauses."""
UNKNOWN = -1
SAVED_TOGETHER = 1 << 12


class Target(Protocol):
    """Steps and properties of packed states, one state at a time."""

    covered: set[int]

    def enabled(self, state: Words) -> list[int]:
        """The numbers of the possible steps; raises StepFault."""

    def take(self, state: Words, number: int) -> Words:
        """The state after a step; raises StepFault."""

    def ways(self, state: Words, number: int) -> Iterator[tuple[Choices, Words]]:
        """Yield the choices of a step that is possible, each with the state after it; raises
        StepFault.
        """

    def chosen(self, number: int) -> Choices:
        """Return the choices of the step of this number as it was taken last."""

    def holds(self, name: str, state: Words) -> bool:
        """Return true if a property's method holds; raises StepFault."""


class PlainSearch(Search):
    """Keeps each state as a tuple of ints; its id is its number, in the order of finding."""

    def __init__(self, target: Target, program: Program, final: str | None) -> None:
        self._target, self._program, self._final = target, program, final
        self._is_symmetric = program.blocks[0] > 1
        self._chooser: Chooser | None = None
        if program.reduction is not None:
            from epochgate.fsm.checker.reduction.chooser import Chooser

            self._chooser = Chooser(program)
        self._numbers: dict[Words, int] = {}
        self._states: list[Words] = []
        self._parents = array("q")
        """From which state each was found; an initial one from itself. UNKNOWN if it was saved."""
        self._initial = 0
        self._levels: list[int] = []
        """With which state each level begins."""

    @property
    def states(self) -> int:
        return len(self._states)

    @property
    def memory_bytes(self) -> int:
        a_state = 56 + self._program.words * 40
        return sys.getsizeof(self._numbers) + len(self._states) * (16 + a_state)

    def begin(self, initial: Iterable[Words]) -> Level:
        for number, state in enumerate(distinct(self._program, initial)):
            self._enter(state, number)
        return self._level(0)

    @property
    def initial(self) -> Sequence[int]:
        return range(self._initial)

    def _level(self, first: int) -> Level:
        """The states from this one on, as the newest level."""
        if not first:
            self._initial = len(self._states)
        self._levels.append(first)
        return [range(first, len(self._states))]

    def _enter(self, state: Words, parent: int) -> None:
        self._numbers[state] = len(self._states)
        self._states.append(state)
        self._parents.append(parent)

    def expand(self, level: Level, pause: Pause) -> Finding | Level:
        first = len(self._states)
        for number in chain.from_iterable(level):
            if number % PIECE == 0:
                pause()
            if (found := self._expand(number)) is not None:
                return found
        return self._level(first) if len(self._states) > first else []

    def _expand(self, number: int) -> Finding | None:
        state = self._states[number]
        take, numbers, is_symmetric = self._target.take, self._numbers, self._is_symmetric
        codes, before = self._program.steps, self.transitions
        step, fault = None, None
        steps: list[int] = []
        successors: list[Words] = []
        try:
            for step in self._target.enabled(state):
                for after in (
                    (way[1] for way in self._target.ways(state, step))
                    if codes[step].ways
                    else (take(state, step),)
                ):
                    steps.append(step)
                    successors.append(after)
        except StepFault as found:
            fault = found.number
        kept = successors if fault is not None else self._kept(state, steps, successors)
        for after in kept:
            if is_symmetric:
                after = canonical(self._program, after)
            if after not in numbers:
                self._enter(after, number)
            self.transitions += 1
        if fault is not None:
            return Finding(number, fault, step)
        self.expanded += 1
        if self.transitions == before:
            if self._final is not None and not self._target.holds(self._final, state):
                return Finding(number, DEADLOCK)
            self.terminal_states += 1
        return None

    def _kept(self, state: Words, steps: list[int], successors: list[Words]) -> list[Words]:
        """The successors that are looked at: under partial-order reduction, some of them."""
        if self._chooser is None:
            return successors
        places = self._chooser.chosen(state, steps, successors)
        self.left_out += len(steps) - len(places)
        return [successors[place] for place in places]

    def descend(self, pause: Pause) -> Finding | None:
        stack = [*range(len(self._states))]
        while stack:
            if self.expanded % PIECE == 0:
                pause()
            first, number = len(self._states), stack.pop()
            if (found := self._expand(number)) is not None:
                return found
            stack += range(first, len(self._states))
        return None

    def everything(self) -> Iterator[Sequence[int]]:
        yield range(len(self._states))

    def examine(
        self, level: Iterable[Sequence[int]], demanded: int, pause: Pause
    ) -> Finding | None:
        names = [*self._program.properties]
        for number in chain.from_iterable(level):
            if number % PIECE == 0:
                pause()
            held = 0
            try:
                for bit, name in enumerate(names):
                    if self._target.holds(name, self._states[number]):
                        held |= 1 << bit
            except StepFault as fault:
                return Finding(number, fault.number)
            self.held |= held
            if demanded & held != demanded:
                return Finding(number, PROPERTY, held=held)
        return None

    def words(self, state: int) -> Words:
        return self._states[state]

    def number(self, words: Words) -> int:
        """The number of a state that was found."""
        return self._numbers[words]

    def chain(self, state: int) -> list[int]:
        found = [state]
        while (before := self._parent(found[-1])) != found[-1]:
            found.append(before)
        return found[::-1]

    def _parent(self, state: int) -> int:
        """The state from which it was found: of a saved one the first that leads to it."""
        if self._parents[state] == UNKNOWN:
            level = bisect_right(self._levels, state) - 1
            first, end = self._levels[level - 1 : level + 1]
            self._parents[state] = next(n for n in range(first, end) if self._leads(n, state))
        return self._parents[state]

    def _leads(self, number: int, state: int) -> bool:
        before, wanted = self._states[number], self._states[state]
        return any(
            canonical(self._program, after) == wanted
            for step in self._target.enabled(before)
            for _, after in self._target.ways(before, step)
        )

    def covered(self) -> set[int]:
        return set(self._target.covered)

    def saved(self, level: Level) -> Iterator[bytes]:
        for part in level:
            for start in range(0, len(part), SAVED_TOGETHER):
                words = array("q")
                for number in part[start : start + SAVED_TOGETHER]:
                    words.extend(self._states[number])
                yield words.tobytes()

    def restore(self, states: Iterable[bytes], rows: set[int]) -> Level:
        first, width = len(self._states), self._program.words
        for saved in states:
            packed = array("q", saved)
            for start in range(0, len(packed), width):
                number = len(self._states)
                self._enter(tuple(packed[start : start + width]), UNKNOWN if first else number)
        self._target.covered |= rows
        return self._level(first)
