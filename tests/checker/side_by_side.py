"""One closed system in all its forms, which have to take the same steps to the same states."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from epochgate.fsm import Machine, Outcome, TransitionRefused
from epochgate.fsm.checker.compiler.layout import Packing
from epochgate.fsm.checker.compiler.lowering import Lowering
from epochgate.fsm.checker.compiler.python_target import PythonTarget
from epochgate.fsm.checker.engines.functions import Functions, Worker, address, compiled_target
from epochgate.fsm.checker.engines.interpreted import InterpretedTarget
from epochgate.fsm.checker.random_numbers import SKETCH_BITS
from epochgate.fsm.closed import ClosedSystem
from epochgate.fsm.run_to_completion import fired_by
from tests.fsm.transitions_twin import LibraryTwin

Words = tuple[int, ...]
NO_STEP = 0xFFFF
BUSY = 0.15
"""How often a walk takes a step that need not happen, such as a failure, if another is possible."""


def drawn(draw: random.Random, steps: dict[str, bool], possible: list[str]) -> str:
    """One of the possible steps; mostly one that happens unless something goes wrong, as `steps`
    tells.
    """
    usual = [step for step in possible if steps[step]]
    return draw.choice(possible if not usual or draw.random() < BUSY else usual)


def again(system: ClosedSystem) -> ClosedSystem:
    """Another one with the same constants, in its initial state."""
    settable = {n: v for n, v in system.constants.items() if n not in system.DERIVED}
    return type(system)(**settable)


def by_the_library(system: ClosedSystem) -> ClosedSystem:
    """Let `transitions` itself fire every trigger of every machine, those that actions fire too."""
    for name in system.MACHINES:
        for machine in system.instances(name):
            if machine.ROWS:
                twin = LibraryTwin(machine)
                for trigger in machine.triggers():
                    setattr(machine, trigger, fired_by_library(machine, twin, trigger))
    return system


def fired_by_library(machine: Machine, twin: LibraryTwin, trigger: str) -> Callable[..., Outcome]:
    """A trigger that `transitions` takes; it waits where one of our own dispatch would wait."""

    def step(_: Machine, *arguments: Any) -> Any:
        if not twin.fire(trigger, *arguments):
            raise TransitionRefused(repr(machine), machine.state, trigger, ())
        return Outcome.TAKEN, None

    steps = dict.fromkeys(machine.STATES, step)
    return partial(fired_by(steps, trigger, is_environment=machine.IS_ENVIRONMENT), machine)


class MachineCode:
    """The successors of one state by the LLVM target."""

    def __init__(self, program: Any) -> None:
        self._walks, self._worker = (
            Functions(compiled_target(program, None, 1).code).walks,
            Worker(program),
        )
        self._initial, self._state = (np.zeros(program.words, np.int64) for _ in range(2))
        self._taken, self._held = np.zeros(1, np.uint16), np.zeros(2, np.int64)
        self._sketch, self._sums = np.zeros(1 << SKETCH_BITS, np.uint8), np.zeros(6, np.int64)

    def successors(self, state: Words) -> dict[int, Words]:
        """The possible steps, and where each leads."""
        return dict(self.all_successors(state))

    def all_successors(self, state: Words) -> list[tuple[int, Words]]:
        """The steps, as often as each has ways, and where each leads."""
        worker = self._worker
        self._initial[:] = state
        worker.act[:] = NO_STEP
        self._sums[:] = 0
        arrays = (self._state, worker.status, worker.out, worker.act, self._taken)
        seen = (self._held, worker.covered, self._sketch)
        # A walk of one step has all its successors made first.
        self._walks(
            address(self._initial),
            *(1, 1, 0, 1),
            *map(address, arrays),
            0,
            *map(address, seen),
            *(1, 1),
            address(self._sums),
        )
        steps = [int(step) for step in worker.act[: np.argmax(worker.act == NO_STEP)]]
        return [(s, tuple(int(w) for w in worker.out[at])) for at, s in enumerate(steps)]


class SideBySide:
    """One system in all its forms, in the same state."""

    def __init__(self, system: ClosedSystem) -> None:
        lowering = Lowering(system)
        self.program = lowering.program()
        self.python = PythonTarget(self.program)
        self.llvm = MachineCode(self.program)
        self.interpreted = InterpretedTarget(system, self.program, lowering.layout)
        self.through_transitions = by_the_library(again(system))
        self._steps = self.through_transitions.step_instances()
        self.packing = Packing(self.through_transitions, lowering.layout)
        self.names = [step.label for step in self.program.steps]

    def possible(self, state: Words) -> list[int]:
        """The possible steps, as all see them."""
        found = self.python.enabled(state)
        assert self.interpreted.enabled(state) == found
        assert [*self.llvm.successors(state)] == found
        return found

    def taken(self, state: Words, number: int) -> Words:
        """The state after a step, as all see it."""
        after = self.python.take(state, number)
        assert self.interpreted.take(state, number) == after
        assert self.llvm.successors(state)[number] == after
        assert self.through_the_library(state, number) == (True, after)
        return after

    def refused(self, state: Words, numbers: Iterable[int]) -> None:
        """Steps that are not possible are none by the library either: the state stays."""
        self.packing.load(state)
        for number in numbers:
            if not self._ignores(number):
                assert not self._fired(number)
        assert self.packing.words() == state

    def through_the_library(self, state: Words, number: int) -> tuple[bool, Words]:
        """Return whether `transitions` takes a step, and the state then."""
        self.packing.load(state)
        return self._fired(number), self.packing.words()

    def _fired(self, number: int) -> bool:
        step, machine = self._steps[number]
        try:
            self.through_transitions.take(step, machine)
            return True
        except TransitionRefused as refusal:
            if refusal.machine != repr(machine):
                raise  # an action was refused, and not the step
            return False

    def _ignores(self, number: int) -> bool:
        """Return whether a row takes note of the step without doing anything."""
        step, machine = self._steps[number]
        return any(
            row.is_ignored
            for source, row in machine.expanded_rows()
            if row.trigger == step.trigger and source == machine.state
        )
