"""Random schedules over the machines, the `transitions` library and every compiled target, side by
side and in both directions: a step that is possible here is possible there, and one that is not is
not.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from epochgate.fsm.closed import ClosedSystem
from epochgate.fsm.compiler.layout import Packing
from epochgate.fsm.compiler.lowering import Lowering
from epochgate.fsm.compiler.numpy_target import NumpyTarget
from epochgate.fsm.compiler.python_target import PythonTarget
from epochgate.fsm.explore import check
from epochgate.fsm.explore.interpreted import InterpretedTarget
from epochgate.fsm.library import LibraryTwin
from epochgate.models.reference import Reference
from tests.checker.gymnasium import Gymnasium
from tests.checker.small_systems import House

WALKS = 12
STEPS_MAX = 80
SYSTEMS = (Reference(), Reference(N=3, C=1, E=2), House(visitors=3), Gymnasium())


class SideBySide:
    """One system in all its forms, in the same state."""

    def __init__(self, system: ClosedSystem) -> None:
        lowering = Lowering(system)
        self.program = lowering.program()
        self.python = PythonTarget(self.program)
        self.numpy = NumpyTarget(self.program)
        self.interpreted = InterpretedTarget(system, self.program, lowering.layout)
        self.library = type(system)(
            **{n: v for n, v in system.constants.items() if n not in system.DERIVED}
        )
        self.packing = Packing(self.library, lowering.layout)

    def possible(self, state: tuple[int, ...]) -> list[int]:
        """The possible steps, as all see them."""
        found = self.python.enabled(state)
        assert self.interpreted.enabled(state) == found
        columns = [np.array([word], np.int64) for word in state]
        numbers = range(len(self.program.steps))
        assert [n for n in numbers if self.numpy.enabled(columns, n)[0][0]] == found
        return found

    def taken(self, state: tuple[int, ...], number: int) -> tuple[int, ...]:
        """The state after a step, as all see it."""
        after = self.python.take(state, number)
        assert self.interpreted.take(state, number) == after
        columns, faults = self.numpy.take([np.array([word], np.int64) for word in state], number)
        assert tuple(int(column[0]) for column in columns) == after
        assert faults[0] == -1
        assert self.through_the_library(state, number) == (True, after)
        return after

    def through_the_library(
        self, state: tuple[int, ...], number: int
    ) -> tuple[bool, tuple[int, ...]]:
        """Whether `transitions` takes a step, and the state then."""
        self.packing.load(state)
        step, machine = self.library.step_instances()[number]
        is_taken = LibraryTwin(machine).fire(step.trigger)
        return is_taken, self.packing.words()

    def ignores(self, state: tuple[int, ...], number: int) -> bool:
        """Whether a row takes note of the step without doing anything."""
        self.packing.load(state)
        step, machine = self.library.step_instances()[number]
        return any(
            row.is_ignored
            for source, row in machine.expanded_rows()
            if row.trigger == step.trigger and source == machine.state
        )


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda s: type(s).__name__)
def test_every_form_of_a_system_takes_the_same_steps(system: Any) -> None:
    forms = SideBySide(system)
    names = [*forms.program.properties]
    for seed in range(WALKS):
        draw, state = random.Random(seed), forms.program.initial
        for _ in range(STEPS_MAX):
            steps = forms.possible(state)
            for name in names:
                assert forms.python.holds(name, state) == forms.interpreted.holds(name, state)
            for number in set(range(len(forms.program.steps))) - set(steps):
                if not forms.ignores(state, number):
                    assert forms.through_the_library(state, number) == (False, state)
            if not steps:
                break
            state = forms.taken(state, draw.choice(steps))


def test_all_engines_explore_every_construct_alike() -> None:
    results = [
        check(Gymnasium, engine=engine) for engine in ("llvm", "numpy", "python", "interpreted")
    ]
    results.append(check(Gymnasium, workers=2))
    assert len({(r.states, r.transitions, r.depth, r.verdict) for r in results}) == 1
    taken = [[row.is_taken for row in result.coverage] for result in results]
    assert all(rows == taken[0] for rows in taken)
    assert results[0].counterexample is None
    assert results[0].states > 1_000
