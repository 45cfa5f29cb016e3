"""The processes of a job with concurrent attempts, which come when they like.

A process says what it has to say at any time after it may, also when the driver has ended it: that
stands for every delay of its messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochgate.fsm import STAY, Bool, Int, Row, Trigger
from epochgate.fsm.closed import Environment

if TYPE_CHECKING:
    from epochgate.models.closed.concurrent import ConcurrentAttempts

AWAY, HERE, GONE = "away", "here", "gone"
CONNECTED, RESTORING, INITIALIZED, RUNNING, ENDED = 0, 1, 2, 3, 4


class Starter(Environment):
    """A process, asked for or not: Spark's retry, or its speculation. It belongs to one subtask."""

    INDEX = ("process",)
    STATES = (AWAY, HERE, GONE)
    INITIAL = AWAY
    TERMINAL = (GONE,)

    system: ConcurrentAttempts
    process: int

    attempt: int = Int("attempts")
    """The attempt that it was restored as, and 1; 0 if it was not."""
    phase: int = Int("phases")
    has_spoken: bool = Bool()
    received: int = Int("events")
    confirmed: int = Int("events")
    has_barrier: bool = Bool()
    is_dismissed: bool = Bool()
    is_doomed: bool = Bool()
    """The driver has ended it."""

    arrive: Trigger
    initialize: Trigger
    run: Trigger
    speak: Trigger
    confirm: Trigger
    end: Trigger
    acknowledge: Trigger
    finish: Trigger
    die: Trigger
    vanish: Trigger

    # fmt: off
    ROWS = (
        Row("arrive",      AWAY, HERE, "may_arrive",
            "connect",                    "a process connects, asked for or not"),
        Row("initialize",  HERE, STAY, "is_restoring",
            "say_initialize",             "it restores"),
        Row("run",         HERE, STAY, "is_initialized",
            "say_run",                    "it runs"),
        Row("speak",       HERE, STAY, "may_speak",
            "send_event",                 "its operator speaks to the coordinators"),
        Row("confirm",     HERE, STAY, "has_unconfirmed",
            "confirm_all",                "it has handled events"),
        Row("end",         HERE, STAY, "is_running",
            "say_end",                    "its input has ended"),
        Row("acknowledge", HERE, STAY, "is_asked",
            "hand_over",                  "its part of the checkpoint that ends the job"),
        Row("finish",      HERE, GONE, "is_leaving",
            "say_finished, report_lost",  "it leaves as it was told to"),
        Row("die",         HERE, GONE, "may_fail and not is_ending",
            "spend_failure, report_lost", "it is killed"),
        Row("vanish",      HERE, GONE, "is_ending",
            "report_lost",                "it has been ended"),
    )
    # fmt: on

    def vertex(self) -> int:
        return self.process // self.system.starts

    def identity(self) -> int:
        return self.process + 1

    def place(self) -> int:
        return self.system.vertex[self.vertex()].place_of(self.identity())

    def may_arrive(self) -> bool:
        """In the order of their identities, unless the bounds let them overtake each other."""
        return self.system.overtaking > 0 or all(
            self.system.starter[p].state != AWAY
            for p in range(self.system.processes)
            if p < self.process and p // self.system.starts == self.vertex()
        )

    def is_restoring(self) -> bool:
        return self.phase == RESTORING

    def is_initialized(self) -> bool:
        return self.phase == INITIALIZED

    def is_running(self) -> bool:
        return self.phase == RUNNING

    def may_speak(self) -> bool:
        return self.phase >= INITIALIZED and not self.has_spoken and self.system.said > 0

    def has_unconfirmed(self) -> bool:
        return self.received > self.confirmed

    def is_asked(self) -> bool:
        return self.has_barrier

    def is_leaving(self) -> bool:
        return self.is_dismissed and not self.is_doomed

    def is_ending(self) -> bool:
        return self.is_doomed

    def may_fail(self) -> bool:
        return self.system.budget.has_failures()

    def spend_failure(self) -> None:
        self.system.budget.failures += 1

    def connect(self) -> None:
        self.system.vertex[self.vertex()].connect(self.identity())

    def say_initialize(self) -> None:
        self.phase = INITIALIZED
        place = self.place()
        if place >= 0:
            self.system.attempt[place].initialize(self.identity())

    def say_run(self) -> None:
        self.phase = RUNNING
        place = self.place()
        if place >= 0:
            self.system.attempt[place].run(self.identity())

    def send_event(self) -> None:
        self.has_spoken = True
        place = self.place()
        if place >= 0:
            for c in range(self.system.coordinators):
                self.system.attempt[place].operator_event(self.identity(), c, self.attempt)

    def confirm_all(self) -> None:
        self.confirmed = self.received
        place = self.place()
        if place >= 0:
            self.system.attempt[place].confirm(self.identity(), 0, self.confirmed)

    def say_end(self) -> None:
        self.phase = ENDED
        place = self.place()
        if place >= 0:
            self.system.attempt[place].end_of_input(self.identity())

    def hand_over(self) -> None:
        self.has_barrier = False
        place = self.place()
        if place >= 0:
            self.system.attempt[place].acknowledge(
                self.identity(), self.system.checkpoint.number, True, 0
            )

    def say_finished(self) -> None:
        self.is_dismissed = False
        place = self.place()
        if place >= 0:
            self.system.attempt[place].finish(self.identity())

    def report_lost(self) -> None:
        self.system.vertex[self.vertex()].lost(self.identity(), "it was killed")
        self.attempt = 0
        self.phase = CONNECTED
        self.has_spoken = False
        self.received = 0
        self.confirmed = 0
        self.has_barrier = False
        self.is_dismissed = False
        self.is_doomed = False


