"""The machines themselves as a target: the oracle that compiled targets are compared with.

A packed state is put into a real system, the real trigger is fired, and the resulting state is
packed again. Several thousand states a second.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from epochgate.fsm import choosing, closed, fields
from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.compiler.layout import Layout, OutOfRange, Packing
from epochgate.fsm.checker.compiler.python_target import StepFault, each_way, until_fault
from epochgate.fsm.checker.engines.search import Words
from epochgate.fsm.checker.step_claims import StepClaimBroken, StepClaims
from epochgate.fsm.choosing import Choices, NothingToChoose, Tape, TooManyChoices
from epochgate.fsm.claims import holds
from epochgate.fsm.closed import ClosedSystem
from epochgate.fsm.errors import EndlessStep, TransitionRefused
from epochgate.fsm.machine import Machine
from epochgate.fsm.rows import Row

FAULTS = (
    AssertionError,
    TransitionRefused,
    IndexError,
    KeyError,
    ZeroDivisionError,
    ValueError,
    OutOfRange,
    EndlessStep,
    NothingToChoose,
    TooManyChoices,
)
ARITHMETIC: dict[type[Exception], str] = {
    NothingToChoose: "choice",
    ZeroDivisionError: "division",
    ValueError: "shift",
}
"""What Python raises of a value that cannot be computed, and the kind of fault that it is."""
OWN_FILES = (fields.__file__, choosing.__file__, closed.__file__)
"""Of what the machines call in channels, arrays and choices."""


class InterpretedTarget:
    """Steps and properties of one real system; it is changed by every call."""

    def __init__(self, system: ClosedSystem, program: Program, layout: Layout) -> None:
        self.system, self.program = system, program
        self.packing = Packing(system, layout)
        self.steps = system.step_instances()
        self.covered: set[int] = set()
        self._step_claims = StepClaims(system)
        self._names = {type(m): n for n in system.MACHINES for m in system.instances(n)}
        self._premises = {p.name: p.then for p in system.claims() if p.kind == "always"}
        # The same row may stand in the tables of several machines.
        rows = (
            (id(machine), id(row)) for machine in system.MACHINES.values() for row in machine.ROWS
        )
        self._places = {
            row: dict(code.places) for row, code in zip(rows, program.rows, strict=True)
        }
        system.observer = self._observe

    def _observe(self, machine: Machine, source: str, row: Row, arguments: tuple[Any, ...]) -> None:
        self.covered.add(self._places[id(type(machine)), id(row)][source])

    def enabled(self, state: Words) -> list[int]:
        self.packing.load(state)
        found: list[int] = self._guarded(
            lambda: [
                number
                for number, (step, machine) in enumerate(self.steps)
                if step.over or self.system.is_enabled(step, machine)
            ]
        )
        return found

    def ways(self, state: Words, number: int) -> Iterator[tuple[Choices, Words]]:
        """Yield the choices of a step that is possible, each with the state after it; raises
        StepFault.
        """
        tape = Tape()
        return until_fault(each_way(self.program, tape, lambda: self.take(state, number, tape)))

    def chosen(self, number: int) -> Choices:
        """Return the choices of the step of this number as it was taken last."""
        return tuple(self.system.tape.positions)

    def take(self, state: Words, number: int, tape: Tape | None = None) -> Words:
        self.packing.load(state)
        step, machine = self.steps[number]

        def taken() -> Words:
            before = self._step_claims.measured()
            self.system.take(step, machine, tape)
            if step.is_stuttering:
                self.packing.expect_unchanged(state, f"{self.name(machine)}.{step.trigger}")
            words: Words = self.packing.words()
            if words != state:
                self._step_claims.expect_kept(before)
            return words

        after: Words = self._guarded(taken)
        return after

    def holds(self, name: str, state: Words) -> bool:
        self.packing.load(state)
        return self.holds_now(name)

    def holds_now(self, name: str) -> bool:
        """Return true if the method of a property holds of the machines now; raises StepFault."""
        premise = self._premises.get(name)
        if premise and not self._guarded(lambda: holds(self.system, premise)):
            return True
        return bool(self._guarded(lambda: holds(self.system, name)))

    def _guarded(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except FAULTS as error:
            raise StepFault(self.fault(error)) from error

    def name(self, machine: Machine) -> str:
        """For instance `subtask[1]`."""
        position = "".join(f"[{i}]" for i in machine.index)
        return self._names[type(machine)] + position

    def fault(self, error: BaseException) -> int:
        """The number of the fault that an exception of the machines is."""
        if isinstance(error, EndlessStep):
            return self.program.endless
        if isinstance(error, TooManyChoices):
            return self.program.crowded
        if isinstance(error, OutOfRange):
            return self._numbered(
                lambda f: f.kind == error.kind and f.message == error.message, error
            )
        if isinstance(error, StepClaimBroken):
            return self._numbered(
                lambda f: f.kind == "each_step" and f.message == str(error), error
            )
        frame, line = _origin(error.__traceback__)
        owner = frame.f_locals.get("self")
        name = self.name(owner) if isinstance(owner, Machine) else "the system"
        if isinstance(error, TransitionRefused):
            message = f"{name} refuses {error.trigger!r}: no row holds"
            return self._numbered(lambda fault: fault.message == message, error)
        file = frame.f_code.co_filename
        if kinds := [kind for raised, kind in ARITHMETIC.items() if isinstance(error, raised)]:
            wanted = kinds[0], file, line
            return self._numbered(lambda f: (f.kind, f.file, f.line) == wanted, error)
        if isinstance(error, AssertionError):
            line = _assertion_line(file, line)
        faults = ("assertion",) if isinstance(error, AssertionError) else ("empty", "index")
        return self._numbered(
            lambda f: (
                (f.file, f.line) == (file, line)
                and f.kind in faults
                and (f.kind == "empty" or f.message.startswith(f"{name}:"))
            ),
            error,
        )

    def _numbered(self, matches: Callable[[Any], bool], error: BaseException) -> int:
        for number, fault in enumerate(self.program.faults):
            if matches(fault):
                return number
        raise error


def _origin(traceback: TracebackType | None) -> tuple[FrameType, int]:
    """The innermost frame that is not part of a channel or a choice, and its line."""
    found = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename not in OWN_FILES:
            found = traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next
    assert found is not None
    return found


@cache
def _assertions(file: str) -> tuple[tuple[int, int], ...]:
    """The first and the last line of each assertion in a file."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    return tuple((node.lineno, node.end_lineno or node.lineno) for node in nodes)


def _assertion_line(file: str, line: int) -> int:
    """The first line of the assertion of which a traceback names any line."""
    return next((first for first, last in _assertions(file) if first <= line <= last), line)
