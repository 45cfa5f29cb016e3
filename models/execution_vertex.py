"""The attempts of one subtask that run side by side, in a job that takes no checkpoints on its way.

Decides which process becomes an attempt beside the others, that the subtask starts again only when
none of them is left, and that the first to reach the end of the input ends the others::

    process 1   attempt 0  ready ---- failed
    process 2       attempt 1  ready --------- failed
    coordinator                                 reset of the subtask
    process 3                                         attempt 2  ready ---- end
    process 4                                            attempt 3  ready -- failed

Each attempt has one of the subtask's places, an `Attempt` machine with gateways of its own; a place
is used again once its attempt is gone, under another number. Leaves to `Attempt` how a process
is handled, and to `JobLifecycle` when the subtask may start again.

Source: Apache Flink's SpeculativeExecutionVertex and SpeculativeScheduler (rules A8 and A9 in
docs/protocol.md). Runs on the queue's thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import ANY, STAY, Ignore, Int, Machine, Opaque, Port, Row, Trigger, output
from epochgate.models.attempt import CANCELED, FAILED, FINISHED, SCHEDULED

if TYPE_CHECKING:
    from epochgate.models.concurrent_job import ConcurrentJob

IDLE, ATTEMPTED, ENDED = "idle", "attempted", "ended"


class VertexPort(Port):
    """The job's record."""

    def outlived(self, place: int, attempt: int, reason: Opaque) -> None:
        """This attempt has failed, and another of its subtask goes on."""


