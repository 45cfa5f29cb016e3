"""The users' coordinators, and what they have sent to each subtask.

A coordinator takes its time for a snapshot, fails it, or fails the job. How far it had sent at its
snapshot is the record against which I1 and I2 are claimed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochgate.fsm import ANY, STAY, Ignore, Int, Machine, Row, Trigger

if TYPE_CHECKING:
    from epochgate.models.closed_job import ClosedJob


class Sender(Machine):
    """One coordinator's sends to one subtask, and the futures that it holds for them."""

    INDEX = ("coordinator", "subtask")
    STATES = ("unable", "able")
    INITIAL = "unable"

    system: ClosedJob
    coordinator: int
    subtask: int

    attempt: int = Int("attempts")
    sent: int = Int("events")
    snapshot_sent: int = Int("events")
    completed_sent: int = Int("events")
    undecided: int = Int("posted")
    """Sends whose futures are pending."""

    send: Trigger
    ready: Trigger
    failed: Trigger
    rewind: Trigger

    # fmt: off
    ROWS = (
        Row("send",      "able",   STAY,     "has_more", "count, post", "the coordinator has an event for this subtask"),
        Row("ready",     "unable", "able",   None,       "bind",        "an attempt can be sent events"),
        Row("failed",    "able",   "unable", None,       None,          "the attempt has failed"),
        Ignore("failed", "unable",           None,                      "it failed before it was ready"),
        Row("rewind",    "unable", STAY,     None,       "go_back",     "the subtask goes back to the last checkpoint"),
    )
    # fmt: on

    def has_more(self) -> bool:
        return self.sent < self.system.events

    def count(self) -> None:
        self.sent += 1
        self.undecided += 1

    def post(self) -> None:
        self.system.gateway[self.coordinator, self.subtask].send(self.attempt, self.sent)

    def bind(self, attempt: int) -> None:
        self.attempt = attempt

    def go_back(self) -> None:
        self.sent = self.completed_sent

    # port `sender` of the gateway

    def confirmed(self, count: int) -> None:
        self.undecided -= count

    def lost(self, count: int) -> None:
        self.undecided -= count

    def turned_away(self, event: int) -> None:
        self.undecided -= 1


class User(Machine):
    """A user's coordinator: takes its time for snapshots, may fail them, may fail the job."""

    INDEX = ("coordinator",)
    STATES = ("working", "asked")
    INITIAL = "working"

    system: ClosedJob
    coordinator: int

    asked_for: int = Int("checkpoints")

    ask: Trigger
    take_snapshot: Trigger
    fail_snapshot: Trigger
    forget: Trigger
    fail_everything: Trigger

    # fmt: off
    ROWS = (
        Row("ask",             "working", "asked",   None,       "note",                    "a checkpoint was triggered"),
        Row("ask",             "asked",   STAY,      None,       "note",                    "the one before it was aborted"),
        Row("take_snapshot",   "asked",   "working", None,       "remember, succeed",       "its future completes, perhaps late"),
        Row("fail_snapshot",   "asked",   "working", "may_fail", "spend_failure, report",   "its future fails"),
        Row("forget",          "asked",   "working", None,       None,                      "it is restored"),
        Ignore("forget",       "working",            None,                                  "nothing was asked of it"),
        Row("fail_everything", ANY,       STAY,      "may_fail", "spend_failure, fail_job", "it fails the job"),
    )
    # fmt: on

    def may_fail(self) -> bool:
        return self.system.budget.has_failures()

    def spend_failure(self) -> None:
        self.system.budget.failures += 1

    def note(self, checkpoint: int) -> None:
        self.asked_for = checkpoint

    def remember(self) -> None:
        if self.system.checkpoint.number == self.asked_for:
            for s in range(self.system.subtasks):
                self.system.sender[self.coordinator, s].snapshot_sent = self.system.sender[
                    self.coordinator, s
                ].sent

    def succeed(self) -> None:
        self.system.snapshot[self.coordinator, 0].succeed(self.asked_for, 0)

    def report(self) -> None:
        self.system.snapshot[self.coordinator, 0].fail(self.asked_for)

    def fail_job(self) -> None:
        self.system.holder[self.coordinator].fail_job()

    # port `user` of the holder

    def start(self) -> None:
        pass

    def close(self) -> None:
        pass

    def reset_to(self, checkpoint: int) -> None:
        self.forget()
        for s in range(self.system.subtasks):
            self.system.sender[self.coordinator, s].rewind()

    def checkpoint(self, checkpoint: int, lane: int) -> None:
        self.ask(checkpoint)

    def complete(self, checkpoint: int) -> None:
        pass

    def aborted(self, checkpoint: int) -> None:
        pass

    def ready(self, subtask: int, attempt: int) -> None:
        self.system.sender[self.coordinator, subtask].ready(attempt)

    def failed(self, subtask: int, attempt: int) -> None:
        self.system.sender[self.coordinator, subtask].failed()

    def subtask_reset(self, subtask: int, checkpoint: int) -> None:
        self.system.sender[self.coordinator, subtask].rewind()

    def event(self, subtask: int, attempt: int, event: int) -> None:
        pass


class Keeper(Machine):
    """Where coordinators' snapshots go: port `results` of the snapshot."""

    INDEX = ("coordinator", "lane")

    system: ClosedJob

    def keep(self, checkpoint: int, state: int) -> None:
        pass
