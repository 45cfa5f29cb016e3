"""Each argument of what the job's machines tell their shells is told wrong, and found by a walk on
the closed job in one of its forms.
"""

from __future__ import annotations

import random

import pytest

from epochgate.fsm.closed import ClosedSystem
from epochgate.models.closed.asked import AskedJob
from epochgate.models.closed.endings import EndingJob
from epochgate.models.closed.job import ClosedJob
from epochgate.models.closed.talking import TalkingJob
from epochgate.models.job import Job
from tests.checker.side_by_side import again, drawn
from tests.checker.test_side_by_side import JobInDoubt
from tests.playing.gates import Lie, the_truth
from tests.playing.job_heard import HeardStage
from tests.playing.job_lies import arguments_of, lying
from tests.playing.swarm import Swarm

STEPS_MAX, WALKS = 100, 12
SYSTEMS: tuple[ClosedSystem, ...] = (
    ClosedJob(coordinators=2, F=2),
    EndingJob(),
    EndingJob(subtasks=2, F=2),
    TalkingJob(F=2),
    AskedJob(F=2),
    AskedJob(F=2, periodic=1),
    JobInDoubt(F=2),
)
ELSEWHERE = ("committer", "post_commit")
"""Machines whose lies `test_job_commits` finds."""
LIES = [told for told in arguments_of(Job) if told.partition(".")[0] not in ELSEWHERE]


def walk(system: ClosedSystem, seed: int, lie: Lie) -> None:
    """Take random steps: mostly fair ones, all alike, or each kind as often as the walk likes it,
    and first those that were not taken yet.
    """
    draw, stage = random.Random(seed), HeardStage(again(system), lie)
    swarm = Swarm(seed, set())
    for _ in range(STEPS_MAX):
        if not (possible := stage.possible()):
            return
        usual = drawn(draw, stage.steps, possible)
        stage.take((usual, draw.choice(possible), swarm.draw(possible))[seed % 3])


def finds(system: ClosedSystem, seed: int, lie: Lie) -> bool:
    """Return whether a walk does not come to its end with this lie."""
    try:
        walk(system, seed, lie)
    except Exception:  # noqa: BLE001  # whatever it is, the walk has not gone on unnoticed
        return True
    return False


SCHEDULE = ("launch.launch", "user[0].get_ready", "user[0].fail_everything", "client[0].want")
"""What no walk comes to: a client wants a snapshot of a coordinator that has failed the job and is
not restored.
"""


def finds_on_schedule(lie: Lie) -> bool:
    """Return whether the schedule does not come to its end with this lie."""
    stage = HeardStage(AskedJob(F=2), lie)
    try:
        for step in SCHEDULE:
            stage.take(step)
    except Exception:  # noqa: BLE001  # whatever it is, the schedule has not gone on unnoticed
        return True
    return False


SAMPLE = ("attempt.task.restore(attempt)", "snapshot.user.checkpoint(checkpoint)")
"""Those that each run of the tests looks for."""


@pytest.mark.parametrize(
    "argument",
    [told if told in SAMPLE else pytest.param(told, marks=pytest.mark.mutants) for told in LIES],
)
def test_a_wrong_argument_is_found(argument: str) -> None:
    lie = lying(argument)
    assert finds_on_schedule(lie) or any(
        finds(system, seed, lie) for seed in range(WALKS) for system in SYSTEMS
    )


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.deep) for n in range(1, 20))]
)
def test_shells_do_outside_what_they_hear(seed: int) -> None:
    for system in SYSTEMS:
        walk(system, seed, the_truth)


def test_shells_tell_a_client_that_the_coordinator_has_failed_the_job() -> None:
    assert not finds_on_schedule(the_truth)
