"""Replays the way to a violation on the real machines, and tells it step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from epochgate.fsm.compiler.ir import Fault, Program
from epochgate.fsm.compiler.python_target import PythonTarget, StepFault
from epochgate.fsm.explore.interpreted import FAULTS, InterpretedTarget
from epochgate.fsm.explore.result import Counterexample, TakenRow, TraceStep
from epochgate.fsm.explore.search import Words, canonical
from epochgate.fsm.fields import ArrayField, FieldSpec, FifoField
from epochgate.fsm.machine import Machine
from epochgate.fsm.rows import Row

State = dict[str, dict[str, Any]]


@dataclass
class Replay:
    """One way through the states of a system."""

    target: InterpretedTarget
    program: Program
    _plain: PythonTarget = field(init=False)

    def __post_init__(self) -> None:
        self._plain = PythonTarget(self.program)

    def steps_along(self, chain: Sequence[Words]) -> tuple[list[int], Words]:
        """The steps that lead through these states, and the state reached.

        With symmetry a state of the chain stands for those that differ from it by an exchange of
        instances; the steps lead through one of these each.
        """
        state, steps = chain[0], []
        for following in chain[1:]:
            step, state = next(
                (number, taken)
                for number in self._plain.enabled(state)
                if self.canonical(taken := self._plain.take(state, number)) == following
            )
            steps.append(step)
        return steps, state

    def canonical(self, words: Words) -> Words:
        return canonical(self.program, words)

    def failing_step(self, state: Words, fault: int) -> tuple[int, int] | None:
        """The first step out of a state that ends in this fault, and the fault as it is of this
        instance; None if a guard fails.
        """
        wanted = _place(self.program.faults[fault])
        try:
            enabled = self._plain.enabled(state)
        except StepFault:
            return None
        for number in enabled:
            try:
                self._plain.take(state, number)
            except StepFault as found:
                if _place(self.program.faults[found.number]) == wanted:
                    return number, found.number
            except RecursionError:
                return number, fault
        return None

    def tell(
        self,
        initial: Words,
        steps: Sequence[int],
        *,
        kind: str,
        message: str,
        file: str,
        line: int,
        property: str = "",
        cycle: int | None = None,
    ) -> Counterexample:
        """Take the steps on the real machines; the last one may end in a fault."""
        self.target.packing.load(initial)
        start = before = self.target.system.values()
        told = []
        for position, number in enumerate(steps, 1):
            step = self._told(position, number, before)
            told.append(step)
            before = step.after
        return Counterexample(kind, message, file, line, start, tuple(told), property, cycle)

    def _told(self, position: int, number: int, before: State) -> TraceStep:
        system, (step, machine) = self.target.system, self.target.steps[number]
        rows: list[TakenRow] = []

        def observe(machine: Machine, source: str, row: Row, arguments: tuple[Any, ...]) -> None:
            dest = source if row.dest is None else row.dest
            name = self.target.name(machine)
            rows.append(TakenRow(name, row.trigger, source, dest, row.because))

        because = next(
            (
                row.because
                for source, row in machine.expanded_rows()
                if row.trigger == step.trigger and source == machine.state and _holds(machine, row)
            ),
            "",
        )
        usual, system.observer = system.observer, observe
        try:
            getattr(machine, step.trigger)()
        except FAULTS:
            pass  # the counterexample says what it is; here is how far the step came
        finally:
            system.observer = usual
        after = system.values()
        return TraceStep(
            number=position,
            instance=self.target.name(machine),
            trigger=step.trigger,
            label=self.program.steps[number].label,
            because=because,
            rows=tuple(rows),
            before=before,
            after=after,
            changed=changes(before, after),
            channels=self._channels(after),
        )

    def _channels(self, state: State) -> dict[str, Any]:
        found = {}
        for name, values in state.items():
            machine = self.target.system.MACHINES[name.partition("[")[0]]
            for field_name, spec in machine.FIELDS.items():
                value = values[field_name]
                if _is_channel(spec) and _holds_something(value):
                    found[f"{name}.{field_name}"] = value
        return found


def _place(fault: Fault) -> tuple[str, str, int]:
    return fault.kind, fault.file, fault.line


def _holds(machine: Machine, row: Row) -> bool:
    return all(bool(machine.bound_callback(n)()) == expected for n, expected in row.literals)


def changes(before: State, after: State) -> dict[str, tuple[Any, Any]]:
    """Every field that differs, with what it was and what it is."""
    return {
        f"{name}.{field_name}": (before[name][field_name], value)
        for name, values in after.items()
        for field_name, value in values.items()
        if before[name][field_name] != value
    }


def _is_channel(spec: FieldSpec) -> bool:
    while isinstance(spec, ArrayField):
        spec = spec.item
    return isinstance(spec, FifoField)


def _holds_something(value: Any) -> bool:
    return any(map(_holds_something, value)) if isinstance(value, list) else True
