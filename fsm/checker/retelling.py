"""Takes the way to a violation once more, on the real machines, and tells it step by step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from epochgate.fsm.checker.compiler.ir import Fault, Program
from epochgate.fsm.checker.compiler.python_target import PythonTarget, StepFault
from epochgate.fsm.checker.engines.interpreted import FAULTS, InterpretedTarget
from epochgate.fsm.checker.engines.search import Words, canonical
from epochgate.fsm.checker.result import Counterexample, State, TakenRow, TraceStep, changes
from epochgate.fsm.choosing import Choices, Tape, named
from epochgate.fsm.fields import ArrayField, FieldSpec, FifoField
from epochgate.fsm.journal import UnwrittenJournal
from epochgate.fsm.machine import Machine
from epochgate.fsm.ports import Effect, Emitted
from epochgate.fsm.rows import Row

Move = tuple[int, Choices]
"""A step by its number, and what it chooses."""


@dataclass
class Retelling:
    """One way through the states of a system."""

    target: InterpretedTarget
    program: Program
    _plain: PythonTarget = field(init=False)

    def __post_init__(self) -> None:
        self._plain = PythonTarget(self.program)

    def steps_along(self, chain: Sequence[Words]) -> tuple[list[Move], Words]:
        """The steps that lead through these states, and the state reached.

        With symmetry a state of the chain stands for those that differ from it by an exchange of
        instances; the steps lead through one of these each.
        """
        state, moves = chain[0], list[Move]()
        for following in chain[1:]:
            move, state = next(
                ((number, choices), taken)
                for number in self._plain.enabled(state)
                for choices, taken in self._plain.ways(state, number)
                if self.canonical(taken) == following
            )
            moves.append(move)
        return moves, state

    def moves(self, chain: Sequence[Words], steps: Sequence[int]) -> list[Move]:
        """These steps, with what each chooses to lead from one state of the chain to the next."""
        return [
            (step, next(way for way, taken in self._plain.ways(state, step) if taken == following))
            for (state, following), step in zip(pairwise(chain), steps, strict=True)
        ]

    def canonical(self, words: Words) -> Words:
        return canonical(self.program, words)

    def failing_step(self, state: Words, fault: int) -> tuple[Move, int] | None:
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
                for _ in self._plain.ways(state, number):
                    pass
            except StepFault as found:
                if _place(self.program.faults[found.number]) == wanted:
                    return (number, self._plain.chosen(number)), found.number
        return None

    def tell(
        self,
        initial: Words,
        moves: Sequence[Move],
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
        for position, move in enumerate(moves, 1):
            step = self._told(position, move, before)
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

    def step(self, state: Words, move: Move, position: int = 1) -> TraceStep:
        """Take one step out of a state on the real machines; it may end in a fault."""
        self.target.packing.load(state)
        return self._told(position, move, self.target.system.values())

    def _told(self, position: int, move: Move, before: State) -> TraceStep:
        number, choices = move
        system, (step, machine) = self.target.system, self.target.steps[number]
        given = [each[at] for each, at in zip(system.options(step), choices, strict=False)]
        tape = Tape()
        tape.begin(choices)
        rows: list[TakenRow] = []

        def observe(machine: Machine, source: str, row: Row, arguments: tuple[Any, ...]) -> None:
            dest = source if row.dest is None else row.dest
            name = self.target.name(machine)
            rows.append(TakenRow(name, row.trigger, source, dest, row.because))

        because = next(
            (
                row.because
                for source, row in machine.expanded_rows()
                if row.trigger == step.trigger
                and source == machine.state
                and _holds(machine, row, given)
            ),
            "",
        )
        emitted = _Emitted()
        usual, system.observer, system.journal = system.observer, observe, emitted
        try:
            system.take(step, machine, tape)
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
            label=named(self.program.steps[number].label, tape.told),
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


def _holds(machine: Machine, row: Row, given: Sequence[int]) -> bool:
    return all(bool(machine.bound_callback(n)(*given)) == held for n, held in row.literals)


def _is_channel(spec: FieldSpec) -> bool:
    while isinstance(spec, ArrayField):
        spec = spec.item
    return isinstance(spec, FifoField)


def _holds_something(value: Any) -> bool:
    return any(map(_holds_something, value)) if isinstance(value, list) else True
