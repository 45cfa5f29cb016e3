"""The precompiled dispatch does what `transitions` does, for every state, trigger and guard
outcome.
"""

from __future__ import annotations

import inspect
from itertools import product
from typing import Any, cast

import pytest
from hypothesis import given, settings, strategies as st

from epochgate.fsm import STAY, Ignore, Machine, Outcome, Row, System, TransitionRefused
from epochgate.models import MACHINES, RUNNING, SplitAssignments
from epochgate.models.committing_job import CommittingJob
from epochgate.models.concurrent_job import ConcurrentJob
from tests.fsm.transitions_twin import LibraryTwin
from tests.fsm.turnstile import Station, Turnstile, declared

ALL: dict[str, type[Machine]] = {**MACHINES, "turnstile": Turnstile}
Log = list[tuple[str, str, tuple[Any, ...]]]


class Probe(Machine):
    """Its guards return what they are told, and its actions only record themselves."""

    outcomes: dict[str, bool]
    log: Log


def guards_of(machine: type[Machine]) -> set[str]:
    return {name for row in machine.ROWS for name, _ in row.literals}


def probing(machine: type[Machine]) -> type[Probe]:
    """A throw-away subclass whose callbacks are probes with the parameters of the real ones."""

    def probe(name: str, is_guard: bool) -> Any:
        def callback(self: Probe, *arguments: Any) -> bool | None:
            if is_guard:
                return self.outcomes[name]
            self.log.append((name, self.state, arguments))
            return None

        callback.__signature__ = inspect.signature(getattr(machine, name))  # type: ignore[attr-defined]
        return callback

    guards = guards_of(machine)
    actions = {name for row in machine.ROWS for name in row.actions}
    body = {name: probe(name, name in guards) for name in guards | actions}
    made: Any = declared(f"Probed{machine.__name__}", body, machine, Probe)
    return cast(type[Probe], made)


def system_of(machine: type[Machine]) -> System:
    if machine is Turnstile:
        return Station()
    systems: tuple[type[System], ...] = (*RUNNING, ConcurrentJob, CommittingJob)
    system = next(s for s in systems if machine in s.MACHINES.values())
    sizes = ("places",) if system is SplitAssignments else ("coordinators",)
    return system(**{name: 1 for name in sizes if name in system.CONSTANTS})


def assert_agreement(machine: type[Machine], system: System) -> int:
    """Compare both ways of firing in every case, and return how many cases there were."""
    probed, cases = probing(machine), 0
    for state, trigger in product(probed.STATES, probed.triggers()):
        rows = [
            row
            for source, row in machine.expanded_rows()
            if (source, row.trigger) == (state, trigger)
        ]
        guards = sorted({name for row in rows for name, _ in row.literals})
        arguments = tuple(f"<{name}>" for name in machine.trigger_parameters(trigger))
        for values in product((False, True), repeat=len(guards)):
            outcomes = dict(zip(guards, values, strict=True))
            assert_one(probed, system, state, trigger, outcomes, arguments)
            cases += 1
    return cases


def assert_one(
    probed: type[Probe],
    system: System,
    state: str,
    trigger: str,
    outcomes: dict[str, bool],
    arguments: tuple[Any, ...],
) -> None:
    ours, theirs = (probed(system, (0,) * len(probed.INDEX)) for _ in range(2))
    for machine in (ours, theirs):
        machine.state, machine.outcomes, machine.log = state, outcomes, []
    try:
        outcome = getattr(ours, trigger)(*arguments)
    except TransitionRefused:
        outcome = None
    was_taken = LibraryTwin(theirs).fire(trigger, *arguments)
    assert (outcome is not None, ours.state, ours.log) == (was_taken, theirs.state, theirs.log)
    if outcome is Outcome.IGNORED:
        assert (ours.state, ours.log) == (state, [])


@pytest.mark.parametrize("name", ALL)
def test_dispatch_and_library_agree_on_every_state_trigger_and_guard_outcome(name: str) -> None:
    machine = ALL[name]
    cases = assert_agreement(machine, system_of(machine))
    assert cases >= len(machine.STATES) * len(machine.triggers())


GUARDS, ACTIONS = ("is_a", "is_b", "is_c"), ("do_x", "do_y", "do_z")


@st.composite
def literal_sets(draw: st.DrawFn, guards: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Conjunctions that exclude each other: some leaves of a tree of decisions over the guards."""
    if not guards or draw(st.booleans()):
        return [()] if draw(st.integers(0, 3)) else []
    rest = guards[1:]
    held = [(guards[0], *leaf) for leaf in draw(literal_sets(rest))]
    failed = [(f"not {guards[0]}", *leaf) for leaf in draw(literal_sets(rest))]
    return held + failed


@st.composite
def generated_machines(draw: st.DrawFn) -> type[Machine]:
    states = ("s0", "s1", "s2", "s3")[: draw(st.integers(1, 4))]
    rows: list[Row] = []
    for source, trigger in product(states, ("go", "stop")):
        for literals in draw(literal_sets(tuple(draw(st.permutations(GUARDS))))):
            when = " and ".join(literals) or None
            if draw(st.booleans()):
                dest = draw(st.sampled_from((STAY, *states)))
                after = tuple(draw(st.permutations(ACTIONS))[: draw(st.integers(0, 3))])
                rows.append(Row(trigger, source, dest, when, after, "drawn"))
            else:
                rows.append(Ignore(trigger, source, when, "drawn"))
    rows.append(Row("turn", states[0], STAY, None, None, "there is always one row"))
    return generated(states, rows)


def generated(states: tuple[str, ...], rows: list[Row]) -> type[Machine]:
    """A valid machine: only the states that can be reached, the traps among them terminal."""
    reached = {states[0]}
    for _ in states:
        reached |= {row.dest for row in rows if row.source in reached and row.dest}
    rows = [row for row in rows if row.source in reached]
    left = {row.source for row in rows if row.dest not in (None, row.source)}
    kept = tuple(state for state in states if state in reached)

    def is_a(self: Machine) -> bool:
        return True

    def is_b(self: Machine, first: int) -> bool:
        return True

    def do_x(self: Machine, first: int, second: int) -> None: ...

    callbacks = {"is_a": is_a, "is_b": is_b, "is_c": is_b, "do_x": do_x, "do_y": is_a, "do_z": is_b}
    body = {
        "STATES": kept,
        "INITIAL": states[0],
        "TERMINAL": tuple(s for s in kept if s not in left) if len(kept) > 1 else (),
        "ROWS": tuple(rows),
        **callbacks,
    }
    return declared("Generated", body)


@settings(max_examples=150, derandomize=True, database=None)
@given(generated_machines())
def test_dispatch_and_library_agree_on_generated_machines(machine: type[Machine]) -> None:
    assert_agreement(machine, Station())
