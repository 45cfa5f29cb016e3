"""Chooses the steps of a state for the engines in plain Python."""

from __future__ import annotations

from collections.abc import Sequence

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

    def chosen(self, state: Words, steps: Sequence[int], after: Sequence[Words]) -> list[int]:
        """Return the positions of the steps to take among all that are possible."""
        every = [*range(len(steps))]
        if len(steps) < 2:
            return every
        tables = self._reduction.tables
        count, cases = tables[stubborn.STEPS], tables[stubborn.CASES]
        chosen = [0] * count
        is_part = stubborn.choose(
            steps,
            0,
            len(steps),
            [self.rank(one) > self.rank(state) for one in after],
            [self._target.value(look, state) for look in self._reduction.looks],
            chosen,
            [0] * count,
            [0] * count,
            [0] * cases,
            [0] * (cases + 2),
            [0] * tables[stubborn.CONDITIONS],
            [0] * cases,
            tables,
        )
        return [place for place in every if chosen[steps[place]]] if is_part else every

    def rank(self, state: Words) -> tuple[int, ...]:
        """Return the place of a state in the order in which steps lead upwards."""
        return tuple(self._target.value(rank, state) for rank in self._reduction.ranks)
