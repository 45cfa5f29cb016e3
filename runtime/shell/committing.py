"""The shells of a job's commits beside `Commits`: none where committables go straight from the
writers to the global committer, and else those of the tasks and of the operators between.

Decides nothing: where the checkpoints of a restored ledger go on is what that says of them. Runs on
the queue's thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from epochgate.errors import UsageError
from epochgate.fsm import Handles
from epochgate.models.committing_job import CommittingJob
from epochgate.runtime.shell.stages import Stage
from epochgate.runtime.shell.task_commits import TaskCommits
from epochgate.runtime.store import CompletedCheckpoint
from epochgate.runtime.store.places import BEFORE, BEHIND, GLOBAL, TASKS, Place, places_of

if TYPE_CHECKING:
    from epochgate.runtime.shell.job_master import JobMaster


class StepMissing(UsageError):
    """A restored checkpoint has committables in a step of the commit that the sink lacks: the
    checkpoint, an earlier one of its ledger, the step.
    """

    def __str__(self) -> str:
        checkpoint, earlier, step = self.args
        return (
            f"checkpoint {checkpoint} holds committables of checkpoint {earlier} on their way "
            f"through {step}, which the sink does not have. Start with the sink that the "
            "checkpoint was taken with until its commits are done, and then with the other one"
        )


class DirectCommits:
    """A job whose committables go straight to the global committer."""

    UNPLACED: ClassVar[str] = GLOBAL
    """Where a checkpoint of the ledger is that the restored one says nothing of."""

    def __init__(self, master: JobMaster) -> None:
        self._master = master

    def close(self) -> None:
        """Close what stands in front of the committer: nothing."""

    def adopt(self, restored: CompletedCheckpoint) -> None:
        """Enqueue the restored ledger. Raises StepMissing."""
        places = places_of(restored)
        for earlier in sorted(restored.uncommitted):
            place = places.get(earlier, Place(self.UNPLACED))
            self._adopt(restored.checkpoint_id, earlier, place)

    def _adopt(self, checkpoint: int, earlier: int, place: Place) -> None:
        if place.at == TASKS:
            raise StepMissing(checkpoint, earlier, "the committers in the tasks")
        tries = min(place.tries.get(-1, 0), self._master.configuration.commit_retries_max)
        self._master.queue.post(self._master.job.committer.adopt, earlier, tries)


class SteppedCommits(DirectCommits):
    """A job whose committables take further steps."""

    UNPLACED = BEFORE

    def __init__(self, master: JobMaster, restored: CompletedCheckpoint | None) -> None:
        super().__init__(master)
        self._job = cast(Handles[CommittingJob], master.job)
        tasks = TaskCommits(master, restored)
        master.checkpoints.told_completed.append(tasks.completed)
        master.checkpoints.told_aborted.append(tasks.aborted)
        states: dict[str, list[bytes]] = {}
        master.checkpoints.stage_states = states
        self._stages = [Stage(master, tasks, states, side, restored) for side in (BEFORE, BEHIND)]

    def close(self) -> None:
        """Close the operators on the driver; what they raise ends nothing else."""
        for stage in self._stages:
            stage.close()

    def _adopt(self, checkpoint: int, earlier: int, place: Place) -> None:
        post, job, topology = (
            self._master.queue.post,
            self._job,
            self._master.configuration.topology,
        )
        if place.at == BEFORE:
            post(job.stage_before.take, earlier)
        elif place.at == BEHIND:
            post(job.stage_behind.take, earlier)
        elif place.at == GLOBAL:
            super()._adopt(checkpoint, earlier, place)
        elif not topology.in_tasks:
            raise StepMissing(checkpoint, earlier, "the committers in the tasks")
        else:
            retries_max = self._master.configuration.commit_retries_max
            post(job.committable_collector.expect, earlier)
            for subtask in range(self._master.configuration.parallelism):
                tries = min(place.tries.get(subtask, 0), retries_max)
                post(job.subtask_committer[subtask].adopt, earlier, tries)
