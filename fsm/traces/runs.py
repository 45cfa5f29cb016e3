"""Steps, and runs of steps that differ in numbers alone and share a line of a trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, repeat
from typing import Any, Final

from epochgate.fsm.machine import Machine
from epochgate.fsm.ports import Effect

TIMES_MAX: Final = 10_000
"""How many steps share a line at most, so that a line can be held in memory when it is checked."""
Values = tuple[Any, ...]
Sent = tuple[type[Effect], Values, Values]
"""An effect: its class, the index of its machine, and what is written of its arguments."""


@dataclass(slots=True)
class Step:
    """One event with its effects, and what is written of its arguments."""

    trigger: str
    machine: Machine
    arguments: Values
    effects: list[Sent]

    def parts(self) -> list[Values]:
        """Return what is written: the arguments, then those of each effect."""
        return [self.arguments, *(arguments for _, _, arguments in self.effects)]

    def is_like(self, other: Step) -> bool:
        """Return whether both differ in values alone."""
        return (
            self.trigger == other.trigger
            and self.machine is other.machine
            and [sent[:2] for sent in self.effects] == [sent[:2] for sent in other.effects]
        )


class Run:
    """Steps that share a line: the first, how many, and which numbers grow by one with each."""

    def __init__(self, step: Step, now_s: float) -> None:
        self.step, self.now_s, self.times = step, now_s, 1
        self.grows: list[tuple[bool, ...]] = []
        """Of each part; known from the second step on."""

    def takes(self, other: Step) -> bool:
        """Return whether a further step belongs to it; then it is counted."""
        if self.times == TIMES_MAX or not other.is_like(self.step):
            return False
        parts = other.parts()
        if self.times == 1:
            grows = [_growth(*pair) for pair in zip(self.step.parts(), parts, strict=True)]
            self.grows = [each for each in grows if each is not None]
            if len(self.grows) < len(parts):
                return False
        elif parts != [next(part) for part in self.expected(*(() for _ in other.effects))]:
            return False
        self.times += 1
        return True

    def expected(self, *indexes: Values) -> list[Iterator[Values]]:
        """Return what each part of the next steps has to be, effects behind their index."""
        parts = zip(self.step.parts(), self.grows, ((), *indexes), strict=True)
        return [
            growing((*index, *part), (*(False for _ in index), *grows), self.times)
            for part, grows, index in parts
        ]

    def written(self) -> list[list[Any]]:
        """The values of each part, with a pair for what has grown."""
        if self.times == 1:
            return [list(part) for part in self.step.parts()]
        return [
            [[one, one + self.times - 1] if g else one for one, g in zip(part, grows, strict=True)]
            for part, grows in zip(self.step.parts(), self.grows, strict=True)
        ]


def _growth(one: Values, other: Values) -> tuple[bool, ...] | None:
    """Return the values that grew by one; None unless all others are the same."""
    if one == other:
        return (False,) * len(one)
    pairs = [*zip(one, other, strict=True)] if len(one) == len(other) else [(0, 0.5)]
    is_run = all(a == b or (type(a) is int and b == a + 1) for a, b in pairs)
    return tuple(a != b for a, b in pairs) if is_run else None


def growing(part: Sequence[Any], grows: Sequence[bool], since: int = 0) -> Iterator[Values]:
    """The values of a part in the steps after the first `since` of a run, without end."""
    if not part:
        return repeat(())
    columns = (
        count(one + since) if each else repeat(one) for one, each in zip(part, grows, strict=True)
    )
    return zip(*columns, strict=True)
