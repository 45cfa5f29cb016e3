"""Refinement: each step of a system is one of its specification, or changes nothing there.

A mapping says for which state of the specification a state stands. Both are held against each other
while states are found: for every step of the system, the states that it leads from and to are
mapped, and the steps of the specification that are possible in the one are tried for the other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.compiler.layout import Layout, OutOfRange, Packing
from epochgate.fsm.checker.compiler.lowering import Lowering
from epochgate.fsm.checker.compiler.python_target import PythonTarget, StepFault
from epochgate.fsm.checker.engines.initial import initial_states
from epochgate.fsm.checker.engines.search import Words
from epochgate.fsm.choosing import Choices
from epochgate.fsm.closed import ClosedSystem, Property
from epochgate.fsm.errors import DeclarationError

MAPPED_MAX = 1 << 18
"""States whose counterparts are remembered."""
POSSIBLE_SHOWN_MAX = 6


class MappingFailed(DeclarationError):
    """A mapping to a specification raises an error."""


@dataclass(frozen=True)
class Unimplemented:
    """A step, or an initial state without one, that the specification does not have."""

    claim: Property
    state: int
    move: tuple[int, Choices] | None
    message: str


class Refinement:
    """One mapping of a system to its specification."""

    def __init__(self, system: ClosedSystem, layout: Layout, claim: Property) -> None:
        self.claim = claim
        settable = {n: v for n, v in system.constants.items() if n not in system.DERIVED}
        self._own = type(system)(**settable)
        self._packing = Packing(self._own, layout)
        self._method = getattr(self._own, claim.name)
        kind, constants = self._method.epochgate_implements
        self.name = kind.__name__
        self._specification: ClosedSystem = kind(
            **{n: system.constants[v] if isinstance(v, str) else v for n, v in constants.items()}
        )
        lowering = Lowering(self._specification)
        self._program, self._layout = lowering.program(), lowering.layout
        self._target = PythonTarget(self._program)
        self._counterpart = Packing(self._specification, self._layout)
        self._initial = initial_states(self._program, self.name)
        self._following: dict[Words, dict[Words, int]] = {}
        self.mapped = lru_cache(MAPPED_MAX)(self._mapped)
        self.taken: set[int] = set()
        """The steps of the specification that steps of the system have stood for."""

    def _mapped(self, state: Words) -> Words:
        """The state of the specification that a state stands for; raises OutOfRange."""
        self._packing.load(state)
        self._counterpart.load(self._initial[0])
        try:
            self._method(self._specification)
        except Exception as error:
            code = self._method.__code__
            raise MappingFailed(
                f"{code.co_filename}:{code.co_firstlineno}: {self.claim.name}, which maps "
                f"{type(self._own).__name__} to {self.name}, raises {error!r}; let it give each "
                f"state a counterpart"
            ) from error
        return self._counterpart.words()

    def _steps_from(self, state: Words) -> dict[Words, int]:
        """The states that the specification can get to in one step, with the step."""
        if state not in self._following:
            found: dict[Words, int] = {}
            for step, _, after in self._target.outcomes(state):
                if not isinstance(after, StepFault):  # of a way that the specification does not go
                    found.setdefault(after, step)
            self._following[state] = found
        return self._following[state]

    def begins(self, state: Words) -> str:
        """Return what is wrong with an initial state; empty if nothing is."""
        try:
            mapped = self.mapped(state)
        except OutOfRange as error:
            return f"{self._not()}: an initial state stands for none of {self.name}: {error}"
        if mapped in self._initial:
            return ""
        return f"{self._not()}: {self.name} does not begin with {self._told(mapped)}"

    def goes_on(self, before: Words, after: Words, label: str) -> str:
        """Return what is wrong with a step; empty if the specification has it."""
        try:
            first, then = self.mapped(before), self.mapped(after)
        except OutOfRange as error:
            return (
                f"{self._not()}: {label} leads to what stands for no state of {self.name}: {error}"
            )
        if first == then:
            return ""
        following = self._steps_from(first)
        if then in following:
            self.taken.add(following[then])
            return ""
        return (
            f"{self._not()}: {label} is no step of {self.name}, where it changes "
            f"{self._changes(first, then)}; {self._possible(first)}"
        )

    def _not(self) -> str:
        return f"not implemented: {self.claim.claim}"

    def _values(self, state: Words) -> dict[str, Any]:
        """Each field of the specification in a state."""
        self._counterpart.load(state)
        return {
            f"{instance}.{field}": [*value] if isinstance(value, deque | list) else value
            for instance, fields in self._specification.values().items()
            for field, value in fields.items()
        }

    def _told(self, state: Words) -> str:
        return ", ".join(f"{name} {value}" for name, value in self._values(state).items())

    def _changes(self, first: Words, then: Words) -> str:
        before, after = self._values(first), self._values(then)
        return ", ".join(
            f"{name} from {before[name]} to {value}"
            for name, value in after.items()
            if before[name] != value
        )

    def _possible(self, state: Words) -> str:
        steps = {step: after for after, step in self._steps_from(state).items()}
        labels = [self._program.steps[step].label for step in sorted(steps)]
        more = len(labels) - POSSIBLE_SHOWN_MAX
        shown = ", ".join(labels[:POSSIBLE_SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")
        return f"possible there: {shown}" if labels else "no step is possible there"

    def untaken(self) -> list[str]:
        """The steps of the specification that no step has stood for."""
        return [s.label for n, s in enumerate(self._program.steps) if n not in self.taken]

    @property
    def is_vacuous(self) -> bool:
        """True if every step changes nothing of the specification."""
        return not self.taken


class Refinements:
    """All specifications of a system."""

    def __init__(self, system: ClosedSystem, layout: Layout, program: Program) -> None:
        self._program = program
        self.all = [
            Refinement(system, layout, claim)
            for claim in system.properties()
            if claim.kind == "implements"
        ]
        self._plain = PythonTarget(program) if self.all else None

    def begin(self, states: Iterable[tuple[int, Words]]) -> Unimplemented | None:
        """Look at initial states, each with its number."""
        for number, words in states:
            for one in self.all:
                if message := one.begins(words):
                    return Unimplemented(one.claim, number, None, message)
        return None

    def follow(self, states: Iterable[tuple[int, Words]]) -> Unimplemented | None:
        """Look at every step out of these states, each with its number."""
        target = self._plain
        if target is None:
            return None
        for number, words in states:
            try:
                for step in target.enabled(words):
                    for choices, after in target.ways(words, step):
                        label = self._program.steps[step].label
                        for one in self.all:
                            if message := one.goes_on(words, after, label):
                                return Unimplemented(one.claim, number, (step, choices), message)
            except StepFault:
                continue  # the search finds it in its next step
        return None
