"""The users' coordinators, and what they have sent to each subtask.

A coordinator takes its time for a snapshot, fails it, or fails the job. How far it had sent at its
snapshot is the record against which I1 and I2 are claimed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import ANY, STAY, Bool, Ignore, Int, Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.closed.surroundings.sends import Sends
from epochgate.models.closed.surroundings.unasked import Unasked
from epochgate.models.holder import RESETTING

if TYPE_CHECKING:
    from epochgate.models.closed.job import ClosedJob


class Sender(Sends):
    """One coordinator's sends to one subtask, and the futures that it holds for them."""

    STATES = ("unable", "able")
    INITIAL = "unable"

    system: ClosedJob

    snapshot_sent: int = Int("events")
    completed_sent: int = Int("events")
    heard: int = Int("said")
    """The last of the operator's events that is in the coordinator's state."""
    snapshot_heard: int = Int("said")
    completed_heard: int = Int("said")

    send: Trigger
    ready: Trigger
    failed: Trigger
    rewind: Trigger
    refuse_event: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("send",      "able",   STAY,     "has_more",
            "count, post", "the coordinator has an event for this subtask"),
        Row("ready",     "unable", "able",   None,
            None,          "an attempt can be sent events"),
        Row("failed",    "able",   "unable", None,
            "forget",      "the attempt has failed"),
        Ignore("failed", "unable",           None,
                           "it failed before it was ready"),
        Row("refuse_event", ANY, STAY,   "may_refuse",
            "spend_failure, blame", "the coordinator finds an event malformed, perhaps late"),
        Row("rewind",    "unable", STAY,     None,
            "go_back",     "the subtask goes back to the last checkpoint"),
    )
    # fmt: on

    def may_refuse(self) -> bool:
        return self.system.said > 0 and self.system.budget.has_failures()

    def spend_failure(self) -> None:
        self.system.budget.failures += 1

    def blame(self) -> None:
        self.system.holder[self.coordinator].event_malformed(
            self.subtask, self.system.attempt[self.subtask].number, "its event is malformed"
        )

    def forget(self) -> None:
        self.sent = 0

    def go_back(self) -> None:
        self.sent = self.completed_sent


