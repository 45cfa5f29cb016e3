"""The job whose committables take more than one step from its writers to the global committer:
committers in the tasks, and operators of the user's between them.

The machines of `Job`, and those of the steps. The variants below differ in what a completed
checkpoint does next, in what a stored one holds of earlier ones, and in when tasks may leave: not
before they have committed what the last checkpoint holds. A completed checkpoint N goes through::

    stage_before            operators on the driver
    subtask_committer[s]    in each task
    committable_collector   until all of N has come
    stage_behind            operators on the driver
    committer               globally

Each step may be left out; a job without any is a `Job`. Source: the sink topologies of Apache
Flink's CommitterOperator and GlobalCommitterOperator (section 6 of docs/protocol.md).
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Ignore, Opaque, Row, Trigger, machines
from epochgate.fsm.fields import Bool
from epochgate.models.attempt import RUNNING as RUNNING_ATTEMPT, Attempt, every_state_but
from epochgate.models.checkpoint import Checkpoint
from epochgate.models.committable_collector import CommittableCollector
from epochgate.models.committable_stage import StageBefore, StageBehind
from epochgate.models.job import Job
from epochgate.models.lifecycle import (
    ENDED,
    ENDING,
    FINISHING,
    RESTARTING,
    RUNNING,
    STOPPING,
    JobLifecycle,
)
from epochgate.models.subtask_committer import SubtaskCommitter


class CommittingAttempt(Attempt):
    """An attempt whose task may commit."""

    system: CommittingJob

    commit_done: Trigger
    commit_later: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *Attempt.ROWS,

        Row("commit_done",     RUNNING_ATTEMPT, STAY, "speaks",
            "pass_committed",           "the subtask has committed its part of a checkpoint"),
        Ignore("commit_done",  RUNNING_ATTEMPT,       "not speaks",
                                        "the message is from an evicted process"),
        Ignore("commit_done",  every_state_but(RUNNING_ATTEMPT), None,
                                        "the attempt is over, and its successor commits again"),

        Row("commit_later",    RUNNING_ATTEMPT, STAY, "speaks",
            "pass_retry",               "the subtask could not commit all of its part now"),
        Ignore("commit_later", RUNNING_ATTEMPT,       "not speaks",
                                        "the message is from an evicted process"),
        Ignore("commit_later", every_state_but(RUNNING_ATTEMPT), None,
                                        "the attempt is over, and its successor commits again"),
    )
    # fmt: on

    def start_running(self) -> None:
        self.system.lifecycle.attempt_running()
        self.system.subtask_committer[self.subtask].running()

    def stop_running(self) -> None:
        self.system.lifecycle.attempt_stopped(self.has_ended)
        self.system.subtask_committer[self.subtask].stopped()
        self.forget_end()

    def announce_cancel(self) -> None:
        self.system.subtask_committer[self.subtask].stopped()
        self.announce_failed("all attempts were canceled")
        self.drop_in_flight("all attempts were canceled")

    def pass_committed(self, identity: int, checkpoint: int, tries: int, outcome: Opaque) -> None:
        self.system.subtask_committer[self.subtask].committed(checkpoint, tries, outcome)

    def pass_retry(
        self, identity: int, checkpoint: int, tries: int, outcome: Opaque, reason: Opaque
    ) -> None:
        self.system.subtask_committer[self.subtask].retry_later(checkpoint, tries, outcome, reason)


class CommittingCheckpoint(Checkpoint):
    """The checkpoint of a job whose commits take several steps."""

    system: CommittingJob

    def unseal(self) -> None:
        for s in range(self.system.subtasks):
            self.system.subtask_committer[s].abort()

    def carry_commits(self) -> None:
        self.system.stage_before.carry(self.number)
        for s in range(self.system.subtasks):
            self.system.subtask_committer[s].carry(self.number)
        self.system.committable_collector.carry(self.number)
        self.system.stage_behind.carry(self.number)
        self.system.committer.carry(self.number)

    def complete(self) -> None:
        self.tell_completed()
        for s in range(self.system.subtasks):
            self.system.subtask_committer[s].complete()
        self.system.stage_before.take(self.number)
        self.forget_parts()


class CommittingLifecycle(JobLifecycle):
    """The lifecycle of a job whose tasks commit what the last checkpoint holds before they leave."""

    system: CommittingJob

    is_last_stored: bool = Bool()
    """The checkpoint with which the job ends is completed."""

    commits_settled: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in JobLifecycle.ROWS if row.trigger != "checkpoint_completed"),

        Row("checkpoint_completed",    RUNNING,                       FINISHING, "is_end and not has_committers",
            "finish_all",                          "the checkpoint holds the end of all input"),
        Row("checkpoint_completed",    RUNNING,                       STAY,      "is_end and has_committers",
            "note_last",                           "the tasks commit what it holds before they leave"),
        Ignore("checkpoint_completed", RUNNING,                                  "not is_end",
                                                   "a subtask has more input: the job goes on"),
        Row("checkpoint_completed",    STOPPING,                      FINISHING, "not has_committers",
            "finish_all",                          "the last checkpoint of the stopping job is completed"),
        Row("checkpoint_completed",    STOPPING,                      STAY,      "has_committers",
            "note_last",                           "the tasks commit what it holds before they leave"),
        Ignore("checkpoint_completed", (RESTARTING, *ENDING, *ENDED),            None,
                                                   "the job restarts or ends already"),

        Row("commits_settled",    (RUNNING, STOPPING), FINISHING, "may_leave",
            "finish_all",                          "the tasks have committed what the last checkpoint holds"),
        Ignore("commits_settled", (RUNNING, STOPPING),            "not may_leave",
                                                   "a task has something to commit, or the job goes on"),
    )
    # fmt: on

    def has_committers(self) -> bool:
        return self.system.task_committers > 0

    def may_leave(self) -> bool:
        return (
            self.is_last_stored
            and self.running == self.system.subtasks
            and self.system.stage_before.is_settled()
            and all(
                self.system.subtask_committer[s].is_settled() for s in range(self.system.subtasks)
            )
        )

    def note_last(self) -> None:
        self.is_last_stored = True

    def may_checkpoint(self) -> bool:
        return (
            self.may_restart_one()
            and self.running == self.system.subtasks
            and not self.is_last_stored
        )

    def needs_checkpoint(self) -> bool:
        return not self.is_last_stored and (
            self.state == STOPPING or (self.state == RUNNING and self.is_at_end())
        )

    def is_committed(self) -> bool:
        return (
            self.system.stage_before.is_settled()
            and self.system.committable_collector.is_settled()
            and self.system.stage_behind.is_settled()
            and self.system.committer.is_settled()
        )

    def hand_on(self) -> None:
        self.system.stage_before.take(self.system.checkpoint.completed)


class CommittingJob(Job):
    """Everything that the driver decides about a job whose commits take several steps.

    Constants besides those of `Job`: `task_committers`, 1 if each task has a committer; `operators_before` and
    `operators_behind`, 1 if there are operators with parallelism 1 in front of these committers, and in front of
    the global one.
    """

    CONSTANTS: ClassVar[dict[str, int]] = {
        **Job.CONSTANTS,
        "task_committers": 1,
        "operators_before": 0,
        "operators_behind": 0,
    }

    task_committers: int
    operators_before: int
    operators_behind: int

    lifecycle: CommittingLifecycle = machines(CommittingLifecycle)
    attempt: list[CommittingAttempt] = machines(CommittingAttempt)  # type: ignore[assignment]  # of the same kind
    checkpoint: CommittingCheckpoint = machines(CommittingCheckpoint)
    stage_before: StageBefore = machines(StageBefore)
    subtask_committer: list[SubtaskCommitter] = machines(SubtaskCommitter)
    committable_collector: CommittableCollector = machines(CommittableCollector)
    stage_behind: StageBehind = machines(StageBehind)
