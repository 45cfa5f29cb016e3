"""A partial-order reduction changes no verdict, and no engine's mind."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from epochgate.benchmarks.independent import Filter, PoliteTable, Ring, Table, Track
from epochgate.fsm.checker import Result, Verdict, check
from epochgate.fsm.checker.checking import CannotCheck
from epochgate.fsm.checker.reduction.tables import add_reduction
from epochgate.fsm.closed import ClosedSystem
from epochgate.models.studies.reference import Reference
from tests.checker import small_systems as small
from tests.checker.broken import LateAcknowledgement
from tests.checker.choices import Market

pytest.importorskip("hypothesis")
from hypothesis import HealthCheck, given, settings

from tests.checker.random_programs import CHANNEL, PROPERTIES, happening, programs

ENGINES = ("llvm", "python", "interpreted")


def told(result: Result) -> Any:
    """Return what a reduction may not change."""
    if result.verdict is Verdict.FAIL:
        return result.verdict
    claims = [(found.name, found.verdict) for found in result.properties]
    rows = [(row.is_taken, row.untaken_from) for row in result.coverage]
    return result.verdict, result.terminal_states, claims, rows


@pytest.mark.parametrize(
    ("system", "states", "left"),
    [
        (Table(places=8), 1154, 184),
        (PoliteTable(places=8), 1154, 184),
        (Ring(members=5), 144, 15),
        (Track(), 3125, 21),
        (Filter(), 288, 288),
        (small.House(visitors=3), 20, 9),
        (LateAcknowledgement(N=1, C=1), None, None),
        (Reference(N=1, C=1), None, None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, ClosedSystem) else "",
)
def test_the_verdict_stays_in_a_smaller_space(
    system: ClosedSystem, states: int | None, left: int | None
) -> None:
    full, reduced = (check(system, engine="python", partial_order=one) for one in (False, True))
    assert told(full) == told(reduced)
    assert reduced.partial_order
    if states is not None and left is not None:
        assert (full.states, reduced.states) == (states, left)
        assert (full.left_out, reduced.left_out > 0) == (0, left < states)


@pytest.mark.parametrize("system", [Table(places=7), Ring(members=5), small.House(visitors=3)])
def test_every_engine_and_every_order_has_the_same_smaller_space(system: ClosedSystem) -> None:
    results = [check(system, engine=engine, partial_order=True) for engine in ENGINES]
    results.append(check(system, workers=2, partial_order=True))
    results.append(check(system, order="depth", partial_order=True))
    found = {(r.states, r.transitions, r.left_out, r.terminal_states) for r in results}
    assert len(found) == 1
    assert results[0].left_out > 0


def test_steps_that_choose_are_reduced_by_every_engine() -> None:
    results = [check(Market(), engine=engine, partial_order=True) for engine in ENGINES]
    assert len({(r.verdict, r.states, r.transitions, r.left_out) for r in results}) == 1


def keeps_everything(program: Any) -> None:
    """Assert that a search finds the same with a reduction and without."""
    full = happening(program)
    reduced = deepcopy(program)
    add_reduction(reduced, [CHANNEL], PROPERTIES)
    found = happening(reduced)
    assert found.states <= full.states
    for name in ("terminal", "faults", "covered", "told"):
        assert getattr(found, name) == getattr(full, name), name


@settings(max_examples=30, deadline=None, suppress_health_check=[*HealthCheck])
@given(programs())
def test_whatever_can_happen_in_a_random_program_still_does(program: Any) -> None:
    keeps_everything(program)


@pytest.mark.extended
@settings(max_examples=3000, deadline=None, suppress_health_check=[*HealthCheck])
@given(programs())
def test_whatever_can_happen_in_many_random_programs_still_does(program: Any) -> None:
    keeps_everything(program)


def test_a_search_is_gone_on_with_only_under_the_same_reduction(tmp_path: Any) -> None:
    kept = tmp_path / "search.bin"
    options: dict[str, Any] = {"partial_order": True, "resume": kept}
    check(Ring(), max_depth=3, **options)
    again, at_once = check(Ring(), **options), check(Ring(), partial_order=True)
    assert (again.states, again.left_out) == (at_once.states, at_once.left_out)
    with pytest.raises(Exception, match="name another file"):
        check(Ring(), resume=kept)


@pytest.mark.parametrize(
    ("system", "options", "message"),
    [
        (small.PoliteHouse, {}, "is about whole runs"),
        (small.House, {"symmetry": True}, "cannot be used together with symmetry"),
    ],
)
def test_what_would_be_unsound_is_refused(
    system: type[ClosedSystem], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(CannotCheck, match=message):
        check(system, partial_order=True, **options)