class Wires(Environment):
    """The wires of one place: ports `task` and `scheduler` of its attempt, and what other machines
    tell its process.
    """

    INDEX = ("subtask",)

    system: ConcurrentAttempts
    subtask: int

    def reaches(self, identity: int) -> bool:
        """Return whether the process is there; that it is gone may be on its way to the driver."""
        return self.system.starter[identity - 1].state == HERE

    def restore(self, identity: int, attempt: int, checkpoint: int) -> None:
        if self.reaches(identity):
            assert self.system.starter[identity - 1].phase == CONNECTED, (
                "a process is one attempt only"
            )
            self.system.starter[identity - 1].attempt = attempt + 1
            self.system.starter[identity - 1].phase = RESTORING

    def event(self, identity: int, coordinator: int, number: int, event: int) -> None:
        if self.reaches(identity):
            assert self.system.starter[identity - 1].attempt == event + 1, (
                "an event goes to the attempt of its gateway"
            )
            self.system.starter[identity - 1].received = number

    # port `scheduler`

    def deploy(self, attempt: int) -> None:
        self.check_attempt(attempt)

    def starting(self, attempt: int) -> None:
        self.check_attempt(attempt)

    def check_attempt(self, attempt: int) -> None:
        assert attempt == self.system.attempt[self.subtask].number, (
            "a process is started for the present attempt"
        )

    def release(self, identity: int) -> None:
        assert self.system.concurrent < 2, "a process of concurrent attempts has one alone"

    def end(self, identity: int) -> None:
        if self.reaches(identity):
            self.system.starter[identity - 1].is_doomed = True

    def metrics(self, counters: int) -> None:
        pass

    def refuse(self, identity: int) -> None:
        self.end(identity)

    def dismiss(self, identity: int) -> None:
        if self.reaches(identity):
            assert self.system.starter[identity - 1].phase == CONNECTED, (
                "a process that is told to leave has not begun"
            )
        self.end(identity)


class Notices(Environment):
    """Takes what a checkpoint tells the processes to each; port `tasks`."""

    system: ConcurrentAttempts

    def barrier(self, subtask: int, identity: int, checkpoint: int) -> None:
        assert self.system.attempt[subtask].identity == identity, "it is the process of the place"
        assert checkpoint == self.system.checkpoint.number, "the barrier is of the checkpoint"
        if self.system.wires[subtask].reaches(identity):
            self.system.starter[identity - 1].has_barrier = True

    def complete(self, subtask: int, identity: int, checkpoint: int) -> None:
        pass

    def finish(self, subtask: int, identity: int) -> None:
        if self.system.wires[subtask].reaches(identity):
            self.system.starter[identity - 1].is_dismissed = True

    def aborted(self, subtask: int, identity: int, checkpoint: int) -> None:
        self.system.starter[identity - 1].has_barrier = False
