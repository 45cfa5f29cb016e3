"""The shells of a job's commits beside `Commits`: none where committables go straight from the
writers to the global committer, and else those of the tasks and of the operators between.

Decides nothing: where the checkpoints of a restored ledger go on is what that says of them. Runs on
the queue's thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from epochgate.fsm import Handles
from epochgate.runtime.shell.stages import Stage
from epochgate.runtime.shell.task_commits import TaskCommits
from epochgate.runtime.store import CompletedCheckpoint
from epochgate.runtime.store.places import BEFORE, BEHIND, GLOBAL, Place, places_of

if TYPE_CHECKING:
    from epochgate.models.committing_job import CommittingJob
    from epochgate.runtime.shell.job_master import JobMaster


class DirectCommits:
    """A job whose committables go straight to the global committer."""

    UNPLACED: ClassVar[str] = GLOBAL
    """Where a checkpoint of the ledger is that the restored one says nothing of."""

    def __init__(self, master: JobMaster) -> None:
        self._master = master

    def close(self) -> None:
        """Close what stands in front of the committer: nothing."""

    def adopt(self, restored: CompletedCheckpoint) -> None:
        """Enqueue the restored ledger."""
        places = places_of(restored)
        for earlier in sorted(restored.uncommitted):
            place = places.get(earlier, Place(self.UNPLACED))
            self._adopt(earlier, place)

    def _adopt(self, earlier: int, place: Place) -> None:
        tries = min(place.tries.get(-1, 0), self._master.configuration.commit_retries_max)
        self._master.queue.post(self._master.job.committer.adopt, earlier, tries)


class SteppedCommits(DirectCommits):
    """A job whose committables take further steps."""

    UNPLACED = BEFORE

    def __init__(self, master: JobMaster, restored: CompletedCheckpoint | None) -> None:
        super().__init__(master)
        self._job = cast("Handles[CommittingJob]", master.job)
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

    def _adopt(self, earlier: int, place: Place) -> None:
        post, job = self._master.queue.post, self._job
        if place.at == BEFORE:
            post(job.stage_before.take, earlier)
        elif place.at == BEHIND:
            post(job.stage_behind.take, earlier)
        elif place.at == GLOBAL:
            super()._adopt(earlier, place)
        else:
            retries_max = self._master.configuration.commit_retries_max
            post(job.committable_collector.expect, earlier)
            for subtask in range(self._master.configuration.parallelism):
                tries = min(place.tries.get(subtask, 0), retries_max)
                post(job.subtask_committer[subtask].adopt, earlier, tries)
