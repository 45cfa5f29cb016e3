"""Plays a schedule of steps, as a counterexample lists them, and raises when a claim breaks.

A schedule names instances and triggers, `process[0].hear`, and says nothing about rows: it can be
played on machines that were mended since it was found. A step that is not possible there is left
out, and the rest goes on, so a schedule that found a fault once stays worth playing: it passes
while no claim breaks on the way. `MachineStage` plays on the machines of the closed system, whose
guards are really evaluated; the runtime has a stage that plays on a production job as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, Protocol

from epochgate.errors import UsageError
from epochgate.fsm.checker.compiler.layout import Changed, Layout, Packing
from epochgate.fsm.checker.demands import demands
from epochgate.fsm.checker.engines.interpreted import FAULTS
from epochgate.fsm.checker.refinement import Refinement
from epochgate.fsm.checker.step_claims import StepClaimBroken, StepClaims
from epochgate.fsm.choosing import Tape, WayClosed, parsed
from epochgate.fsm.claims import holds
from epochgate.fsm.closed import ClosedSystem, Property, Step
from epochgate.fsm.errors import TransitionRefused
from epochgate.fsm.machine import Machine


class ClaimBroken(AssertionError):
    """A schedule has led to what must not be; the message says after which step, and what it is."""


class StateForbidden(ClaimBroken):
    """The machines are in a state that a claim forbids."""


class StepUnknown(UsageError):
    """A schedule names a step that its system does not have."""


class Stage(Protocol):
    """The stage on which a schedule is played; `system` is in the state that the steps so far have
    led to.
    """

    @property
    def system(self) -> ClosedSystem: ...
    @property
    def steps(self) -> dict[str, bool]:
        """All steps that the system has, and whether each is fair."""
        ...

    def possible(self) -> list[str]:
        """The steps that are possible now, in the order of the system's STEPS and indices."""
        ...

    def take(self, step: str) -> None:
        """Take a step that is possible, with the values that its name chooses; raises ClaimBroken,
        and WayClosed for values that it cannot choose.
        """
        ...

    def changes_nothing(self, step: str) -> bool:
        """True if a step that is possible would leave everything as it is; it is not taken."""
        ...


