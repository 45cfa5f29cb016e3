"""Commits in several steps on every interleaving; `test_designs` holds what breaks them."""

from __future__ import annotations

import pytest

from epochgate.fsm.checker import Verdict, check
from epochgate.models.closed.committing import CommittingAgain, CommittingInSteps

pytestmark = pytest.mark.extended

DIRECT = {"task_committers": 0}
FORMS: dict[str, tuple[CommittingInSteps, int, int]] = {
    "no_operators": (CommittingInSteps(operators_before=0, operators_behind=0), 86_894, 916_704),
    "operators_behind": (CommittingInSteps(operators_before=0), 165_385, 1_764_554),
    "operators_alone": (CommittingInSteps(**DIRECT), 201_831, 2_172_739),
    "operators_behind_alone": (CommittingInSteps(**DIRECT, operators_before=0), 81_639, 865_715),
    "no_step": (
        CommittingInSteps(**DIRECT, operators_before=0, operators_behind=0),
        33_583,
        349_594,
    ),
    "operators_alone_again": (CommittingAgain(**DIRECT), 454_384, 3_771_207),
    "no_retry": (CommittingInSteps(commit_retries=0), 645_653, 7_003_631),
}


@pytest.mark.parametrize(
    ("system", "states", "transitions"),
    [(CommittingInSteps, 678_513, 7_340_010), (CommittingAgain, 1_091_179, 9_151_549)],
)
def test_at_its_own_bounds_everything_that_can_happen_does(
    system: type[CommittingInSteps], states: int, transitions: int
) -> None:
    result = check(system())
    assert result.verdict is Verdict.PASS
    assert (result.states, result.transitions) == (states, transitions)


@pytest.mark.parametrize(("system", "states", "transitions"), FORMS.values(), ids=FORMS)
def test_the_claims_hold_whatever_steps_there_are(
    system: CommittingInSteps, states: int, transitions: int
) -> None:
    result = check(system)
    assert result.counterexample is None
    assert (result.states, result.transitions) == (states, transitions)


def test_each_row_of_the_steps_is_taken_in_some_form() -> None:
    forms = [system for system, _, _ in FORMS.values()]
    coverage = [
        row
        for system in (CommittingInSteps(), CommittingAgain(), *forms)
        for row in check(system).coverage
        if row.machine
        in (
            "stage_before",
            "stage_behind",
            "committable_collector",
            "subtask_committer",
            "lifecycle",
        )
        and row.origin not in ("JobLifecycle",)
    ]
    named = {(row.machine, row.trigger, row.because) for row in coverage}
    taken = {(row.machine, row.trigger, row.because) for row in coverage if row.is_taken}
    assert named - taken == set()
