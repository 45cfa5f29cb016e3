"""A driver that finds a checkpoint of an earlier run, and saves of unknown outcome."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import machines
from epochgate.fsm.closed import Step, always, sometimes
from epochgate.models.checkpoint import COMPLETED
from epochgate.models.closed.job import ClosedJob
from epochgate.models.closed.surroundings.witness import KeptStore, Resumption, ToldUser, ToldWire


class ResumingJob(ClosedJob):
    """The job after a restart of its driver: what was announced agrees with the store.

    The driver may find a checkpoint of an earlier run, and the outcome of its own saves may be
    unknown.
    """

    CONSTANTS: ClassVar[dict[str, int]] = {
        **ClosedJob.CONSTANTS,
        "subtasks": 1,
        "broken_restores": 1,
    }
    STEPS = (
        *ClosedJob.STEPS,
        Step("launch", "resume", is_fair=False),
        Step("launch", "resume_in_doubt", is_fair=False),
        Step("launch", "resume_given", is_fair=False),
        Step("user", "break_restore", is_fair=False),
        Step("user", "break_restore_for_good", is_fair=False),
        Step("store", "lose_save", is_fair=False),
        Step("store", "lose_answer", is_fair=False),
    )

    launch: Resumption = machines(Resumption)
    store: KeptStore = machines(KeptStore)
    user: list[ToldUser] = machines(ToldUser)  # type: ignore[assignment]  # of the same kind
    wire: list[ToldWire] = machines(ToldWire)  # type: ignore[assignment]  # of the same kind

    @always("I8: who was told that a checkpoint is aborted is never restored from it")
    def restores_nothing_aborted(self) -> bool:
        return all(
            self.user[c].told_aborted == 0
            or (
                self.user[c].told_aborted != self.store.kept
                and self.user[c].told_aborted != self.checkpoint.completed
            )
            for c in range(self.coordinators)
        ) and all(
            self.wire[s].told_aborted == 0
            or (
                self.wire[s].told_aborted != self.store.kept
                and self.wire[s].told_aborted != self.checkpoint.completed
            )
            for s in range(self.subtasks)
        )

    @always("I8: who was told that a checkpoint is completed is never restored from an older one")
    def restores_all_completed(self) -> bool:
        return all(
            self.user[c].told_completed <= self.store.kept
            and self.user[c].told_completed <= self.checkpoint.completed
            for c in range(self.coordinators)
        ) and all(
            self.wire[s].told_completed <= self.store.kept
            and self.wire[s].told_completed <= self.checkpoint.completed
            for s in range(self.subtasks)
        )

    @always("what a driver has resumed from, or has completed, is handed to the committer")
    def commits_what_it_resumes_from(self) -> bool:
        return self.committer.asked == self.checkpoint.completed

    @sometimes("a checkpoint is in doubt, and the next start finds it")
    def is_found_after_doubt(self) -> bool:
        return self.checkpoint.is_in_doubt() and self.store.kept == self.checkpoint.number

    @sometimes("a checkpoint is in doubt, and the next start does not find it")
    def is_not_found_after_doubt(self) -> bool:
        return self.checkpoint.is_in_doubt() and self.store.kept < self.checkpoint.number

    @sometimes("a job that was resumed completes a checkpoint")
    def goes_on(self) -> bool:
        return self.checkpoint.completed > 1

    @always("the checkpoint that was completed last is the one to go back to")
    def goes_back_to_the_last(self) -> bool:
        return (
            self.checkpoint.state != COMPLETED
            or self.checkpoint.completed == self.checkpoint.number
        )