class ExecutionVertex(Machine):
    """One subtask, and the places of its attempts."""

    INDEX = ("vertex",)
    STATES = (IDLE, ATTEMPTED, ENDED)
    INITIAL = IDLE

    system: ConcurrentJob
    vertex: int
    record: VertexPort = output(VertexPort)

    attempts: int = Int("attempts")
    """How many there were; the next one's number."""
    leading: int = Int("concurrent")
    """Which of its places starts first, waits for the restart, or has reached the end."""

    begin: Trigger
    connect: Trigger
    begin_at: Trigger
    lost: Trigger
    count: Trigger
    attempt_failed: Trigger
    restart: Trigger
    end: Trigger
    abandon: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("begin",             IDLE,      ATTEMPTED, None,
            "vacate, start_leading",     "the job begins, or all subtasks restart"),

        Row("connect",           IDLE,      STAY,      None,
            "pass_to_leading",           "the process waits for the subtask's next attempt"),
        Row("connect",           ATTEMPTED, STAY,      "is_expecting",
            "pass_to_leading",           "the requested process has connected"),
        Row("connect",           ATTEMPTED, STAY,      "not is_expecting and has_room",
            "start_beside",              "a place is free for one more attempt"),
        Row("connect",           ATTEMPTED, STAY,      "not is_expecting and not has_room",
            "replace_oldest",            "all places are taken: the newest processes keep them"),
        Row("connect",           ENDED,     STAY,      None,
            "let_wait",                  "the process waits in case the attempt at the end fails"),

        Row("begin_at",          ATTEMPTED, STAY,      "has_waiting_at",
            "recreate_at",               "the process waits at the place of an attempt that is gone"),
        Ignore("begin_at",       ATTEMPTED,            "not has_waiting_at",
                                         "the process was turned away"),

        Row("lost",              ANY,       STAY,      "is_known",
            "pass_loss",                 "the process speaks or waits at one of the places"),
        Ignore("lost",           ANY,                  "not is_known",
                                         "an evicted process is gone"),

        Row("count",             ANY,       STAY,      None,
            "count_attempt",             "each attempt has a number of its own"),

        Row("attempt_failed",    ATTEMPTED, STAY,      "has_others",
            "report_outlived",           "another attempt of the subtask can still finish"),
        Row("attempt_failed",    ATTEMPTED, IDLE,      "not has_others",
            "lead, ask_restart",         "no attempt of the subtask is left"),
        Row("attempt_failed",    ENDED,     IDLE,      "is_leading",
            "take_waiting, ask_restart", "the attempt at the end has failed, and no other is left"),
        Ignore("attempt_failed", ENDED,                "not is_leading",
                                         "another attempt had reached the end and ended this one"),

        Row("restart",           IDLE,      ATTEMPTED, None,
            None,                        "the coordinators have taken back what the subtask was told"),

        Row("end",               ATTEMPTED, ENDED,     None,
            "lead, end_others",          "the first attempt has reached the end of the input"),

        Row("abandon",           ATTEMPTED, IDLE,      None,
            None,                        "all attempts go down together"),
        Row("abandon",           ENDED,     IDLE,      None,
            "take_waiting",              "all attempts go down together"),
        Ignore("abandon",        IDLE,                 None,
                                         "no attempt is there"),
    )
    # fmt: on

    def first(self) -> int:
        return self.vertex * self.system.concurrent

    def leader(self) -> int:
        return self.first() + self.leading

    def is_vacant(self, place: int) -> bool:
        """True if no attempt is at this place, or expected there; while the subtask has any."""
        return (
            self.system.attempt[place].state == CANCELED
            or self.system.attempt[place].state == FAILED
            or self.system.attempt[place].state == FINISHED
        )

    def is_expecting(self) -> bool:
        return self.system.attempt[self.leader()].state == SCHEDULED

    def has_room(self) -> bool:
        return any(self.is_vacant(self.first() + i) for i in range(self.system.concurrent))

    def has_others(self) -> bool:
        """Return whether an attempt is left; the one that has just failed is none any more."""
        return any(not self.is_vacant(self.first() + i) for i in range(self.system.concurrent))

    def is_leading(self, place: int) -> bool:
        return place == self.leader()

    def place_of(self, identity: int) -> int:
        """Return the place where this process speaks or waits; -1 if it does neither any more."""
        for i in range(self.system.concurrent):
            place = self.first() + i
            if self.system.attempt[place].speaks(identity):
                return place
            if self.system.attempt[place].is_waiting(identity):
                return place
        return -1

    def count_attempt(self) -> None:
        self.attempts += 1

    def has_waiting_at(self, place: int) -> bool:
        return self.system.attempt[place].has_waiting()

    def recreate_at(self, place: int) -> None:
        self.system.attempt[place].recreate()

    def is_known(self, identity: int) -> bool:
        return self.place_of(identity) >= 0

    def pass_loss(self, identity: int, reason: Opaque) -> None:
        place = self.place_of(identity)
        self.system.attempt[place].lost(identity, reason)

    def vacate(self) -> None:
        for i in range(self.system.concurrent):
            self.system.attempt[self.first() + i].cancel()

    def start_leading(self) -> None:
        self.system.attempt[self.leader()].recreate()

    def pass_to_leading(self, identity: int) -> None:
        self.system.attempt[self.leader()].connect(identity)

    def start_beside(self, identity: int) -> None:
        chosen = self.first()
        for i in range(self.system.concurrent):
            if self.is_vacant(self.first() + i):
                chosen = self.first() + i
        self.start_at(chosen, identity)

    def replace_oldest(self, identity: int) -> None:
        chosen = self.first()
        for i in range(self.system.concurrent):
            if self.is_older(self.first() + i, chosen):
                chosen = self.first() + i
        self.start_at(chosen, identity)

    def is_older(self, place: int, other: int) -> bool:
        return self.system.attempt[place].identity < self.system.attempt[other].identity

    def start_at(self, place: int, identity: int) -> None:
        self.system.attempt[place].connect(identity)
        self.begin_at(place)

    def let_wait(self, identity: int) -> None:
        self.system.attempt[self.spare()].connect(identity)

    def spare(self) -> int:
        """A place that is free once the leading one has reached the end."""
        return self.first() + (1 if self.leading == 0 else 0)

    def take_waiting(self) -> None:
        if self.system.attempt[self.spare()].has_waiting():
            waiting = self.system.attempt[self.spare()].waiting
            self.system.attempt[self.leader()].take_over(waiting)  # type: ignore[attr-defined]
            self.system.attempt[self.spare()].hand_over()  # type: ignore[attr-defined]

    def lead(self, place: int) -> None:
        self.leading = place - self.first()

    def report_outlived(self, place: int, reason: Opaque) -> None:
        self.record.outlived(place, self.system.attempt[place].number, reason)

    def ask_restart(self, place: int, reason: Opaque) -> None:
        number = self.system.attempt[place].number
        self.system.lifecycle.attempt_failed(place, number, reason)

    def end_others(self, place: int) -> None:
        for i in range(self.system.concurrent):
            if self.first() + i != place:
                self.system.attempt[self.first() + i].fault(
                    "another attempt of its subtask has reached the end of the input"
                )
