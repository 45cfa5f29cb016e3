"""The users' coordinators, and what they have sent to each subtask.

A coordinator takes its time for a snapshot, fails it, or fails the job. How far it had sent at its
snapshot is the record against which I1 and I2 are claimed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochgate.fsm import STAY, Bool, Ignore, Int, Machine, Row, Trigger
from epochgate.models.holder import BROKEN, CLOSED, CREATED, STARTED, STARTING
from epochgate.models.surroundings.sends import Sends

if TYPE_CHECKING:
    from epochgate.models.closed_job import ClosedJob


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

    # fmt: off
    ROWS = (
        Row("send",      "able",   STAY,     "has_more", "count, post", "the coordinator has an event for this subtask"),
        Row("ready",     "unable", "able",   None,       None,          "an attempt can be sent events"),
        Row("failed",    "able",   "unable", None,       "forget",      "the attempt has failed"),
        Ignore("failed", "unable",           None,                      "it failed before it was ready"),
        Row("rewind",    "unable", STAY,     None,       "go_back",     "the subtask goes back to the last checkpoint"),
    )
    # fmt: on

    def forget(self) -> None:
        self.sent = 0

    def go_back(self) -> None:
        self.sent = self.completed_sent


class User(Machine):
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
    is_unfit: bool = Bool()
    """It has to say that it cannot start."""
    is_restored: bool = Bool()
    """It has state, and is about to start."""
    is_owed_an_end: bool = Bool()
    """It was asked for a snapshot, and was not told what became of the checkpoint."""

    get_ready: Trigger
    fail_to_start: Trigger
    take_snapshot: Trigger
    fail_snapshot: Trigger
    fail_everything: Trigger

    # fmt: off
    ROWS = (
        Row("get_ready",       "working", STAY, "is_getting_ready",              "report_start",                   "its start has returned"),
        Row("fail_to_start",   "working", STAY, "is_getting_ready and may_fail", "spend_failure, report_no_start", "its start has raised"),

        Row("take_snapshot",   "working", STAY, "is_asked",                      "remember, succeed",              "its future completes, perhaps late"),
        Row("fail_snapshot",   "working", STAY, "is_asked and may_fail",         "spend_failure, report",          "its future fails"),
        Row("fail_everything", "working", STAY, "may_fail",                      "spend_failure, fail_job",        "it fails the job"),
    )
    # fmt: on

    def is_getting_ready(self) -> bool:
        return self.starting > 0

    def is_in_use(self) -> bool:
        return self.starting > 0 or self.system.holder[self.coordinator].state == STARTED

    def is_asked(self) -> bool:
        return self.asked_for > 0

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
        self.system.snapshot[self.coordinator, 0].succeed(number, 0)

    def report_start(self) -> None:
        self.starting = 0
        self.system.holder[self.coordinator].started()

    def report_no_start(self) -> None:
        self.starting = 0
        self.system.holder[self.coordinator].start_failed()
        assert self.system.holder[self.coordinator].state != STARTING, (
            "a coordinator that could not start is not used"
        )

    def report(self) -> None:
        number = self.asked_for
        # The failure may trigger the next checkpoint at once, which asks again.
        self.asked_for = 0
        failures = self.system.checkpoint.failures
        is_blamed = self.system.snapshot[self.coordinator, 0].is_asked_for(number)
        self.system.snapshot[self.coordinator, 0].fail(number)
        if is_blamed:
            self.system.store.expect_counted(number, failures)

    def fail_job(self) -> None:
        self.system.holder[self.coordinator].fail_job()
        assert (
            self.system.holder[self.coordinator].has_failed
            or self.system.holder[self.coordinator].state == BROKEN
            or self.system.holder[self.coordinator].state == CLOSED
        ), "that a coordinator fails the job is remembered until it is restored"
        assert not self.system.lifecycle.may_restart_one(), (
            "a coordinator that fails the job is obeyed"
        )

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
        self.is_unfit = True

    def answer_if_unfit(self) -> None:
        if self.is_unfit:
            self.is_unfit = False
            self.system.holder[self.coordinator].start_failed()

    def rebuild(self) -> None:
        self.starting = 0
        self.is_owed_an_end = False
        for s in range(self.system.subtasks):
            self.system.sender[self.coordinator, s].failed()

    def close(self) -> None:
        self.is_closed = True

    def reset_to(self, checkpoint: int) -> None:
        assert (
            self.system.holder[self.coordinator].state == CREATED
            or not self.system.holder[self.coordinator].has_failed
        ), "a coordinator that is restored may fail the job again"
        self.is_restored = checkpoint > 0 and not self.is_in_use()
        self.asked_for = 0
        self.is_owed_an_end = False
        for s in range(self.system.subtasks):
            self.system.sender[self.coordinator, s].rewind()
            self.system.sender[self.coordinator, s].heard = self.system.sender[
                self.coordinator, s
            ].completed_heard

    def checkpoint(self, checkpoint: int, lane: int) -> None:
        self.asked_for = checkpoint
        self.is_owed_an_end = True

    def complete(self, checkpoint: int) -> None:
        self.is_owed_an_end = False

    def aborted(self, checkpoint: int) -> None:
        self.is_owed_an_end = False

    def ready(self, subtask: int, attempt: int) -> None:
        self.system.sender[self.coordinator, subtask].ready()

    def failed(self, subtask: int, attempt: int) -> None:
        self.system.sender[self.coordinator, subtask].failed()

    def subtask_reset(self, subtask: int, checkpoint: int) -> None:
        self.system.sender[self.coordinator, subtask].rewind()

    def event(self, subtask: int, attempt: int, event: int) -> None:
        if event > self.system.sender[self.coordinator, subtask].heard:
            self.system.sender[self.coordinator, subtask].heard = event
        self.system.sender[self.coordinator, subtask].undecided += 1
        self.system.holder[self.coordinator].handled(subtask, attempt, self.system.events + event)


class Keeper(Machine):
    """Where coordinators' snapshots go: port `results` of the snapshot."""

    INDEX = ("coordinator", "lane")

    system: ClosedJob

    has_state: bool = Bool()

    def keep(self, checkpoint: int, state: int) -> None:
        self.has_state = True
