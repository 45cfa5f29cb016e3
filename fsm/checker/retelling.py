"""Takes the way to a violation once more, on the real machines, and tells it step by step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from epochgate.fsm.checker.compiler.ir import Fault, Program
from epochgate.fsm.checker.compiler.python_target import PythonTarget, StepFault
from epochgate.fsm.checker.engines.interpreted import FAULTS, InterpretedTarget
from epochgate.fsm.checker.engines.search import Words, canonical
from epochgate.fsm.checker.result import Counterexample, State, TakenRow, TraceStep, changes
from epochgate.fsm.fields import ArrayField, FieldSpec, FifoField
from epochgate.fsm.journal import UnwrittenJournal
from epochgate.fsm.machine import Machine
from epochgate.fsm.ports import Effect, Emitted
from epochgate.fsm.rows import Row


@dataclass
class Retelling:
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
        usual: State | None = None,
    ) -> Counterexample:
        """Take the steps on the real machines; the last one may end in a fault. `usual` is the
        initial state, where they begin in another one.
        """
        self.target.packing.load(initial)
        start = before = self.target.system.values()
        told = []
        for position, number in enumerate(steps, 1):
            step = self._told(position, number, before)
            told.append(step)
            before = step.after
        chosen = [cell.split(".", 1) for cell in self.program.starts]
        begins = {
            f"{name}.{field}": start[name][field]
            for name, field in dict.fromkeys((n, f.partition("[")[0]) for n, f in chosen)
        }
        return Counterexample(
            kind,
            message,
            file,
            line,
            start,
            tuple(told),
            property,
            cycle,
            begins=begins,
            usual=usual or {},
        )

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
        emitted = _Emitted()
        usual, system.observer, system.journal = system.observer, observe, emitted
        try:
            system.take(step, machine)
        except FAULTS:
            # The counterexample says what it is; here is how far the step came.
            emitted.add_undelivered(system.emitted)
        finally:
            system.observer, system.journal = usual, None
        after = system.values()
        return TraceStep(
            number=position,
            instance=self.target.name(machine),
            trigger=step.trigger,
            label=self.program.steps[number].label,
            because=because,
            rows=tuple(rows),
            effects=tuple(self._shown(kind(items)) for kind, items in emitted.effects),
            before=before,
            after=after,
            changed=changes(before, after),
            channels=self._channels(after),
        )

    def _shown(self, effect: Effect) -> str:
        """The effect with the name that its machine has in the system."""
        machine = self.target.system.machine_of(effect)
        return machine + repr(effect).removeprefix(effect.machine)

    def _channels(self, state: State) -> dict[str, Any]:
        found = {}
        for name, values in state.items():
            machine = self.target.system.MACHINES[name.partition("[")[0]]
            for field_name, spec in machine.FIELDS.items():
                value = values[field_name]
                if _is_channel(spec) and _holds_something(value):
                    found[f"{name}.{field_name}"] = value
        return found


class _Emitted(UnwrittenJournal):
    """A journal that keeps the effects of one step."""

    def __init__(self) -> None:
        self.effects: list[Emitted] = []

    def record_event(self, event: tuple[str, tuple[Any, ...]], /) -> None:
        """The rows tell of it."""

    def record_effects(self, effects: Iterable[Emitted], /) -> None:
        self.effects += effects

    def add_undelivered(self, effects: Iterable[Emitted]) -> None:
        """Add what a fault has left in the outbox, unless it was recorded on delivery."""
        known = {id(effect) for effect in self.effects}
        self.effects += [effect for effect in effects if id(effect) not in known]


def _place(fault: Fault) -> tuple[str, str, int]:
    return fault.kind, fault.file, fault.line


def _holds(machine: Machine, row: Row) -> bool:
    return all(bool(machine.bound_callback(n)()) == expected for n, expected in row.literals)


def _is_channel(spec: FieldSpec) -> bool:
    while isinstance(spec, ArrayField):
        spec = spec.item
    return isinstance(spec, FifoField)


def _holds_something(value: Any) -> bool:
    return any(map(_holds_something, value)) if isinstance(value, list) else True
