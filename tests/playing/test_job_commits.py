"""Random schedules on the closed systems of commits: the production job, with a committer, a store
and work after commits that fail, hang, answer late and lose answers, does the same step by step.
"""

from __future__ import annotations

import pytest

from epochgate.fsm.checker.schedule import MachineStage
from epochgate.fsm.closed import ClosedSystem
from epochgate.models.closed.commits import CommitJob, CommitsInDoubt, HangingWork
from epochgate.models.job import Job
from tests.checker.side_by_side import again
from tests.playing.gates import Lie, the_truth
from tests.playing.job_commits_stage import REFUSED, CommitsWorld
from tests.playing.job_holding import HoldingStage
from tests.playing.job_lies import arguments_of, lying
from tests.playing.stage import GatedStage
from tests.playing.swarm import Swarm, interleave, walk

STEPS_MAX = 120
WALKS, DEEP_WALKS = 30, 400
DEEP = (pytest.mark.deep, pytest.mark.timeout(600))
STEPS = {f"{step.machine}.{step.trigger}" for step in CommitJob.STEPS}
SYSTEMS: tuple[ClosedSystem, ...] = (CommitJob(F=3), CommitsInDoubt(F=3), HangingWork(F=2))
DEEP_SYSTEMS: tuple[ClosedSystem, ...] = (
    CommitJob(F=6, wanted=4),
    CommitJob(F=4, items=2, commit_retries=2),
    CommitJob(F=4, after_commit=0),
    CommitsInDoubt(F=4, subtasks=2, commit_retries=1),
    HangingWork(F=4),
)


class CommitMachines(MachineStage):
    """The machines of a closed system of commits, without the steps that the runtime refuses."""

    def possible(self) -> list[str]:
        assert isinstance(self.system, CommitJob)
        left_out = () if self.system.store.earlier else REFUSED
        return [step for step in super().possible() if step not in left_out]


def stage_of(system: ClosedSystem, lie: Lie = the_truth) -> tuple[GatedStage, CommitsWorld]:
    copy = again(system)
    world = CommitsWorld(copy, lie)
    stage = GatedStage(copy, world)
    stage.machines = CommitMachines(copy)
    return stage, world


def walked(system: ClosedSystem, seed: int, taken: set[str], lie: Lie = the_truth) -> None:
    """Take random steps, each of which ends before the next one begins."""
    stage, world = stage_of(system, lie)
    try:
        walk(stage, Swarm(seed, taken, stage.steps), STEPS_MAX)
    finally:
        world.close()


ALONE = {
    "committable.write": "the barrier of a checkpoint comes before it or after it",
    "checkpoint.begin": "the closed system gathers in one step what the tasks say in several",
    "driver.end": "a driver that has gone processes nothing of what waits",
    "driver.die": "the same holds for one that dies",
    "driver.start": "no event waits where no driver runs",
    "driver.go_back": "no event waits where no driver runs",
    "driver.finish": "a job that finishes has processed all that was said to it",
    "sink.answer_again": "which answer is late is told by the state, which an event may change",
    "worker.answer_late": "in the closed system no work is asked for when it comes: where the same "
    "work is asked for again, the late answer of the same try counts, and the next work is due",
    "worker.answer_again": "the same holds for work after a commit",
    "doubt.forgo": "no event waits where no driver runs",
    "doubt.store": "no event waits where no driver runs",
    "doubt.leave": "no event waits where no driver runs",
}
"""Steps that do not begin while events wait, and why."""


def interleaved(system: ClosedSystem, seed: int, behind: set[str], lie: Lie = the_truth) -> None:
    """Begin random steps while the events of earlier ones wait."""
    copy = again(system)
    world = CommitsWorld(copy, lie)
    try:
        stage = HoldingStage(copy, world, ALONE, CommitMachines(copy))
        interleave(stage, Swarm(seed, behind, stage.steps), STEPS_MAX)
    finally:
        world.close()


@pytest.mark.parametrize("walks", [WALKS, pytest.param(DEEP_WALKS, marks=DEEP)])
def test_the_runtime_commits_step_by_step_as_the_closed_systems_do(walks: int) -> None:
    taken = set[str]()
    for system in SYSTEMS if walks == WALKS else (*SYSTEMS, *DEEP_SYSTEMS):
        for seed in range(walks):
            walked(system, seed, taken)
    assert taken == STEPS


@pytest.mark.parametrize("walks", [WALKS, pytest.param(DEEP_WALKS, marks=DEEP)])
def test_the_runtime_commits_what_waits_as_the_closed_systems_do(walks: int) -> None:
    behind = set[str]()
    for system in SYSTEMS if walks == WALKS else (*SYSTEMS, *DEEP_SYSTEMS):
        for seed in range(walks):
            interleaved(system, seed, behind)
    assert behind == STEPS - ALONE.keys()


LIES = arguments_of(Job, "committer", "post_commit")
UNFOUND: dict[str, str] = {}
"""Wrong arguments that no walk finds, and why that may be."""


SAMPLE = ("committer.sink.settled(checkpoint)", "post_commit.worker.stalled(reason)")
"""Those that each run of the tests looks for."""


@pytest.mark.parametrize("by", [1, pytest.param(-1, marks=pytest.mark.mutants)])
@pytest.mark.parametrize(
    "argument",
    [told if told in SAMPLE else pytest.param(told, marks=pytest.mark.mutants) for told in LIES],
)
def test_a_wrong_argument_is_found(argument: str, by: int) -> None:
    lie = lying(argument, by)
    is_found = any(_finds(system, seed, lie) for seed in range(20) for system in SYSTEMS)
    assert is_found != (argument in UNFOUND), UNFOUND.get(argument, "no walk finds it")


def _finds(system: ClosedSystem, seed: int, lie: Lie) -> bool:
    try:
        walked(system, seed, set(), lie)
    except Exception:  # noqa: BLE001  # whatever it is, the walk has not gone on unnoticed
        return True
    return False
