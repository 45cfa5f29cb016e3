"""Goes through the states of a closed system by hand: on its machines, one step at a time.

A run is an initial state and the names of steps, as a schedule has them; a place is where it has
led. Nothing is kept of a run but what is found again by taking its steps: the same names lead to
the same place in another process. `InterpretedTarget` takes the steps, as a check's oracle does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

from epochgate.errors import UsageError
from epochgate.fsm.checker.compiler.lowering import Lowering
from epochgate.fsm.checker.compiler.python_target import StepFault
from epochgate.fsm.checker.engines.initial import initial_states
from epochgate.fsm.checker.engines.interpreted import InterpretedTarget
from epochgate.fsm.checker.engines.search import Words
from epochgate.fsm.checker.result import Counterexample, State, TraceStep
from epochgate.fsm.checker.retelling import Retelling
from epochgate.fsm.choosing import Tape, WayClosed, named, parsed
from epochgate.fsm.claims import OF_STATES, Property
from epochgate.fsm.closed import ClosedSystem

WAYS_SHOWN_MAX = 200
"""Of all possible steps together, with the ways in which each can be taken."""
WAYS_TRIED_MAX = 4096
KEPT_MAX = 4096
"""States that are kept, so that a step on from a known place takes one step."""
COMPARED_MAX = 1 << 16
"""Initial states among which that of a counterexample is looked for."""


class PlaceUnknown(UsageError):
    """A run that the system does not have."""


@dataclass(frozen=True)
class Run:
    """An initial state, by its number, and the steps taken from there, as `wire.deliver(2)`."""

    start: int = 0
    steps: tuple[str, ...] = ()

    def up_to(self, count: int) -> Run:
        """The run with its first steps alone."""
        return Run(self.start, self.steps[:count])

    def then(self, step: str) -> Run:
        """The run with one more step."""
        return Run(self.start, (*self.steps, step))


@dataclass(frozen=True)
class Possible:
    """A step that can be taken; `fault` is the text of what it breaks, if it does."""

    name: str
    told: TraceStep
    fault: str = ""


@dataclass(frozen=True)
class Held:
    """A claim, and whether its method holds here: None where that cannot be told of a state."""

    claim: Property
    is_so: bool | None
    is_broken: bool = False
    """An `always` that does not hold, or an end that is none of those claimed."""


@dataclass(frozen=True)
class Place:
    """A run, and what there is at its end; `last` is the step that led here."""

    run: Run
    state: State
    last: TraceStep | None
    fault: str = ""
    """The text of what the last step broke: no step is possible after it."""
    possible: tuple[Possible, ...] = ()
    left_out: int = 0
    """Ways to take a step that are not among `possible`, as far as they were tried."""
    claims: tuple[Held, ...] = field(default=())


class Explorer:
    """One system to go through; every call leaves its machines somewhere else.

    Raises DeclarationError for what cannot be compiled.
    """

    def __init__(self, system: ClosedSystem) -> None:
        self.system = system
        lowering = Lowering(system)
        self._program = lowering.program()
        self._target = InterpretedTarget(system, self._program, lowering.layout)
        self._retelling = Retelling(self._target, self._program)
        self._numbers = {
            f"{self._target.name(machine)}.{step.trigger}": number
            for number, (step, machine) in enumerate(self._target.steps)
        }
        self._names = {number: name for name, number in self._numbers.items()}
        self._known: dict[Run, Words] = {}

    @cached_property
    def starts(self) -> list[Words]:
        """The initial states."""
        return initial_states(self._program, type(self.system).__name__)

    def place(self, run: Run) -> Place:
        """Go where the run leads; raises PlaceUnknown."""
        self.check(run)
        if not run.steps:
            return self._there(run, self.starts[run.start], None)
        before = self._words(run.up_to(len(run.steps) - 1))
        after, choices, fault = self._taken(before, run, len(run.steps) - 1)
        number = self._numbers[parsed(run.steps[-1])[0]]
        last = self._retelling.step(before, (number, choices), len(run.steps))
        if after is None:
            return Place(run, last.after, last, fault)
        return self._there(run, after, last)

    def run_of(self, found: Counterexample) -> Run:
        """The run that a counterexample tells; raises PlaceUnknown for one of another system."""
        run = Run(self.start_of(found.initial), tuple(step.label for step in found.steps))
        self.check(run)
        return run

    def check(self, run: Run) -> None:
        """Raise PlaceUnknown unless the system has this run."""
        if not 0 <= run.start < len(self.starts):
            raise PlaceUnknown(
                f"there is no initial state {run.start}; the last one is {len(self.starts) - 1}"
            )
        if run.steps:
            before = self._words(run.up_to(len(run.steps) - 1))
            self._taken(before, run, len(run.steps) - 1)

    def start_of(self, initial: State) -> int:
        """The number of an initial state; raises PlaceUnknown."""
        for number, words in enumerate(islice(self.starts, COMPARED_MAX)):
            self._target.packing.load(words)
            if self.system.values() == initial:
                return number
        raise PlaceUnknown(
            f"the run begins in none of the first {COMPARED_MAX:,} initial states of "
            f"{type(self.system).__name__}: it is that of other constants or of another system, "
            "or of an inductive check, which begins anywhere"
        )

    def _words(self, run: Run) -> Words:
        """The state at the end of a run whose steps break nothing."""
        count = next((n for n in range(len(run.steps), 0, -1) if run.up_to(n) in self._known), 0)
        words = self._known[run.up_to(count)] if count else self.starts[run.start]
        for position in range(count, len(run.steps)):
            after, _, fault = self._taken(words, run, position)
            if after is None:
                raise PlaceUnknown(
                    f"step {position + 1}, {run.steps[position]}, breaks something ({fault}), and "
                    "nothing comes after it; leave out the steps behind it"
                )
            words = after
        if len(self._known) >= KEPT_MAX:
            self._known.clear()
        self._known[run] = words
        return words

    def _taken(
        self, words: Words, run: Run, position: int
    ) -> tuple[Words | None, tuple[int, ...], str]:
        """The state after one step of the run, what it chose, and the text of a fault."""
        name = run.steps[position]
        try:
            step, values = parsed(name)
            number = self._numbers[step]
            if named(step, values) != name:
                raise ValueError(name)
        except (ValueError, KeyError):
            raise PlaceUnknown(
                f"step {position + 1}, {name!r}, is none of {type(self.system).__name__}; steps "
                f"are named like {next(iter(self._numbers), 'machine.trigger')}"
            ) from None
        tape = Tape()
        tape.begin(values=values)
        try:
            if not self._is_possible(words, number):
                raise WayClosed
            after = self._target.take(words, number, tape)
            if (*tape.told,) != values:
                raise WayClosed
        except StepFault as fault:
            return None, self._target.chosen(number), self._program.faults[fault.number].message
        except WayClosed:
            raise PlaceUnknown(
                f"step {position + 1}, {name}, is not possible after the {position} before it"
            ) from None
        return after, tuple(tape.positions), ""

    def _is_possible(self, words: Words, number: int) -> bool:
        step, machine = self._target.steps[number]
        self._target.packing.load(words)
        return bool(step.over) or self.system.is_enabled(step, machine)

    def _there(self, run: Run, words: Words, last: TraceStep | None) -> Place:
        possible, left_out, fault = list[Possible](), 0, ""
        try:
            numbers = self._target.enabled(words)
        except StepFault as found:
            numbers, fault = [], self._program.faults[found.number].message
        for number in numbers:
            for choices, broken in self._ways(words, number):
                if len(possible) == WAYS_SHOWN_MAX:
                    left_out += 1
                    continue
                told = self._retelling.step(words, (number, choices), len(run.steps) + 1)
                possible.append(Possible(told.label, told, broken))
        claims = tuple(self._claims(words, is_end=not possible and not fault))
        self._target.packing.load(words)
        return Place(run, self.system.values(), last, fault, tuple(possible), left_out, claims)

    def _ways(self, words: Words, number: int) -> Iterator[tuple[tuple[int, ...], str]]:
        """Each way to take a step by its choices, and the text of the fault that it ends in."""
        tape = Tape()
        tape.begin()
        for _ in range(WAYS_TRIED_MAX):
            try:
                self._target.take(words, number, tape)
                yield tuple(tape.positions), ""
            except WayClosed:
                pass
            except StepFault as fault:
                yield tuple(tape.positions), self._program.faults[fault.number].message
            if not tape.advance():
                return

    def _claims(self, words: Words, *, is_end: bool) -> Iterator[Held]:
        for claim in self.system.claims():
            if claim.kind not in OF_STATES:
                yield Held(claim, None)
                continue
            try:
                is_so = self._target.holds(claim.name, words)
            except StepFault:
                yield Held(claim, None, is_broken=True)
                continue
            demanded = claim.kind == "always" or (claim.kind == "terminal" and is_end)
            yield Held(claim, is_so, demanded and not is_so)