class MachineStage:
    """Plays on the machines of `system`, which begins in its initial state; `begins` maps
    `instance.field` to what it begins with, where a check chooses that.

    Raises DeclarationError for a field without a bound, and StepUnknown for an unknown field.
    """

    def __init__(self, system: ClosedSystem, begins: Mapping[str, Any] | None = None) -> None:
        self._system = system
        self._steps: dict[str, tuple[Step, Machine]] = {}
        for step, machine in system.step_instances():
            position = "".join(f"[{i}]" for i in machine.index)
            self._steps[f"{step.machine}{position}.{step.trigger}"] = step, machine
        layout = Layout(system)
        self._packing = Packing(system, layout)
        self._refinements = [
            Refinement(system, layout, p) for p in system.properties() if p.kind == "implements"
        ]
        self._step_claims = StepClaims(system)
        self._demands = [p for p in system.claims() if p.kind == "always"]
        self._begin(begins or {})

    def _begin(self, begins: Mapping[str, Any]) -> None:
        fields = {
            f"{name}{''.join(f'[{i}]' for i in machine.index)}.{field}": (machine, field)
            for name in self._system.MACHINES
            for machine in self._system.instances(name)
            for field in ("state", *machine.FIELDS)
        }
        for place, value in begins.items():
            if place not in fields:
                raise StepUnknown(
                    f"{type(self._system).__name__} has no field {place!r} to begin with "
                    f"{value!r}; the schedule belongs to another system or to other constants"
                )
            machine, name = fields[place]
            now = getattr(machine, name)
            setattr(machine, name, type(now)(value) if isinstance(now, list | set) else value)
        self._packing.words()  # finds what is outside its bound

    @property
    def system(self) -> ClosedSystem:
        return self._system

    @property
    def steps(self) -> dict[str, bool]:
        return {name: step.is_fair for name, (step, _) in self._steps.items()}

    def possible(self) -> list[str]:
        """Evaluate the guards of every step; ClaimBroken if one fails."""
        try:
            return [name for name, step in self._steps.items() if self._system.is_enabled(*step)]
        except FAULTS as fault:
            raise ClaimBroken(told(fault)) from fault

    def take(self, step: str) -> None:
        """Fire the step's trigger, and hold the state against every bound and `always`."""
        name, _ = parsed(step)
        before = self.words()
        try:
            measured = self._step_claims.measured()
            self._fire(step)
            after = self.words()  # finds what has left its bound
            if self._steps[name][0].is_stuttering:
                self._packing.expect_unchanged(before, step)
            if after != before:
                self._step_claims.expect_kept(measured)
            self._expect_implemented(before, after, name)
        except WayClosed:
            self._packing.load(before)
            raise
        except (Changed, StepClaimBroken) as fault:
            raise StateForbidden(str(fault)) from fault
        except FAULTS as fault:
            raise ClaimBroken(told(fault)) from fault
        self.expect_claims()

    def _expect_implemented(
        self, before: tuple[int, ...], after: tuple[int, ...], step: str
    ) -> None:
        """Hold a step against every specification; raises StateForbidden."""
        for one in self._refinements:
            if message := one.goes_on(before, after, step):
                raise StateForbidden(message)

    def expect_claims(self) -> None:
        """Hold the present state against every `always`; raises StateForbidden or ClaimBroken."""
        try:
            broken = next((p for p in self._demands if not self._holds(p)), None)
        except FAULTS as fault:
            raise ClaimBroken(told(fault)) from fault
        if broken is not None:
            raise StateForbidden(f"not always: {broken.claim}")

    def _fire(self, step: str) -> None:
        """Take the step with the values of its name; one without gets the first that it may."""
        name, values = parsed(step)
        known, machine = self._steps[name]
        tape = Tape()
        if known.over and not values:
            ways = product(*self._system.options(known))
            values = next(w for w in ways if self._system.is_enabled(known, machine, *w))
        tape.begin(values=values)
        self._system.take(known, machine, tape)

    def _holds(self, declared: Property) -> bool:
        if declared.then and not holds(self._system, declared.then):
            return True
        return holds(self._system, declared.name)

    def words(self) -> tuple[int, ...]:
        """The present state, packed; raises OutOfRange."""
        return self._packing.words()

    def changes_nothing(self, step: str) -> bool:
        before, tape = self.words(), Tape()
        while True:
            try:
                self._system.take(*self._steps[parsed(step)[0]], tape)
                if self.words() != before:
                    return False
            except WayClosed:
                pass
            except FAULTS:
                return False
            finally:
                self._packing.load(before)
            if not tape.advance():
                return True


def told(fault: BaseException) -> str:
    """Tell what a machine or a claim has found, in words."""
    if isinstance(fault, TransitionRefused):
        return f"{fault.machine} refuses {fault.trigger!r}: no row holds"
    return str(fault) or repr(fault)


