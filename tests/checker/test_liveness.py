"""Claims about runs without end, under weak fairness, with the run that breaks them."""

from __future__ import annotations

import pytest

from epochgate.fsm.checker import Verdict, check
from epochgate.fsm.checker.asserting import assert_passes
from tests.checker import small_systems as small

ENGINES = ("llvm", "python", "interpreted")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_fair_step_that_stays_possible_is_taken(engine: str) -> None:
    assert_passes(small.PoliteHouse, engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_that_breaks_a_promise_is_a_prefix_and_a_cycle(engine: str) -> None:
    result = check(small.UnfairHouse, engine=engine)
    found = result.counterexample
    assert found is not None
    assert (found.kind, found.property, found.cycle) == ("leads_to", "first_wants", 1)
    assert [step.label for step in found.steps] == [
        "visitor[0].ask",
        "visitor[1].ask",
        "visitor[1].enter",
        "visitor[1].leave",
    ]
    assert found.steps[0].after == found.steps[-1].after
    verdicts = {p.name: p.verdict for p in result.properties}
    assert verdicts["is_occupied"] is Verdict.PASS
    assert verdicts["first_wants"] is Verdict.FAIL


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_may_stand_still_where_no_fair_step_is_possible(engine: str) -> None:
    found = check(small.QuietHouse, engine=engine).counterexample
    assert found is not None
    assert (found.kind, found.steps, found.cycle) == ("eventually", (), 0)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_ends_has_come_to_its_end(engine: str) -> None:
    assert_passes(
        type("Ended", (small.Counting,), {"UNTAKEN": {}}),
        engine=engine,
    )
