"""Flink's subtasks: one attempt after the other, on a task manager that may be lost, and what the
coordinator sends to them.

Each subtask is a source, and a failover region of its own. That a task is lost is known on the main
thread later. A regional restart happens inline: abort what is pending, which is posted, then
replace the gateway, then tell the coordinator.

Source: Apache Flink's DefaultScheduler and the failing of attempts by SubtaskGatewayImpl.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import STAY, Array, Bool, Channel, Fifo, Ignore, Int, Machine, Row, Trigger
from epochgate.models.studies.flink.holder import READY as TELL_READY, RESTART, TASK_FAILED

if TYPE_CHECKING:
    from epochgate.models.studies.flink.system import Flink

RUNNING, GONE, FAILED, BACKED_OFF, RESET, DEPLOYED = (
    "running",
    "gone",
    "failed",
    "backed_off",
    "reset",
    "deployed",
)
UNABLE, ABLE = "unable", "able"


class Sender(Machine):
    """The coordinator's sends to one subtask, through the gateway of its present attempt."""

    INDEX = ("subtask",)
    STATES = (ABLE, UNABLE)
    INITIAL = ABLE

    system: Flink
    subtask: int

    attempt: int = Int("attempts")
    sent: int = Int("E")
    snapshot: list[int] = Array(Int("E"), "K")
    completed: int = Int("E")

    send: Trigger
    failed: Trigger
    ready: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("send",   ABLE,   STAY,   "has_more", "post_event", "the coordinator has an event for this subtask"),
        Row("failed", ABLE,   UNABLE, None,       None,         "the attempt has failed"),
        Row("ready",  UNABLE, ABLE,   None,       "bind",       "the next attempt runs"),
    )
    # fmt: on

    def has_more(self) -> bool:
        return self.sent < self.system.E

    def post_event(self) -> None:
        self.system.main.post_send(self.subtask, self.attempt, self.sent)
        self.sent += 1

    def bind(self, attempt: int) -> None:
        self.attempt = attempt

    def rewind(self) -> None:
        self.sent = self.completed


class Task(Machine):
    """One subtask: its wire holds events, by their number, and above these barriers."""

    INDEX = ("subtask",)
    STATES: ClassVar[tuple[str, ...]] = (RUNNING, GONE, FAILED, BACKED_OFF, RESET, DEPLOYED)
    INITIAL = RUNNING

    system: Flink
    subtask: int

    attempt: int = Int("attempts")
    is_reported: bool = Bool()
    """The main thread is being told of the loss."""
    wire: Fifo[int] = Channel("message", "wire")
    handled: list[bool] = Array(Bool(), "E")
    snapshot: list[list[bool]] = Array(Array(Bool(), "E"), "K")
    completed: list[bool] = Array(Bool(), "E")

    deliver: Trigger
    vanish: Trigger
    detect: Trigger
    hear_failed: Trigger
    back_off: Trigger
    restart: Trigger
    deploy: Trigger
    ready: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("deliver",        RUNNING,                               STAY,       "has_message",
            "take_message",                                 "the oldest message arrives"),
        Row("vanish",         RUNNING,                               GONE,       "may_vanish",
            "spend",                                        "its task manager is lost"),
        Row("detect",         GONE,                                  STAY,       "not has_reported",
            "post_failed",                                  "that is noticed, perhaps after calls to it have failed"),

        Row("hear_failed",    (RUNNING, GONE),                       FAILED,     None,
            "lose_sends, stop_scheduler, tell_coordinator", "the main thread learns that the attempt has failed"),
        Ignore("hear_failed", (FAILED, BACKED_OFF, RESET, DEPLOYED),             None,
                                                            "it knows already"),

        Row("back_off",       FAILED,                                BACKED_OFF, None,
            "post_restart",                                 "the delay is over and the attempt is gone"),
        Row("restart",        BACKED_OFF,                            RESET,      None,
            "abort_pending, replace_gateway, load",         "the next attempt is restored, inline"),
        Row("deploy",         RESET,                                 DEPLOYED,   None,
            "post_ready",                                   "its task manager has it"),
        Row("ready",          DEPLOYED,                              RUNNING,    None,
            "tell_ready",                                   "the main thread learns that it runs"),
    )
    # fmt: on

    def has_message(self) -> bool:
        return not self.wire.empty()

    def may_vanish(self) -> bool:
        return self.system.faults.failures < self.system.F

    def is_believed_to_run(self) -> bool:
        return self.state == RUNNING or self.state == GONE

    def is_known_to_run(self, attempt: int) -> bool:
        """Return whether the main thread takes this attempt for a running one."""
        return attempt == self.attempt and self.is_believed_to_run()

    def can_be_called(self, attempt: int) -> bool:
        return attempt == self.attempt and self.state == RUNNING

    def lets_checkpoints_begin(self) -> bool:
        return self.is_believed_to_run()

    def take_message(self) -> None:
        message = self.wire.pop()
        if message < self.system.E:
            assert not self.handled[message], "I3: no event is handled twice"
            self.handled[message] = True
            self.system.main.post_settled(self.subtask, self.attempt, message)
        else:
            self.take_notice(message - self.system.E)

    def take_notice(self, checkpoint: int) -> None:
        """A source is told of its barrier."""
        self.take_snapshot(checkpoint)

    def take_snapshot(self, checkpoint: int) -> None:
        for e in range(self.system.E):
            self.snapshot[checkpoint][e] = self.handled[e]
        self.system.main.post_acknowledge(self.subtask, checkpoint)
        self.system.pending[checkpoint].acknowledge(self.subtask)

    def put_barrier(self, checkpoint: int) -> None:
        self.wire.push(self.system.E + checkpoint)

    def put_abort(self, checkpoint: int) -> None:
        """A source has its barrier already, and acknowledges it all the same."""

    def spend(self) -> None:
        self.system.faults.failures += 1

    def has_reported(self) -> bool:
        return self.is_reported

    def post_failed(self) -> None:
        self.is_reported = True
        self.system.main.post(TASK_FAILED, self.subtask)

    def lose_sends(self) -> None:
        for message in self.wire.take_all():
            if message < self.system.E:
                self.system.main.post_lost(self.subtask, self.attempt, message)

    def stop_scheduler(self) -> None:
        if self.system.periodic > 0:
            self.system.requests.abort_all()

    def tell_coordinator(self) -> None:
        self.system.sender[self.subtask].failed()

    def hear_lost(self, attempt: int, event: int) -> None:
        """A send has failed: fail the attempt, unless it has failed already."""
        if self.is_known_to_run(attempt):
            self.hear_failed()

    def post_restart(self) -> None:
        self.system.main.post(RESTART, self.subtask)

    def abort_pending(self) -> None:
        self.system.requests.abort_all()

    def replace_gateway(self) -> None:
        self.attempt += 1
        self.system.holder.replace(self.subtask, self.attempt)
        self.system.sender[self.subtask].rewind()

    def load(self) -> None:
        self.is_reported = False
        for e in range(self.system.E):
            self.handled[e] = self.completed[e]

    def post_ready(self) -> None:
        self.system.main.post(TELL_READY, self.subtask)

    def tell_ready(self) -> None:
        self.system.sender[self.subtask].ready(self.attempt)


class Faults(Machine):
    """The number of faults so far."""

    system: Flink

    failures: int = Int("F")
    refusals: int = Int("refusals")
