"""Turns what a search found into verdicts, coverage and a counterexample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Protocol

from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.compiler.layout import Layout
from epochgate.fsm.checker.compiler.python_target import StepFault
from epochgate.fsm.checker.engines.interpreted import FAULTS, InterpretedTarget
from epochgate.fsm.checker.engines.search import DEADLOCK, PROPERTY, Finding, Search, Words
from epochgate.fsm.checker.refinement import Refinements, Unimplemented
from epochgate.fsm.checker.result import (
    Counterexample,
    PropertyResult,
    RowCoverage,
    Verdict,
)
from epochgate.fsm.checker.retelling import Move, Retelling
from epochgate.fsm.checker.step_claims import not_in_each
from epochgate.fsm.claims import WITHOUT_END
from epochgate.fsm.closed import ClosedSystem, Property
from epochgate.fsm.source import written_at

OVER_A_BOUND = ("range", "overflow")
"""The kinds of faults that only a model has: its fields and channels are bounded."""


@dataclass(frozen=True)
class StoppedEarly:
    """The search is not complete."""

    reason: str


@dataclass(frozen=True)
class Lasso:
    """A run that never keeps a promise: steps, of which those from `cycle` on repeat for ever."""

    property: Property
    states: tuple[Words, ...]
    """All that it goes through, from the first to the last."""
    steps: tuple[int, ...]
    cycle: int
    fairness: tuple[str, ...] = ()
    """How it is fair, line by line."""
    lost: int | None = None
    """After how many steps, in the loop, what should hold for good does not."""


@dataclass(frozen=True)
class Walk:
    """A random walk into a violation: its steps, the last of which may be the one that fails."""

    moves: tuple[Move, ...]
    fault: int
    held: int = 0
    initial: Words = ()
    """The state in which it begins."""


def told_after(steps: int) -> str:
    """Say when: after how many steps."""
    return f"after step {steps}" if steps else "at the beginning"


Found = Finding | Unimplemented | StoppedEarly | Lasso | Walk | None


class Seen(Protocol):
    """The observations of a search, or of walks."""

    held: int

    def covered(self) -> set[int]:
        """The numbers of the rows that were taken, in the states in which they were."""


class Outcome:
    """One search's outcome."""

    def __init__(
        self,
        system: ClosedSystem,
        program: Program,
        layout: Layout,
        search: Seen,
        properties: tuple[Property, ...],
        found: Found,
        rests: Mapping[str, str] = MappingProxyType({}),
        refinements: Refinements | None = None,
    ) -> None:
        self._system, self._program, self._layout = system, program, layout
        self._search, self._declared, self._found = search, properties, found
        self._rests = rests
        """For claims about runs without end, on which fairness they rest."""
        self._refinements = {one.claim.name: one for one in refinements.all} if refinements else {}

    @cached_property
    def verdict(self) -> Verdict:
        if self.counterexample is not None:
            return Verdict.FAIL
        if isinstance(self._found, StoppedEarly):
            return Verdict.BOUNDED
        is_vacuous = any(p.verdict is Verdict.VACUOUS for p in self.properties) or any(
            not row.is_taken and not row.excused for row in self.coverage
        )
        return Verdict.VACUOUS if is_vacuous else Verdict.PASS

    @cached_property
    def coverage(self) -> list[RowCoverage]:
        covered = self._search.covered()
        return [
            RowCoverage(
                machine=row.machine,
                trigger=row.trigger,
                source=row.source,
                because=row.because,
                is_ignored=row.is_ignored,
                file=row.file,
                line=row.line,
                is_taken=any(number in covered for _, number in row.places),
                excused=self._system.excuse(row.machine, row.trigger, row.because),
                is_environment=row.is_environment,
                origin=row.origin,
                untaken_from=tuple(
                    state
                    for state, number in row.places
                    if number not in covered
                    and not self._system.excuse_from(row.machine, row.trigger, state, row.because)
                ),
            )
            for row in self._program.rows
        ]

    @cached_property
    def properties(self) -> list[PropertyResult]:
        return [self._property(found) for found in self._declared]

    def _property(self, declared: Property) -> PropertyResult:
        code = getattr(type(self._system), declared.method).__code__
        verdict, detail = self._judged(declared)
        file, line = written_at(code.co_filename, code.co_firstlineno)
        return PropertyResult(
            kind=declared.kind,
            name=declared.name,
            claim=declared.claim,
            verdict=verdict,
            file=file,
            line=line,
            detail=detail,
        )

    def _held(self, name: str) -> bool:
        bits = {n: 1 << bit for bit, n in enumerate(self._program.properties)}
        return bool(self._search.held & bits[name])

    def _judged(self, declared: Property) -> tuple[Verdict, str]:
        found = self.counterexample
        if found is not None and found.property == declared.name:
            return Verdict.FAIL, found.message
        if declared.kind == "sometimes" and self._held(declared.name):
            return Verdict.PASS, ""
        if not self._is_decided(declared):
            return Verdict.BOUNDED, "the search ended before this was decided"
        if declared.kind == "sometimes":
            return Verdict.VACUOUS, "no reachable state is like this"
        if declared.kind in ("always", "leads_to") and declared.then:
            premise = declared.then if declared.kind == "always" else declared.name
            if not self._held(premise):
                return Verdict.VACUOUS, f"{premise} holds in no reachable state"
        if declared.kind == "implements":
            return self._implemented(declared)
        return Verdict.PASS, self._rests.get(declared.name, "")

    def _implemented(self, declared: Property) -> tuple[Verdict, str]:
        """The verdict on a mapping that no step has broken."""
        found = self._refinements[declared.name]
        if found.is_vacuous:
            return Verdict.VACUOUS, f"no step changes anything of {found.name}"
        untaken = found.untaken()
        return Verdict.PASS, f"never: {', '.join(untaken)} of {found.name}" if untaken else ""

    def _is_decided(self, declared: Property) -> bool:
        """Return whether the search went far enough; promises are examined in their order, at the
        end.
        """
        if isinstance(self._found, Lasso):
            position = self._declared.index
            is_promise = declared.kind in WITHOUT_END
            return not is_promise or position(declared) < position(self._found.property)
        return self._found is None

    @cached_property
    def counterexample(self) -> Counterexample | None:
        if self._found is None or isinstance(self._found, StoppedEarly):
            return None
        target = InterpretedTarget(self._system, self._program, self._layout)
        retelling = Retelling(target, self._program)
        if isinstance(self._found, Lasso):
            return self._lasso(retelling, self._found)
        if isinstance(self._found, Unimplemented):
            return self._unimplemented(retelling, self._found)
        if isinstance(self._found, Walk):
            about = self._what(self._found.fault, self._found.held)
            found = retelling.tell(self._found.initial, self._found.moves, **about)
        else:
            found = self._violation(retelling, self._found)
        return self._as_claimed(target, found) if found.kind in OVER_A_BOUND else found

    def _as_claimed(self, target: InterpretedTarget, found: Counterexample) -> Counterexample:
        """The same run as one into a claim that is broken where a bound of the model is exceeded:
        the machines that took it have no bounds, and are beyond it.
        """
        for declared in self._declared:
            if declared.kind == "always" and not _holds_beyond(target, declared.name):
                message = f"not always: {declared.claim} ({found.message})"
                return replace(found, **self._about(declared, message))
        return found

    def _violation(self, retelling: Retelling, found: Finding) -> Counterexample:
        assert isinstance(self._search, Search)
        chain = [self._search.words(state) for state in self._search.chain(found.state)]
        steps, reached = retelling.steps_along(chain)
        fault = found.fault
        failing = retelling.failing_step(reached, fault) if found.step is not None else None
        if failing is not None:
            steps, fault = [*steps, failing[0]], failing[1]
        return retelling.tell(chain[0], steps, **self._what(fault, found.held))

    def _unimplemented(self, retelling: Retelling, found: Unimplemented) -> Counterexample:
        """The way to the step; to the first such step on it, if the search was depth-first."""
        assert isinstance(self._search, Search)
        chain = [self._search.words(state) for state in self._search.chain(found.state)]
        moves, _ = retelling.steps_along(chain)
        message, mapping = found.message, self._refinements[found.claim.name]
        if found.move is not None:
            moves = [*moves, found.move]
        for count, (before, after) in enumerate(pairwise(chain), 1):
            label = self._program.steps[moves[count - 1][0]].label
            if earlier := mapping.goes_on(before, after, label):
                message, moves = earlier, moves[:count]
                break
        return retelling.tell(chain[0], moves, **self._about(found.claim, message))

    def _what(self, fault: int, held: int) -> dict[str, Any]:
        """Tell what is wrong, and where that was declared."""
        if fault == DEADLOCK:
            declared = next(p for p in self._declared if p.kind == "terminal")
            about = self._about(
                declared, f"deadlock: no step is possible, but not: {declared.claim}"
            )
            return {**about, "kind": "deadlock"}
        if fault == PROPERTY:
            declared = self._violated(held)
            return self._about(declared, f"not always: {declared.claim}")
        found = self._program.faults[fault]
        if found.kind == "each_step":
            declared = next(p for p in self._declared if not_in_each(p) == found.message)
            return self._about(declared, found.message)
        file, line = written_at(found.file, found.line)
        return {"kind": found.kind, "message": found.message, "file": file, "line": line}

    def _lasso(self, retelling: Retelling, found: Lasso) -> Counterexample:
        declared = found.property
        end = {
            "eventually": "ever",
            "leads_to": f"leads to {declared.then}",
            "infinitely_often": "again and again",
            "eventually_always": "for good",
        }[declared.kind]
        lost = "" if found.lost is None else f" (it does not hold {told_after(found.lost)})"
        about = self._about(declared, f"not {end}: {declared.claim}{lost}")
        moves = retelling.moves(found.states, found.steps)
        told = retelling.tell(found.states[0], moves, cycle=found.cycle, **about)
        return replace(told, fairness=found.fairness)

    def _about(self, declared: Property, message: str) -> dict[str, Any]:
        code = getattr(type(self._system), declared.method).__code__
        file, line = written_at(code.co_filename, code.co_firstlineno)
        about = {"kind": declared.kind, "message": message, "file": file, "line": line}
        return {**about, "property": declared.name}

    def _violated(self, held: int) -> Property:
        """The first property that must hold and does not."""
        bits = {name: 1 << bit for bit, name in enumerate(self._program.properties)}
        for declared in self._declared:
            if declared.kind == "always" and not held & bits[declared.name]:
                return declared
        raise AssertionError("a state was called a violation without one")


def _holds_beyond(target: InterpretedTarget, name: str) -> bool:
    """Return whether a claim holds beyond a bound; one that cannot be asked there is not broken."""
    try:
        return target.holds_now(name)
    except (StepFault, *FAULTS):
        return True
