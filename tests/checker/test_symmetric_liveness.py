"""Claims about runs without end up to symmetry have the verdicts of the whole search."""

from __future__ import annotations

from dataclasses import replace

import pytest

from epochgate.fsm.checker import check
from epochgate.fsm.checker.asserting import assert_passes
from epochgate.fsm.checker.schedule import ClaimBroken, play
from epochgate.fsm.closed import strongly_fair, weakly_fair
from tests.checker import crowds, small_systems as small

SEEDS = [5, pytest.param(150, marks=pytest.mark.extended)]


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("claimed", crowds.CLAIMS)
def test_verdicts_are_those_of_the_whole_search(claimed: type[crowds.Crowd], seeds: int) -> None:
    verdicts = []
    for seed in range(seeds):
        system = crowds.drawn(seed, claimed)
        for engine in ("llvm", "python", "interpreted") if seed < 1 else ("python",):
            whole = check(system, engine=engine)
            folded = check(system, engine=engine, symmetry=True)
            assert folded.verdict is whole.verdict, (seed, engine)
            assert folded.states <= whole.states
            found = folded.counterexample
            if found is not None:
                labels = [step.label for step in found.steps]
                with pytest.raises(ClaimBroken):
                    play(system(), *labels, cycle=found.cycle, promise=found.property)
        verdicts.append(found is None)
    assert 0 < sum(verdicts) < seeds


def test_an_instance_that_starves_is_not_lost_among_the_others() -> None:
    assert_passes(small.PoliteHouse(visitors=4), symmetry=True)
    steps = tuple(replace(step, is_fair=False) for step in small.PoliteHouse.STEPS)
    for demand, is_kept in (
        (weakly_fair("visitor.leave"), True),
        (weakly_fair("visitor.leave", each="visitor"), True),
        (strongly_fair("visitor.enter"), False),
    ):
        members = {"STEPS": steps, "FAIRNESS": (demand,)}
        system = type("House", (small.PoliteHouse,), members)
        whole = check(system(visitors=3))
        folded = check(system(visitors=3), symmetry=True)
        assert (whole.counterexample is None) == (folded.counterexample is None) == is_kept
        if is_kept:
            assert [p.detail for p in folded.properties] == [p.detail for p in whole.properties]
