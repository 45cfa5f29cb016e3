"""Random schedules on the closed system of snapshots without checkpoints: the production job does
the same step by step, and while events wait.
"""

from __future__ import annotations

import pytest

from epochgate.fsm.closed import ClosedSystem
from epochgate.models.batch_snapshot import BatchSnapshots
from epochgate.models.closed.batch import BatchJob
from tests.checker.side_by_side import again
from tests.playing.gates import Lie, the_truth
from tests.playing.job_batch import BatchWorld
from tests.playing.job_holding import HoldingStage
from tests.playing.job_lies import arguments_of, lying
from tests.playing.stage import GatedStage
from tests.playing.swarm import Swarm, interleave, walk

STEPS_MAX = 60
WALKS, DEEP_WALKS = 20, 1000
DEEP = (pytest.mark.deep, pytest.mark.timeout(600))
SYSTEMS: tuple[BatchJob, ...] = (BatchJob(), BatchJob(R=6, E=5, F=4))
STEPS = {f"{step.machine}.{step.trigger}" for step in BatchJob.STEPS}
ALONE = {
    "world.lose": "the closed system has the subtask begin again in one step",
    "world.go_back": "the same holds for the job as a whole",
    "world.spoil": "the snapshot has to fail then, and an event that waits may end it before",
    "world.hear_late": "what is late is told by the state, which an event that waits may change",
}
"""Steps that do not begin while events wait, and why."""


def copied(system: ClosedSystem) -> BatchJob:
    copy = again(system)
    assert isinstance(copy, BatchJob)
    return copy


def walked(system: BatchJob, seed: int, taken: set[str], lie: Lie = the_truth) -> None:
    """Take random steps, each of which ends before the next one begins."""
    copy = copied(system)
    walk(GatedStage(copy, BatchWorld(copy, lie, seed)), Swarm(seed, taken), STEPS_MAX)


@pytest.mark.parametrize("walks", [WALKS, pytest.param(DEEP_WALKS, marks=DEEP)])
def test_the_runtime_takes_snapshots_step_by_step_as_the_closed_system_does(walks: int) -> None:
    taken = set[str]()
    for system in SYSTEMS:
        for seed in range(walks):
            walked(system, seed, taken)
    assert taken == STEPS


@pytest.mark.parametrize("walks", [WALKS, pytest.param(DEEP_WALKS, marks=DEEP)])
def test_the_runtime_takes_snapshots_of_what_waits_as_the_closed_system_does(walks: int) -> None:
    behind = set[str]()
    for system in SYSTEMS:
        for seed in range(walks):
            copy = copied(system)
            stage = HoldingStage(copy, BatchWorld(copy, seed=seed), ALONE)
            interleave(stage, Swarm(seed, behind, stage.steps), STEPS_MAX)
    assert behind == STEPS - ALONE.keys()


@pytest.mark.parametrize("by", [1, -1])
@pytest.mark.parametrize("argument", arguments_of(BatchSnapshots))
def test_a_wrong_argument_is_found(argument: str, by: int) -> None:
    lie = lying(argument, by)
    assert any(_finds(SYSTEMS[0], seed, lie) for seed in range(WALKS))


def _finds(system: BatchJob, seed: int, lie: Lie) -> bool:
    try:
        walked(system, seed, set(), lie)
    except Exception:  # noqa: BLE001  # whatever it is, the walk has not gone on unnoticed
        return True
    return False