class User(Unasked):
    """A user's coordinator: takes its time for snapshots, may fail them, may fail the job."""

    INDEX = ("coordinator",)
    STATES = ("working",)
    INITIAL = "working"

    system: ClosedJob
    coordinator: int

    asked_for: int = Int("checkpoints")
    """The checkpoint whose future it holds; 0 for none."""
    starting: int = Int("slow_starts")
    """1 while its start has not returned."""
    is_closed: bool = Bool()
    is_failing: bool = Bool()
    """It has failed the job, and was neither restored nor made again since."""
    breaks_restore: bool = Bool()
    """Its next restore raises."""
    breaks_for_good: bool = Bool()
    """The error of that restore is fatal."""
    broken: int = Int("broken_restores")
    is_restored: bool = Bool()
    """It has state, and is about to start."""
    is_owed_an_end: bool = Bool()
    """The coordinator was asked for a snapshot, and was not told the checkpoint's outcome."""

    get_ready: Trigger
    fail_to_start: Trigger
    break_restore: Trigger
    break_restore_for_good: Trigger
    take_snapshot: Trigger
    fail_snapshot: Trigger
    fail_everything: Trigger
    fail_for_good: Trigger
    fail_to_start_for_good: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("get_ready",              "working", STAY, "is_getting_ready",
            "report_start",                        "its start has returned"),
        Row("fail_to_start",          "working", STAY, "is_getting_ready and may_fail",
            "spend_failure, report_no_start",      "its start has raised"),

        Row("fail_to_start_for_good", "working", STAY, "is_getting_ready and may_fail",
            "spend_failure, report_no_start_ever", "its start has raised a fatal error"),
        Row("fail_for_good",          "working", STAY, "may_fail",
            "spend_failure, give_job_up",          "it fails the job for good"),

        Row("break_restore",          "working", STAY, "may_break_restore",
            "note_break",                          "its next restore is going to raise"),
        Row("break_restore_for_good", "working", STAY, "may_break_restore",
            "note_break, note_for_good",           "its next restore is going to raise a fatal error"),

        Row("take_snapshot",          "working", STAY, "is_asked",
            "remember, succeed",                   "its future completes, perhaps late"),
        Row("fail_snapshot",          "working", STAY, "is_asked and may_fail",
            "spend_failure, report",               "its future fails"),
        Row("fail_everything",        "working", STAY, "may_fail",
            "spend_failure, fail_job",             "it fails the job"),
    )
    # fmt: on

    def is_getting_ready(self) -> bool:
        return self.starting > 0

    def is_in_use(self) -> bool:
        return self.system.holder[self.coordinator].state == RESETTING

    def is_asked(self) -> bool:
        return self.asked_for > 0

    def may_break_restore(self) -> bool:
        return self.broken < self.system.broken_restores and not self.breaks_restore

    def note_break(self) -> None:
        self.broken += 1
        self.breaks_restore = True

    def note_for_good(self) -> None:
        self.breaks_for_good = True

    def may_fail(self) -> bool:
        return self.system.budget.has_failures()

    def spend_failure(self) -> None:
        self.system.budget.failures += 1

    def remember(self) -> None:
        if self.system.checkpoint.number == self.asked_for:
            for s in range(self.system.subtasks):
                self.system.sender[self.coordinator, s].snapshot_sent = self.system.sender[
                    self.coordinator, s
                ].sent
                self.system.sender[self.coordinator, s].snapshot_heard = self.system.sender[
                    self.coordinator, s
                ].heard

    def succeed(self) -> None:
        number = self.asked_for
        self.asked_for = 0
        state = self.system.keeper[self.coordinator].state_in(number)
        self.system.snapshot[self.coordinator].succeed(number, state)

    def report_start(self) -> None:
        self.starting = 0
        self.system.holder[self.coordinator].started()

    def report_no_start(self) -> None:
        self.starting = 0
        self.system.holder[self.coordinator].start_failed("it could not start", False)

    def report_no_start_ever(self) -> None:
        self.starting = 0
        self.system.holder[self.coordinator].start_failed("no coordinator could start", True)

    def give_job_up(self) -> None:
        self.system.holder[self.coordinator].fail_job("nothing can mend its state", True)

    def report(self) -> None:
        if self.system.snapshot[self.coordinator].is_asked_for(self.asked_for):
            self.system.store.expect_failure()
        self.system.snapshot[self.coordinator].fail(self.asked_for, "it has no snapshot")
        self.asked_for = 0

    def fail_job(self) -> None:
        self.is_failing = True
        self.system.holder[self.coordinator].fail_job("its state is wrong", False)

    # port `user` of the holder

    def start(self) -> None:
        assert not self.system.holder[self.coordinator].has_failed, (
            "a coordinator that has failed the job is restored before it starts"
        )
        assert self.is_restored or self.system.checkpoint.completed == 0, (
            "a coordinator begins with its state in the last completed checkpoint"
        )
        self.is_restored = False
        if self.system.slow_starts > 0:
            self.starting = 1
        else:
            self.system.holder[self.coordinator].started()

    def unfit(self) -> None:
        self.system.holder[self.coordinator].start_failed("it has failed the job before", False)

    def rebuild(self, checkpoint: int) -> None:
        self.begin_again()
        if checkpoint > 0:
            self.begin_from(checkpoint)
        self.answer_restore()

    def rebuild_from_batch_snapshot(self) -> None:
        self.begin_again()
        self.reset_to_batch_snapshot()

    def begin_again(self) -> None:
        self.starting = 0
        self.is_failing = False
        self.is_restored = False
        self.is_owed_an_end = False
        for s in range(self.system.subtasks):
            self.system.sender[self.coordinator, s].failed()

    def close(self) -> None:
        self.is_closed = True
        self.is_owed_an_end = False

    def reset_to(self, checkpoint: int) -> None:
        self.begin_from(checkpoint)
        self.answer_restore()

    def answer_restore(self) -> None:
        if self.breaks_restore:
            self.breaks_restore = False
            self.is_restored = False
            is_fatal = self.breaks_for_good
            self.breaks_for_good = False
            self.system.holder[self.coordinator].restore_failed("its restore has raised", is_fatal)
        else:
            self.system.holder[self.coordinator].restored()

    def begin_from(self, checkpoint: int) -> None:
        if self.system.holder[self.coordinator].state == RESETTING:
            assert not self.system.holder[self.coordinator].has_failed, (
                "a coordinator that is restored may fail the job again"
            )
            self.is_failing = False
        self.is_restored = checkpoint > 0 and not self.is_in_use()
        self.asked_for = 0
        self.is_owed_an_end = False
        for s in range(self.system.subtasks):
            self.system.sender[self.coordinator, s].rewind()
            self.system.sender[self.coordinator, s].heard = self.system.sender[
                self.coordinator, s
            ].completed_heard

    def reset_to_batch_snapshot(self) -> None:
        assert self.system.checkpoint.completed == 0, (
            "a coordinator goes back to a completed checkpoint, if there is one"
        )
        self.answer_restore()

    def checkpoint(self, checkpoint: int) -> None:
        self.asked_for = checkpoint
        self.is_owed_an_end = True

    def complete(self, checkpoint: int) -> None:
        assert checkpoint == self.system.checkpoint.completed, "the newest one is completed"
        self.is_owed_an_end = False

    def aborted(self, checkpoint: int) -> None:
        self.is_owed_an_end = False
        if self.system.renumbered > 0:
            self.system.names.rename_marks()

    def ready(self, subtask: int, attempt: int) -> None:
        assert attempt == self.system.attempt[subtask].number, "the present attempt is ready"
        self.system.sender[self.coordinator, subtask].ready()

    def failed(self, subtask: int, attempt: int, reason: int) -> None:
        assert attempt == self.system.attempt[subtask].number, "the present attempt has failed"
        self.system.sender[self.coordinator, subtask].failed()

    def subtask_reset(self, subtask: int, checkpoint: int) -> None:
        assert checkpoint == self.system.checkpoint.completed, (
            "a subtask goes back to the last completed checkpoint"
        )
        self.system.sender[self.coordinator, subtask].rewind()

    def event(self, subtask: int, attempt: int, event: int) -> None:
        if event > self.system.sender[self.coordinator, subtask].heard:
            self.system.sender[self.coordinator, subtask].heard = event
        self.system.sender[self.coordinator, subtask].undecided += 1
        self.system.holder[self.coordinator].handled(subtask, attempt, self.system.events + event)


class Keeper(Environment):
    """The place where coordinators' snapshots go: port `results` of the snapshot."""

    INDEX = ("coordinator",)

    system: ClosedJob

    has_state: bool = Bool()

    def keep(self, checkpoint: int, state: int) -> None:
        assert checkpoint == self.system.checkpoint.number, "it is kept for its checkpoint"
        assert state == self.state_in(checkpoint), "it is the coordinator's state in the checkpoint"
        self.has_state = True

    def state_in(self, checkpoint: int) -> int:
        """Return what stands for the coordinator's state in a checkpoint: alike for all
        coordinators.
        """
        return checkpoint + 1
