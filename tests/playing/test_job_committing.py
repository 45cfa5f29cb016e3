"""Random schedules on the closed systems of commits in several steps: the production job, with
committers in its tasks and operators of the user's between, does the same step by step, and while
events wait; its tasks fail, and its drivers die.
"""

from __future__ import annotations

import pytest

from epochgate.models.committing_job import CommittingJob
from tests.playing.gates import Lie
from tests.playing.job_committing_stage import ALONE
from tests.playing.job_committing_walks import STEPS, SYSTEMS, interleaved, walked
from tests.playing.job_lies import arguments_of, lying

WALKS, DEEP_WALKS = 12, 120
DEEP = (pytest.mark.deep, pytest.mark.timeout(1200))


@pytest.mark.parametrize("walks", [WALKS, pytest.param(DEEP_WALKS, marks=DEEP)])
def test_the_runtime_commits_in_steps_as_the_closed_systems_do(walks: int) -> None:
    taken = set[str]()
    for seed in range(walks):
        for system in SYSTEMS:
            walked(system, seed, taken)
    assert taken == STEPS


@pytest.mark.parametrize("walks", [WALKS, pytest.param(DEEP_WALKS, marks=DEEP)])
def test_the_runtime_commits_in_steps_what_waits_as_the_closed_systems_do(walks: int) -> None:
    behind = set[str]()
    for seed in range(walks):
        for system in SYSTEMS:
            interleaved(system, seed, behind)
    assert behind == STEPS - ALONE.keys()


LIES = arguments_of(
    CommittingJob, "stage_before", "subtask_committer", "committable_collector", "stage_behind"
)
"""Those of the other machines are told in jobs that commit in one step."""
SAMPLE = ("subtask_committer.task.keep(tries)", "committable_collector.parts.collect(outcome)")
"""Those that each run of the tests looks for."""


@pytest.mark.parametrize("by", [1, pytest.param(-1, marks=pytest.mark.mutants)])
@pytest.mark.parametrize(
    "argument",
    [told if told in SAMPLE else pytest.param(told, marks=pytest.mark.mutants) for told in LIES],
)
def test_a_wrong_argument_is_found(argument: str, by: int) -> None:
    lie = lying(argument, by)
    assert any(_finds(seed, lie) for seed in range(20)), "no walk finds it"


def _finds(seed: int, lie: Lie) -> bool:
    try:
        for system in SYSTEMS:
            walked(system, seed, set(STEPS), lie)
    except Exception:  # noqa: BLE001  # whatever it is, the walk has not gone on unnoticed
        return True
    return False
