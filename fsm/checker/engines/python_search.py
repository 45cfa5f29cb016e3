"""Breadth-first and depth-first search in plain Python, over any target: the compiled text, or the
machines themselves.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.compiler.python_target import StepFault
from epochgate.fsm.checker.engines.search import (
    DEADLOCK,
    PROPERTY,
    Finding,
    Pause,
    Search,
    Span,
    Unsuited,
    Words,
    canonical,
    distinct,
)
from epochgate.fsm.choosing import Choices

PIECE = 512
"""States between two pauses."""


class Target(Protocol):
    """Steps and properties of packed states, one state at a time."""

    covered: set[int]

    def enabled(self, state: Words) -> list[int]:
        """The numbers of the possible steps; raises StepFault."""

    def take(self, state: Words, number: int) -> Words:
        """The state after a step; raises StepFault."""

    def ways(self, state: Words, number: int) -> Iterator[tuple[Choices, Words]]:
        """What may be chosen in a step that is possible, and the state after it; raises
        StepFault.
        """

    def chosen(self, number: int) -> Choices:
        """What the step of this number has chosen in the way that it was taken last."""

    def holds(self, name: str, state: Words) -> bool:
        """Whether a property's method holds; raises StepFault."""


class PlainSearch(Search):
    """Keeps each state as a tuple of ints."""

    def __init__(self, target: Target, program: Program, final: str | None) -> None:
        self._target, self._program, self._final = target, program, final
        self._is_symmetric = program.blocks[0] > 1
        self._numbers: dict[Words, int] = {}
        self._states: list[Words] = []
        self._parents = array("q")

    @property
    def states(self) -> int:
        return len(self._states)

    @property
    def memory_bytes(self) -> int:
        a_state = 56 + self._program.words * 40
        return sys.getsizeof(self._numbers) + len(self._states) * (16 + a_state)

    def begin(self, initial: Iterable[Words]) -> list[Span]:
        for number, state in enumerate(distinct(self._program, initial)):
            self._enter(state, number)
        return [(0, len(self._states))]

    def _enter(self, state: Words, parent: int) -> None:
        self._numbers[state] = len(self._states)
        self._states.append(state)
        self._parents.append(parent)

    def expand(self, level: Sequence[Span], pause: Pause) -> Finding | list[Span]:
        first = len(self._states)
        for start, end in level:
            for number in range(start, end):
                if number % PIECE == 0:
                    pause()
                if (found := self._expand(number)) is not None:
                    return found
        return [(first, len(self._states))] if len(self._states) > first else []

    def _expand(self, number: int) -> Finding | None:
        state = self._states[number]
        take, numbers, is_symmetric = self._target.take, self._numbers, self._is_symmetric
        codes, before = self._program.steps, self.transitions
        step = None
        try:
            for step in self._target.enabled(state):
                for after in (
                    (way[1] for way in self._target.ways(state, step))
                    if codes[step].ways
                    else (take(state, step),)
                ):
                    if is_symmetric:
                        after = canonical(self._program, after)
                    if after not in numbers:
                        self._enter(after, number)
                    self.transitions += 1
        except StepFault as fault:
            return Finding(number, fault.number, step)
        self.expanded += 1
        if self.transitions == before:
            if self._final is not None and not self._target.holds(self._final, state):
                return Finding(number, DEADLOCK)
            self.terminal_states += 1
        return None

    def descend(self, pause: Pause) -> Finding | list[Span]:
        stack = [*range(len(self._states))]
        while stack:
            if self.expanded % PIECE == 0:
                pause()
            first, number = len(self._states), stack.pop()
            if (found := self._expand(number)) is not None:
                return found
            stack += range(first, len(self._states))
        return [(0, len(self._states))]

    def examine(self, level: Sequence[Span], demanded: int, pause: Pause) -> Finding | None:
        names = [*self._program.properties]
        for start, end in level:
            for number in range(start, end):
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

    def parent(self, state: int) -> int:
        return self._parents[state]

    def covered(self) -> set[int]:
        return set(self._target.covered)

    def saved(self, level: Sequence[Span]) -> tuple[bytes, bytes]:
        words, parents = array("q"), array("I")
        for start, end in level:
            for number in range(start, end):
                words.extend(self._states[number])
                parents.append(self._parents[number])
        return words.tobytes(), parents.tobytes()

    def restore(self, level: Sequence[Span], words: bytes, parents: bytes, rows: set[int]) -> None:
        if level[0][0] != len(self._states) or len(level) != 1:
            raise Unsuited("it was written by several workers; go on with the llvm engine")
        packed, before = array("q", words), array("I", parents)
        width = self._program.words
        for position, parent in enumerate(before):
            start = position * width
            self._enter(tuple(packed[start : start + width]), parent)
        self._target.covered |= rows
