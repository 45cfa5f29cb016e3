"""Inductive checks: from every typed state in which claims hold, each step leads to one in which
they hold again.

A typed state has any values at all in its fields' ranges: it need not be reachable. With the
initial state this shows the claims for all reachable states, however many there are. All claims are
assumed before a step and all are shown after it, so none rests on one that is not shown.

With depth K the claims are assumed in K states in a row, which are all different, and shown in the
next one and in the first K states of every run (k-induction).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING

from epochgate.errors import InvariantBroken, UsageError
from epochgate.fsm.checker.compiler.ir import Fault, Program
from epochgate.fsm.checker.compiler.layout import Layout
from epochgate.fsm.checker.compiler.lowering import Lowering
from epochgate.fsm.checker.compiler.python_target import PythonTarget, StepFault
from epochgate.fsm.checker.engines.choice import EngineUnavailable
from epochgate.fsm.checker.engines.initial import initial_states
from epochgate.fsm.checker.engines.interpreted import InterpretedTarget
from epochgate.fsm.checker.engines.search import Words
from epochgate.fsm.checker.outcome import OVER_A_BOUND, Outcome
from epochgate.fsm.checker.result import Counterexample, PropertyResult, Result, Verdict
from epochgate.fsm.checker.retelling import Move, Retelling
from epochgate.fsm.choosing import Choices
from epochgate.fsm.claims import called
from epochgate.fsm.closed import ClosedSystem

if TYPE_CHECKING:
    from epochgate.fsm.checker.solving import Solving

FIRST_STATES_MAX = 100_000
"""How many states the first steps of the runs may lead to, with a depth above 1."""
ALL = "all"
UNREACHED = "this state need not be reachable"


class NoInvariant(UsageError):
    """A claim was named that no inductive check is defined for."""


@dataclass(frozen=True)
class Claim:
    """One method that is assumed and shown; a `lemma` is there for the others."""

    name: str
    text: str
    premise: str
    is_lemma: bool

    @property
    def method(self) -> str:
        """The name of the method, which may be claimed for each member of an index set."""
        return called(self.name)[0]


@dataclass
class Shown:
    """The outcome of an inductive check."""

    steps: int = 0
    ways: int = 0
    taken: set[int] = field(default_factory=set)
    faults: dict[int, str] = field(default_factory=dict)
    """Faults that the claims do not exclude, and a step that ends in each."""
    broken: Claim | None = None
    """The claim that is not shown, or None where a step fails or nothing was found."""
    counterexample: Counterexample | None = None
    stopped: str = ""
    trivial: set[str] = field(default_factory=set)
    """Claims that hold in every typed state."""
    vacuous: set[str] = field(default_factory=set)
    """Claims whose premise holds in none of the states that were looked at."""
    held: int = 0

    def covered(self) -> set[int]:
        return self.taken


class Unsolved(Exception):
    """The solver, or the time, has come to an end without an answer."""


def check_inductive(
    system: ClosedSystem | type[ClosedSystem],
    claims: str | Sequence[str],
    *,
    lemmas: Sequence[str] = (),
    depth: int = 1,
    without_faults: bool = False,
    max_seconds: float | None = None,
) -> Result:
    """Show that claims hold in the initial state and are preserved by each step from every typed
    state in which they hold; or return the state and the step that do not.

    `claims` and `lemmas` name methods of the system: an `always`, or any method that takes nothing
    and gives a bool; the claim "all" stands for each `always`. The lemmas are shown with the
    claims. `depth` is the number of states in a row in which all are assumed. A step that fails has
    no state after it and breaks no claim; it is told, and with `without_faults` it is a
    counterexample, unless it leaves a range or overflows a channel.

    Raises DeclarationError for what cannot be compiled, NoInvariant, and EngineUnavailable without
    z3-solver.
    """
    if find_spec("z3") is None:
        raise EngineUnavailable(
            "an inductive check needs z3-solver: `pip install 'epochgate-proving[prove]'`"
        )
    if depth < 1:
        raise NoInvariant(f"depth {depth}: at least one state comes before a step")
    begun_s = time.perf_counter()
    made = system if isinstance(system, ClosedSystem) else system()
    named = [claims] if isinstance(claims, str) else [*claims]
    named = _always(made) if named == [ALL] else named
    if not named:
        raise NoInvariant(f"{type(made).__name__} claims no `always`; name a method of your own")
    wanted = [
        claim
        for name in dict.fromkeys([*named, *lemmas])
        for claim in _claims(made, name, name not in named)
    ]
    lowering = Lowering(made)
    own = {claim.name for claim in wanted} - {p.name for p in made.claims()}
    program = lowering.program(sorted(own))
    ready_s = time.perf_counter()
    check = _Inductive(made, program, lowering.layout, wanted, depth, without_faults)
    shown = check.run(None if max_seconds is None else ready_s + max_seconds)
    return check.result(shown, ready_s - begun_s, time.perf_counter() - ready_s)


def _always(system: ClosedSystem) -> list[str]:
    return [p.name for p in system.properties() if p.kind == "always"]


def _claims(system: ClosedSystem, name: str, is_lemma: bool) -> list[Claim]:
    """The claim of this name, for each member where it is claimed so."""
    found = next((p for p in system.properties() if p.name == name), None)
    if found is not None and found.kind != "always":
        raise NoInvariant(
            f"{name} of {type(system).__name__} is claimed as {found.kind}, and an inductive check "
            f"is about what holds in every state; name an `always`, or a method of your own"
        )
    method = getattr(type(system), name, None)
    parameters = getattr(getattr(method, "__code__", None), "co_argcount", 0)
    is_test = getattr(method, "__annotations__", {}).get("return") in (bool, "bool")
    if found is None and not (is_test and parameters == 1):
        known = ", ".join(_always(system))
        raise NoInvariant(
            f"{type(system).__name__} has no claim {name!r}; name an `always` of it ({known}), "
            f"{ALL} for all of them, or a method that takes nothing and is annotated `-> bool`"
        )
    if found is None:
        return [Claim(name, name, "", is_lemma)]
    members = (p for p in system.claims() if called(p.name)[0] == name)
    return [Claim(p.name, p.claim, p.then, is_lemma) for p in members]


class _Inductive:
    """One inductive check."""

    def __init__(
        self,
        system: ClosedSystem,
        program: Program,
        layout: Layout,
        claims: list[Claim],
        depth: int,
        without_faults: bool,
    ) -> None:
        self.system, self.program, self.layout = system, program, layout
        self.claims, self.depth, self.without_faults = claims, depth, without_faults
        self.plain = PythonTarget(program)

    def run(self, deadline_s: float | None) -> Shown:
        from epochgate.fsm.checker.solving import Solving

        shown = Shown()
        solving = Solving(self.program, self.layout, [c.name for c in self.claims], deadline_s)
        try:
            if self._begins_wrong(shown):
                self._tell_of_none(shown, solving)
            else:
                self._steps(shown, solving)
                self._look_at_claims(shown, solving)
        except Unsolved as unsolved:
            shown.stopped = str(unsolved)
        return shown

    # The first states

    def _begins_wrong(self, shown: Shown) -> bool:
        """Look at the first `depth` states of every run: the initial ones, and what follows."""
        begun = initial_states(self.program, type(self.system).__name__)
        level: dict[Words, tuple[Move, ...]] = dict.fromkeys(begun, ())
        first = {state: state for state in begun}
        for remaining in range(self.depth - 1, -1, -1):
            for state, steps in level.items():
                if (broken := self._broken(state)) is not None:
                    message = f"not always: {broken.text}"
                    shown.broken = broken
                    shown.counterexample = self._told(first[state], steps, broken, message)
                    return True
            level = self._following(level, first, shown) if remaining else {}
            if shown.counterexample is not None:
                return True
        return False

    def _following(
        self, level: dict[Words, tuple[Move, ...]], first: dict[Words, Words], shown: Shown
    ) -> dict[Words, tuple[Move, ...]]:
        """The states after those of a level that are not known, unless a step fails that must not;
        `first` is where each began.
        """
        found: dict[Words, tuple[Move, ...]] = {}
        failing = self._failing()
        for state, steps in level.items():
            for step, choices, after in self.plain.outcomes(state):
                moves = _taken(steps, step, choices)
                if isinstance(after, StepFault):
                    if after.number in failing:
                        fault = self.program.faults[after.number]
                        shown.counterexample = self._told(first[state], moves, fault, fault.message)
                        return found
                elif after not in first:
                    first[after] = first[state]
                    found[after] = moves
            if len(first) > FIRST_STATES_MAX:
                raise Unsolved(
                    f"the first {self.depth} states of the runs are more than "
                    f"{FIRST_STATES_MAX:,}; take a smaller depth, and lemmas instead"
                )
        return found

    def _broken(self, state: Words) -> Claim | None:
        """The first claim that does not hold in a state."""
        return next((c for c in self.claims if not self._holds(c, state)), None)

    def _holds(self, claim: Claim, state: Words) -> bool:
        try:
            return self.plain.holds(claim.name, state)
        except StepFault:
            return False

    # The steps

    def _steps(self, shown: Shown, solving: Solving) -> None:
        """Look at every step from every typed state in which the claims hold."""
        for number in range(len(self.program.steps)):
            found = solving.step(number, shown)
            shown.steps += 1
            for fault in found.faults:
                shown.faults.setdefault(fault, self.program.steps[number].label)
        for number in range(len(self.program.steps)):
            chain = solving.counterexample(number, self.depth, self._failing())
            if chain is not None:
                self._tell(shown, chain, number)
                return

    def _failing(self) -> set[int]:
        """The faults that count as counterexamples."""
        if not self.without_faults:
            return set()
        faults = enumerate(self.program.faults)
        return {number for number, fault in faults if fault.kind not in OVER_A_BOUND}

    def _tell(self, shown: Shown, chain: list[Words], number: int) -> None:
        """Take the steps that the solver names in compiled code, and then on the machines."""
        before, label = chain[-1], self.program.steps[number].label
        if any(self._broken(state) is not None for state in chain):
            raise InvariantBroken(f"the solver takes the claims to hold where they do not: {chain}")
        steps = tuple(self._between(*pair) for pair in itertools.pairwise(chain))
        failing = self._failing()
        for _, choices, after in self.plain.outcomes(before, number):
            found: Claim | Fault | None
            if isinstance(after, StepFault):
                found = fault = self.program.faults[after.number]
                message = f"not excluded: {fault.message} ({UNREACHED})"
                if after.number not in failing:
                    continue
            elif (broken := self._broken(after)) is not None:
                found = shown.broken = broken
                message = f"not preserved by {label}: {broken.text} ({UNREACHED})"
            else:
                continue
            moves = _taken(steps, number, choices)
            shown.counterexample = self._told(chain[0], moves, found, message)
            return
        raise InvariantBroken(f"the solver says that {label} breaks a claim after {before}")

    def _between(self, state: Words, following: Words) -> Move:
        """The first step that leads from one state to the other."""
        for number, choices, after in self.plain.outcomes(state):
            if after == following and choices is not None:
                return number, choices
        raise InvariantBroken(f"the solver took a step from {state} to {following}: there is none")

    def _target(self) -> InterpretedTarget:
        return InterpretedTarget(self.system, self.program, self.layout)

    def _told(
        self, first: Words, steps: Sequence[Move], found: Claim | Fault, message: str
    ) -> Counterexample:
        retelling, is_reached = Retelling(self._target(), self.program), UNREACHED not in message
        if isinstance(found, Fault):
            kind, named, file, line = found.kind, self.claims[0], found.file, found.line
        else:
            code = getattr(type(self.system), found.method).__code__
            kind, named = "always", found
            file, line = code.co_filename, code.co_firstlineno
        retelling.target.packing.load(self.program.initial)
        return retelling.tell(
            first,
            steps,
            usual=None if is_reached else self.system.values(),
            kind=kind if is_reached else "inductive",
            message=message,
            file=file,
            line=line,
            property=named.name,
        )

    # The claims

    def _tell_of_none(self, shown: Shown, solving: Solving) -> None:
        """Say it where a claim fails at the start because no typed state satisfies all of them."""
        if not solving.is_satisfiable() and shown.counterexample is not None:
            shown.stopped = "no typed state at all satisfies the claims"

    def _look_at_claims(self, shown: Shown, solving: Solving) -> None:
        for claim in self.claims:
            if solving.is_trivial(claim.name):
                shown.trivial.add(claim.name)
            if claim.premise and not solving.is_satisfiable(claim.premise):
                shown.vacuous.add(claim.name)

    # The result

    def result(self, shown: Shown, compile_seconds: float, search_seconds: float) -> Result:
        """Return what was found, as any check tells it."""
        import z3

        outcome = Outcome(self.system, self.program, self.layout, shown, (), None)
        properties = [self._judged(claim, shown) for claim in self.claims]
        derived = self.system.DERIVED
        count = self.layout.typed_states()
        seen = str(count) if count < 10**9 else f"about 2**{count.bit_length() - 1}"
        return Result(
            system=type(self.system).__name__,
            constants={n: v for n, v in self.system.constants.items() if n not in derived},
            engine=f"z3 {z3.get_version_string()}",
            workers=1,
            verdict=self._verdict(shown, properties, outcome),
            states=0,
            transitions=0,
            depth=self.depth,
            terminal_states=0,
            compile_seconds=compile_seconds,
            search_seconds=search_seconds,
            bytes_per_state=0.0,
            properties=properties,
            coverage=outcome.coverage,
            counterexample=shown.counterexample,
            stopped=shown.stopped,
            order="inductive",
            effort=f"{seen} typed states, {shown.steps} steps from all of them in which the claims "
            f"hold" + (f", {self.depth} in a row" if self.depth > 1 else ""),
            notes=[*self._faults(shown)],
        )

    def _judged(self, claim: Claim, shown: Shown) -> PropertyResult:
        code = getattr(type(self.system), claim.method).__code__
        verdict, detail = Verdict.PASS, ""
        if shown.broken is claim:
            verdict = Verdict.FAIL
            detail = shown.counterexample.message if shown.counterexample is not None else ""
        elif shown.stopped or shown.counterexample is not None:
            verdict, detail = Verdict.BOUNDED, "the check ended before this was decided"
        elif claim.name in shown.vacuous:
            verdict, detail = Verdict.VACUOUS, f"{claim.premise} holds in no state that was assumed"
        elif claim.name in shown.trivial:
            detail = "it holds in every typed state: the ranges say it, and no step is needed"
            verdict = Verdict.PASS if claim.is_lemma else Verdict.VACUOUS
        kind = "lemma" if claim.is_lemma else "inductive"
        return PropertyResult(
            kind, claim.name, claim.text, verdict, code.co_filename, code.co_firstlineno, detail
        )

    def _verdict(self, shown: Shown, properties: list[PropertyResult], outcome: Outcome) -> Verdict:
        if shown.counterexample is not None:
            return Verdict.FAIL
        if shown.stopped:
            return Verdict.BOUNDED
        is_vacuous = any(p.verdict is Verdict.VACUOUS for p in properties)
        is_untaken = any(not row.is_taken and not row.excused for row in outcome.coverage)
        return Verdict.VACUOUS if is_vacuous or is_untaken else Verdict.PASS

    def _faults(self, shown: Shown) -> Iterator[str]:
        """Return the steps that fail, which the claims do not exclude, and have no state after."""
        for fault, label in sorted(shown.faults.items()):
            yield f"not excluded: {label} may fail: {self.program.faults[fault].message}"


def _taken(moves: tuple[Move, ...], step: int, choices: Choices | None) -> tuple[Move, ...]:
    """Return the moves with one more, which was not taken if its guard fails."""
    return moves if choices is None else (*moves, (step, choices))
