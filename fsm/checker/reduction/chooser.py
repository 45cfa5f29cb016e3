"""Chooses the steps of a state for the engines in plain Python."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.compiler.python_target import PythonTarget
from epochgate.fsm.checker.engines.search import Words
from epochgate.fsm.checker.reduction import stubborn


class Chooser:
    """The choice for one program, which has a reduction."""

    def __init__(self, program: Program) -> None:
        assert program.reduction is not None
        self._reduction = program.reduction
        self._target = PythonTarget(program)
        self._constants = program.reduction.constants
        # A state is one element here, and not some words of an array.
        names = {"W": 1, "at": operator.getitem, "rises": self._rises}
        self._choose = stubborn.bound({**self._constants, **names})

    def chosen(self, state: Words, steps: Sequence[int], after: Sequence[Words]) -> list[int]:
        """Return the positions of the steps to take among all that are possible."""
        every = [*range(len(steps))]
        if len(steps) < 2:
            return every
        holds = [self._target.value(look, state) for look in self._reduction.looks]
        sets = [0] * self._constants["MEMORY"]
        searched = (state, after, steps, 0, len(steps), None, None)
        if not self._choose(*searched, holds, sets, self._reduction.tables):
            return every
        first = self._constants["CHOSEN"]
        return [q for q in every if sets[first + steps[q] // 64] >> steps[q] % 64 & 1]

    def _rises(self, before: Words, after: Words, _fault: Any, _covered: Any) -> bool:
        return self.rank(after) > self.rank(before)

    def rank(self, state: Words) -> tuple[int, ...]:
        """Return the place of a state in the order in which steps lead upwards."""
        return tuple(self._target.value(rank, state) for rank in self._reduction.ranks)
