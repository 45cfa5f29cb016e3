"""What is around a job with concurrent attempts: processes that come when they like, and the users'
coordinators, which keep account of what they are told.

A process says what it has to say at any time after it may, also when the driver has ended it: that
stands for every delay of its messages. The coordinators claim the order of what they are told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochgate.fsm import STAY, Array, Bool, Int, Machine, Row, Trigger

if TYPE_CHECKING:
    from epochgate.models.closed_concurrent import ConcurrentAttempts

AWAY, HERE, GONE = "away", "here", "gone"
CONNECTED, RESTORING, INITIALIZED, RUNNING, ENDED = 0, 1, 2, 3, 4


class Starter(Machine):
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
        Row("arrive",      AWAY, HERE, "may_arrive",                 "connect",                       "a process connects, asked for or not"),
        Row("initialize",  HERE, STAY, "is_restoring",               "say_initialize",                "it restores"),
        Row("run",         HERE, STAY, "is_initialized",             "say_run",                       "it runs"),
        Row("speak",       HERE, STAY, "may_speak",                  "send_event",                    "its operator speaks to the coordinators"),
        Row("confirm",     HERE, STAY, "has_unconfirmed",            "confirm_all",                   "it has handled events"),
        Row("end",         HERE, STAY, "is_running",                 "say_end",                       "its input has ended"),
        Row("acknowledge", HERE, STAY, "is_asked",                   "hand_over",                     "its part of the checkpoint that ends the job"),
        Row("finish",      HERE, GONE, "is_leaving",                 "say_finished, report_lost",     "it leaves as it was told to"),
        Row("die",         HERE, GONE, "may_fail and not is_ending", "spend_failure, report_lost",    "it is killed"),
        Row("vanish",      HERE, GONE, "is_ending",                  "report_lost",                   "it has been ended"),
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
        place = self.place()
        if place >= 0:
            self.system.attempt[place].lost(self.identity())
        self.attempt = 0
        self.phase = CONNECTED
        self.has_spoken = False
        self.received = 0
        self.confirmed = 0
        self.has_barrier = False
        self.is_dismissed = False
        self.is_doomed = False


class Wires(Machine):
    """The wires of one place: ports `task` and `scheduler` of its attempt."""

    INDEX = ("subtask",)

    system: ConcurrentAttempts
    subtask: int

    def process(self) -> int:
        return self.system.attempt[self.subtask].identity - 1

    def restore(self, attempt: int, checkpoint: int) -> None:
        assert self.system.starter[self.process()].phase == CONNECTED, (
            "a process is one attempt only"
        )
        self.system.starter[self.process()].attempt = attempt + 1
        self.system.starter[self.process()].phase = RESTORING

    def event(self, coordinator: int, number: int, event: int) -> None:
        assert self.system.starter[self.process()].attempt == event + 1, (
            "an event goes to the attempt of its gateway"
        )
        self.system.starter[self.process()].received = number

    def barrier(self, checkpoint: int) -> None:
        self.system.starter[self.process()].has_barrier = True

    def complete(self, checkpoint: int) -> None:
        pass

    def aborted(self, checkpoint: int) -> None:
        self.system.starter[self.process()].has_barrier = False

    def finish(self) -> None:
        self.system.starter[self.process()].is_dismissed = True

    # port `scheduler`

    def deploy(self, attempt: int) -> None:
        pass

    def starting(self, attempt: int) -> None:
        pass

    def end(self, identity: int) -> None:
        if self.system.starter[identity - 1].state == HERE:
            self.system.starter[identity - 1].is_doomed = True

    def refuse(self, identity: int) -> None:
        self.end(identity)


class Coordinator(Machine):
    """A user's coordinator, and what it knows of each place: port `user` of its holder.

    In a state of its own as little as the claims need: they are in what it is told.
    """

    INDEX = ("coordinator",)
    STATES = ("up",)
    INITIAL = "up"

    system: ConcurrentAttempts
    coordinator: int

    is_ready: list[bool] = Array(Bool(), "subtasks")
    number: list[int] = Array(Int("attempts"), "subtasks")
    """The last attempt at each place that was ready, and 1."""
    is_reset_due: list[bool] = Array(Bool(), "vertices")
    asked_for: int = Int("checkpoints")
    sent: int = Int("events")

    take_snapshot: Trigger
    fail_everything: Trigger

    # fmt: off
    ROWS = (
        Row("take_snapshot",   "up", STAY, "is_asked", "answer",                     "it completes its future"),
        Row("fail_everything", "up", STAY, "may_fail", "spend_failure, fail_job",    "it finds that its state is wrong"),
    )
    # fmt: on

    def is_asked(self) -> bool:
        return self.asked_for > 0

    def may_fail(self) -> bool:
        return self.system.budget.has_failures() and self.system.lifecycle.state == "running"

    def spend_failure(self) -> None:
        self.system.budget.failures += 1

    def answer(self) -> None:
        self.system.snapshot[self.coordinator, 0].succeed(self.asked_for, 0)
        self.asked_for = 0

    def fail_job(self) -> None:
        self.system.holder[self.coordinator].fail_job()

    def start(self) -> None:
        self.system.holder[self.coordinator].started()

    def unfit(self) -> None:
        pass

    def rebuild(self) -> None:
        pass

    def close(self) -> None:
        pass

    def reset_to(self, checkpoint: int) -> None:
        for s in range(self.system.subtasks):
            assert not self.is_ready[s], "everything goes back once all attempts are gone"
        for v in range(self.system.vertices):
            self.is_reset_due[v] = False

    def checkpoint(self, checkpoint: int, lane: int) -> None:
        self.asked_for = checkpoint

    def complete(self, checkpoint: int) -> None:
        pass

    def aborted(self, checkpoint: int) -> None:
        self.asked_for = 0

    def ready(self, subtask: int, attempt: int) -> None:
        vertex = subtask // self.system.concurrent
        assert not self.is_reset_due[vertex], (
            "the subtask is reset once, when its last attempt is gone, and before the next"
        )
        for i in range(self.system.concurrent):
            assert self.number[vertex * self.system.concurrent + i] != attempt + 1, (
                "each attempt of a subtask has its own number"
            )
        self.is_ready[subtask] = True
        self.number[subtask] = attempt + 1

    def failed(self, subtask: int, attempt: int) -> None:
        vertex = subtask // self.system.concurrent
        self.is_ready[subtask] = False
        self.is_reset_due[vertex] = not self.system.lives(vertex)

    def subtask_reset(self, subtask: int, checkpoint: int) -> None:
        vertex = subtask // self.system.concurrent
        assert not self.system.lives(vertex), "no subtask is reset while an attempt of it lives"
        assert self.is_reset_due[vertex], (
            "the subtask is reset once, when its last attempt is gone, and before the next"
        )
        self.is_reset_due[vertex] = False

    def event(self, subtask: int, attempt: int, event: int) -> None:
        assert self.is_ready[subtask], "an operator's event comes from an attempt that is there"
        assert self.number[subtask] == attempt + 1, (
            "an operator's event comes from the attempt that is there"
        )
        assert event == attempt + 1, "an operator's event is taken for its own attempt's"


class Sends(Machine):
    """What one coordinator sends through the last gateway that it was given for a place: port
    `sender` of the gateway.
    """

    INDEX = ("coordinator", "subtask")
    STATES = ("sending",)
    INITIAL = "sending"

    system: ConcurrentAttempts
    coordinator: int
    subtask: int

    send: Trigger
    send_late: Trigger

    # fmt: off
    ROWS = (
        Row("send",      "sending", STAY, "may_send",                   "send_event",      "it may be for an attempt that is gone"),
        Row("send_late", "sending", STAY, "may_send and is_place_anew", "send_to_first",   "it is for the first attempt of a place that has another now"),
    )
    # fmt: on

    def may_send(self) -> bool:
        return (
            self.system.user[self.coordinator].sent < self.system.events
            and self.system.user[self.coordinator].number[self.subtask] > 0
        )

    def is_place_anew(self) -> bool:
        """The first attempt of a subtask is always at its first place."""
        return (
            self.subtask % self.system.concurrent == 0
            and self.system.user[self.coordinator].number[self.subtask] > 1
        )

    def send_to_first(self) -> None:
        self.system.user[self.coordinator].sent += 1
        self.system.gateway[self.coordinator, self.subtask].send(0, 0)

    def send_event(self) -> None:
        self.system.user[self.coordinator].sent += 1
        attempt = self.system.user[self.coordinator].number[self.subtask] - 1
        self.system.gateway[self.coordinator, self.subtask].send(attempt, attempt)

    def confirmed(self, count: int) -> None:
        pass

    def lost(self, count: int) -> None:
        pass

    def turned_away(self, event: int) -> None:
        pass


class Shore(Machine):
    """Store, requester and the job's record: what one attempt of each subtask has handed over."""

    STATES = ("ready",)
    INITIAL = "ready"

    system: ConcurrentAttempts

    has_part: list[bool] = Array(Bool(), "vertices")
    is_saving: bool = Bool()

    finish_save: Trigger

    # fmt: off
    ROWS = (
        Row("finish_save", "ready", STAY, "has_whole", "report_stored", "it is durable"),
    )
    # fmt: on

    def has_whole(self) -> bool:
        return self.is_saving

    def report_stored(self) -> None:
        self.is_saving = False
        self.system.checkpoint.stored(self.system.checkpoint.number)

    def started(self, checkpoint: int) -> None:
        for v in range(self.system.vertices):
            self.has_part[v] = False

    def keep(self, checkpoint: int, subtask: int, snapshot: int) -> None:
        assert not self.has_part[subtask // self.system.concurrent], (
            "one attempt of each subtask hands over its results"
        )
        self.has_part[subtask // self.system.concurrent] = True

    def save(self, checkpoint: int) -> None:
        for v in range(self.system.vertices):
            assert self.has_part[v], "one attempt of each subtask hands over its results"
        self.is_saving = True

    def completed(self, checkpoint: int) -> None:
        pass

    def aborted(self, checkpoint: int) -> None:
        pass

    def chosen(self, checkpoint: int) -> None:
        pass


class Record(Machine):
    """Who keeps the job's record: port `record` of a vertex."""

    INDEX = ("vertex",)

    system: ConcurrentAttempts
    vertex: int

    def outlived(self, place: int, attempt: int) -> None:
        assert self.system.lives(self.vertex), "another attempt of the subtask goes on"


class Delays(Machine):
    """The restart strategy's timers: port `driver` of the lifecycle."""

    STATES = ("ready",)
    INITIAL = "ready"

    system: ConcurrentAttempts

    due: list[int] = Array(Int("attempts"), "subtasks")
    """For each place the attempt to be followed by another, and 1; 0 for none."""
    restarts: int = Int("restarts")
    """The restart of all that waits for its back-off; 0 for none."""

    back_off: Trigger

    # fmt: off
    ROWS = (
        Row("back_off", "ready", STAY, "is_backing_off", "report", "the delay is over"),
    )
    # fmt: on

    def is_backing_off(self) -> bool:
        return self.restarts > 0

    def report(self) -> None:
        self.system.lifecycle.backed_off(self.restarts)
        self.restarts = 0

    def restart_one(self, subtask: int, attempt: int) -> None:
        self.due[subtask] = attempt + 1

    def restart_all(self, restarts: int) -> None:
        self.restarts = restarts

    def ended(self) -> None:
        pass


class Delay(Machine):
    """The delay before the restart of one place; it may be over too late."""

    INDEX = ("subtask",)
    STATES = ("timing",)
    INITIAL = "timing"

    system: ConcurrentAttempts
    subtask: int

    elapse: Trigger

    # fmt: off
    ROWS = (
        Row("elapse", "timing", STAY, "is_due", "restart", "the delay is over"),
    )
    # fmt: on

    def is_due(self) -> bool:
        return self.system.delays.due[self.subtask] > 0

    def restart(self) -> None:
        attempt = self.system.delays.due[self.subtask] - 1
        self.system.delays.due[self.subtask] = 0
        self.system.attempt[self.subtask].restart(attempt)