class _Loop:
    """Watches for a promise that a schedule never keeps, and for steps that wait as it repeats."""

    def __init__(self, stage: Stage, promise: Property) -> None:
        self._stage, self._promise = stage, promise
        self._is_open, self._is_kept = promise.kind != "leads_to", False
        self._is_lost = False
        """Of what is to hold for good: it did not, in the loop."""
        self._begun: dict[str, Any] | None = None
        self._demands = demands(stage.system)
        self._taken: set[str] = set()
        self._possible: list[set[str]] = []
        """The steps that would change something, in each state of the loop."""
        self.look()

    def begin(self) -> None:
        """The steps from here on repeat."""
        self._begun = self._stage.system.values()
        self._is_kept = False
        self.look()

    def look(self, taken: str = "") -> None:
        """Take note of the present state, and of the step that led to it."""
        system, promise = self._stage.system, self._promise
        if promise.kind == "leads_to":
            self._is_open = self._is_open or holds(system, promise.name)
        is_so = holds(system, promise.then or promise.name)
        if promise.kind == "eventually_always":
            self._is_lost = self._begun is not None and (self._is_lost or not is_so)
        elif is_so:
            self._is_open = promise.kind == "infinitely_often"
            self._is_kept = True
        if self._begun is not None:
            changing = {s for s in self._stage.possible() if not self._stage.changes_nothing(s)}
            self._possible.append(changing)
            name = parsed(taken)[0]
            if len(self._possible) > 1 and name in self._possible[-2]:
                self._taken.add(name)

    @property
    def _is_fair(self) -> bool:
        for demand in self._demands:
            now = [not states.isdisjoint(demand.steps) for states in self._possible]
            if self._taken.isdisjoint(demand.steps) and (any if demand.is_strong else all)(now):
                return False
        return True

    def expect_kept(self, repeated: Sequence[str]) -> None:
        """Raise ClaimBroken if what was played since `begin` can go on for ever, and fairly."""
        __tracebackhide__ = True
        is_same = self._stage.system.values() == self._begun
        is_broken = self._is_lost or (self._is_open and not self._is_kept)
        if is_broken and is_same and self._is_fair:
            then = f" leads to {self._promise.then}" if self._promise.then else ""
            how = f"{', '.join(repeated)} can repeat for ever" if repeated else "it can stay so"
            raise ClaimBroken(f"not in every run{then}: {self._promise.claim}; {how}")


def play_on(
    stage: Stage, schedule: Sequence[str], *, cycle: int | None = None, promise: str = ""
) -> list[str]:
    """Play the steps of a schedule; returns those that were not possible and were left out.

    With `cycle` the steps after the first `cycle` ones repeat for ever, and `promise` names the
    property that is then never kept. Raises ClaimBroken, and StepUnknown.
    """
    __tracebackhide__ = True  # pytest then shows the schedule, and not how it is played
    if unknown := [step for step in schedule if parsed(step)[0] not in stage.steps]:
        raise StepUnknown(
            f"{type(stage.system).__name__} has no step {unknown[0]!r}; its steps are "
            f"{', '.join(stage.steps)}. The schedule belongs to another system or to other "
            f"constants; check this one and write its schedule again"
        )
    numbered = [(f"step {n} of {len(schedule)}, {s}", s) for n, s in enumerate(schedule, 1)]
    if cycle is None:
        left_out = _played(stage, numbered, None)
    else:
        declared = next(p for p in stage.system.claims() if p.name == promise)
        loop = _Loop(stage, declared)
        left_out = _played(stage, numbered[:cycle], loop)
        loop.begin()
        left_out += _played(stage, numbered[cycle:], loop)
        loop.expect_kept(schedule[cycle:])
    _expect_no_deadlock(stage)
    return left_out


def _played(stage: Stage, steps: Iterable[tuple[str, str]], loop: _Loop | None) -> list[str]:
    __tracebackhide__ = True
    left_out = []
    for where, step in steps:
        try:
            if parsed(step)[0] not in stage.possible():
                left_out.append(step)
                continue
            stage.take(step)
        except WayClosed:
            left_out.append(step)
            continue
        except ClaimBroken as broken:
            raise ClaimBroken(f"{where}: {broken}") from broken.__cause__
        if loop is not None:
            loop.look(step)
    return left_out


def _expect_no_deadlock(stage: Stage) -> None:
    __tracebackhide__ = True
    final = next((p for p in stage.system.claims() if p.kind == "terminal"), None)
    if final is not None and not stage.possible() and not getattr(stage.system, final.name)():
        raise ClaimBroken(f"deadlock: no step is possible, but not: {final.claim}")


def play(
    system: ClosedSystem,
    *schedule: str,
    cycle: int | None = None,
    promise: str = "",
    begins: Mapping[str, Any] | None = None,
) -> list[str]:
    """Play a schedule on the machines of a closed system in its initial state, as `play_on` does.
    `begins` is as for `MachineStage`.

    Raises ClaimBroken, StepUnknown, and DeclarationError for a field without a bound.
    """
    __tracebackhide__ = True
    stage = MachineStage(system, begins)
    stage.expect_claims()
    return play_on(stage, schedule, cycle=cycle, promise=promise)
