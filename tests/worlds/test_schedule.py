"""A schedule is a word, and chance draws the same one for the same seed."""

from __future__ import annotations

from hypothesis import given, strategies as st

from epochgate.runtime.testing.worlds.faults import FAULTS
from epochgate.runtime.testing.worlds.schedule import (
    ORDERS,
    At,
    AtRandom,
    Deviation,
    deviations_of,
    token_of,
)

DEVIATIONS = st.builds(
    Deviation,
    st.tuples(st.integers(0, 99), st.integers(0, 999)),
    st.sampled_from((*ORDERS, *FAULTS)),
    st.integers(0, 9),
)


@given(st.lists(DEVIATIONS))
def test_a_token_names_its_schedule(deviations: list[Deviation]) -> None:
    assert deviations_of(token_of(deviations)) == deviations


STEPS = [(call, step) for call in range(1, 6) for step in range(60)]


class Moment:
    at: At = (0, 0)

    def options(self, what: str) -> int:
        return 2

    def doing(self) -> str:
        return "running"


def drawn(seed: int) -> list[Deviation]:
    choosing, moment = AtRandom(seed, 3, STEPS, (*ORDERS, *FAULTS)), Moment()
    found: list[Deviation] = []
    for moment.at in STEPS:
        found += choosing.at(moment)
    return found


def test_the_same_seed_draws_the_same_and_no_more_faults_than_allowed() -> None:
    assert drawn(7) == drawn(7)
    assert drawn(7) != drawn(8)
    assert max(sum(d.is_fault for d in drawn(seed)) for seed in range(50)) == 3


def test_every_fault_is_drawn_and_each_run_leaves_most_of_them_out() -> None:
    kinds = [frozenset(d.what for d in drawn(seed)) for seed in range(150)]
    assert set().union(*kinds) >= {*ORDERS, *FAULTS}
    assert all(len(each) <= len(ORDERS) + 3 for each in kinds)
