"""All states and steps of a right system, and which of its functions each step has run.

A mutant makes no difference to a system where no step, guard or claim that runs one of the changed
functions comes to anything else: then nothing has to be searched again. The functions are those of
the compiled system, so that whatever calls a changed method counts, in the surroundings too.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest

from epochgate.fsm.checker.compiler import lowering
from epochgate.fsm.checker.compiler.ir import Call, Cover, Fail, Function, If, Post, Program, Run
from epochgate.fsm.checker.compiler.lowering import Lowering
from epochgate.fsm.checker.compiler.python_target import PythonTarget, StepFault, Words
from epochgate.fsm.checker.compiler.scope import Instance
from epochgate.fsm.closed import ClosedSystem
from tests.mutation.bodies import BodyMutant
from tests.mutation.mutants import AnyMutant, Mutant

HEAD = re.compile(r"^(def f(\d+)\(.*)$", re.MULTILINE)


Ran = tuple[Words, int, Words]
"""A state, the number of a step, and the state after it."""


class Watched(PythonTarget):
    """Adds to `covered` each function that runs, as a negative number."""

    def _module(self) -> str:
        return HEAD.sub(lambda m: f"{m[1]}\n    covered.add({-1 - int(m[2])})", super()._module())


class Explored:
    """A right system with everything that can happen in it."""

    def __init__(self, system: ClosedSystem) -> None:
        self._system = system
        self._program = Lowering(system, None).program()
        self._target = PythonTarget(self._program)
        self._bodies = {name: _meaning(f) for name, f in self._program.functions.items()}
        self._states: list[Words] = []
        self._enabled: list[list[int]] = []
        self._ran: dict[frozenset[str], list[Ran]] = {}
        """The functions of a step -> the steps that have run just these."""
        self._explore()
        gc.freeze()  # nothing of it is ever garbage: collections need not look at it

    def _explore(self) -> None:
        names = [*self._program.functions]
        watched, known = Watched(self._program), {self._program.initial}
        self._states.append(self._program.initial)
        ran: dict[frozenset[int], list[Ran]] = {}
        for state in self._states:
            self._enabled.append(watched.enabled(state))
            for step in self._enabled[-1]:
                watched.covered.clear()
                after = watched.take(state, step)
                ran.setdefault(frozenset(watched.covered), []).append((state, step, after))
                if after not in known:
                    known.add(after)
                    self._states.append(after)
        for numbers, steps in ran.items():
            run = frozenset(names[-1 - number] for number in numbers if number < 0)
            self._ran.setdefault(run, []).extend(steps)

    def is_changed_by(self, mutant: AnyMutant) -> bool:
        """Return whether the system with a mutant in it has other states, steps or claims that
        hold.
        """
        program = self._lowered(mutant)
        bodies = {name: _meaning(f) for name, f in program.functions.items()}
        if _frame(program) != _frame(self._program):
            return True
        changed = {name for name, body in self._bodies.items() if bodies.get(name) != body}
        claims = [
            claim
            for claim, function in self._program.properties.items()
            if _reached(self._program, [function]) & changed
        ]
        guards = _reached(self._program, (step.enabled for step in self._program.steps)) & changed
        ran = [steps for run, steps in self._ran.items() if run & changed]
        try:
            return bool(claims or guards or ran) and self._differs(
                PythonTarget(program), claims, bool(guards), chain.from_iterable(ran)
            )
        except StepFault:
            return True

    def _lowered(self, mutant: AnyMutant) -> Program:
        kind = type(self._system)
        machine = kind.MACHINES[mutant.home.attribute]
        if (
            not isinstance(mutant, BodyMutant)
            or getattr(machine, mutant.method) is not mutant.right
        ):
            broken = mutant.in_system(kind)(**_given(self._system))
            assert isinstance(broken, ClosedSystem)
            with pytest.MonkeyPatch.context() as patch:
                # Where rows stand is told with a fault, and makes no difference.
                patch.setattr(lowering, "row_place", lambda *_: ("", 0))
                told = Lowering(broken, None)
                if isinstance(mutant, Mutant):
                    self._keep_others(told, mutant)
                return told.program()
        # A body is read where it is lowered: there is no need to declare a system with it.
        place = machine, mutant.method
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(machine, mutant.method, mutant.function)
            for read in (kind.SUBSET._methods, kind.SUBSET._trees):
                patch.delitem(read, place, raising=False)
            try:
                return Lowering(self._system, None).program()
            finally:
                for read in (kind.SUBSET._methods, kind.SUBSET._trees):
                    read.pop(place, None)

    def _keep_others(self, told: Lowering, mutant: Mutant) -> None:
        """Take over what rows of one trigger cannot change, and lower that trigger alone."""
        own = rf"{mutant.home.attribute}((?:\[\d+\])*)\.{mutant.trigger}(\?| to completion)?"
        told.faults = {fault: number for number, fault in enumerate(self._program.faults)}
        changed = {name: re.fullmatch(own, name) for name in self._program.functions}
        told.functions = {
            name: function
            for name, function in self._program.functions.items()
            if not changed[name]
        }
        for found in changed.values():
            if found and not found[2]:
                index = tuple(map(int, re.findall(r"\d+", found[1])))
                told.trigger(Instance(mutant.home.attribute, index), mutant.trigger)

    def _differs(
        self, target: PythonTarget, claims: list[str], has_guards: bool, ran: Iterable[Ran]
    ) -> bool:
        return (
            any(target.take(state, step) != after for state, step, after in ran)
            or any(
                target.holds(claim, state) != self._target.holds(claim, state)
                for claim in claims
                for state in self._states
            )
            or (has_guards and [target.enabled(state) for state in self._states] != self._enabled)
        )


def _given(system: ClosedSystem) -> dict[str, int]:
    """The constants without those that follow from them."""
    return {name: n for name, n in system.constants.items() if name not in system.DERIVED}


def _frame(program: Program) -> tuple[Any, ...]:
    """Return what is the same for all mutants of a system's methods and rows."""
    steps = [(step.label, step.enabled, step.function) for step in program.steps]
    return program.cells, program.words, program.initial, steps, program.properties


def _meaning(function: Function) -> tuple[Any, ...]:
    """A function without the numbers of its faults and rows, which are counted through."""
    return function.parameters, _same(function.body), function.result


def _same(body: tuple[Any, ...]) -> tuple[Any, ...]:
    found: list[Any] = []
    for statement in body:
        if isinstance(statement, If):
            then, otherwise = _same(statement.then), _same(statement.otherwise)
            found.append(replace(statement, then=then, otherwise=otherwise))
        elif isinstance(statement, Fail):
            found.append(Fail(0))
        elif not isinstance(statement, Cover):
            found.append(statement)
    return tuple(found)


def _reached(program: Program, functions: Iterable[str]) -> set[str]:
    """These functions and all that they call."""
    todo, found = list(functions), set[str]()
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += _called(program.functions[name].body)
    return found


def _called(body: tuple[Any, ...]) -> list[str]:
    found: list[str] = []
    for statement in body:
        if isinstance(statement, If):
            found += _called(statement.then) + _called(statement.otherwise)
        elif isinstance(statement, Call | Post | Run):
            found.append(statement.function)
    return found
