"""The worker processes, the wires to and from them, and what their operators do.

A process dies, is replaced while it still speaks, or is ended by the driver; messages arrive late,
and what a replaced process has said may arrive after all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochgate.fsm import ANY, STAY, Array, Bool, Channel, Fifo, Ignore, Int, Machine, Row, Trigger
from epochgate.models.task import CREATED, RUNNING, Task

if TYPE_CHECKING:
    from epochgate.models.closed_job import ClosedJob

AWAY, HERE = "away", "here"
INITIALIZE, RUN, LOST, ENDED, FINISHED = 0, 1, 2, 3, 4


class ProcessTask(Task):
    """The task machine that runs in worker processes, one for each subtask, renewed with its
    process.
    """

    INDEX = ("subtask",)

    replaced: Trigger

    # fmt: off
    ROWS = (
        *Task.ROWS,
        Row("replaced", ANY, CREATED, None, "forget", "a new process knows nothing of the old"),
    )
    # fmt: on

    def forget(self) -> None:
        for c in range(self.system.coordinators):
            self.received[c] = 0


class Process(Machine):
    """The worker process of one subtask, with the wires to and from it.

    `down` holds 0 for restore, n for barrier n, then finish, and above that an event with its
    number and value. `up` holds what the present process has said: INITIALIZE to FINISHED, above
    that acknowledgements, final acknowledgements and confirmations; `late` holds what processes
    before it have said.
    """

    INDEX = ("subtask",)
    STATES = (AWAY, HERE)
    INITIAL = AWAY

    system: ClosedJob
    subtask: int

    identity: int = Int("identities")
    is_wanted: bool = Bool()
    down: Fifo[int] = Channel("down", "down_length")
    up: Fifo[int] = Channel("up", "up_length")
    late: Fifo[int] = Channel("up", "late_length")
    echo: int = Int("checkpoints")
    """An acknowledgement that will arrive a second time; 0 for none."""
    has_ended: bool = Bool()
    """There will be no more input for the subtask."""
    handled: list[int] = Array(Int("events"), "coordinators")
    """How far the subtask has handled each coordinator's events: its state."""
    snapshot_handled: list[int] = Array(Int("events"), "coordinators")
    completed_handled: list[int] = Array(Int("events"), "coordinators")

    arrive: Trigger
    die: Trigger
    usurp: Trigger
    tell: Trigger
    hear: Trigger
    hear_late: Trigger
    hear_again: Trigger
    end_input: Trigger
    ended: Trigger

    # fmt: off
    ROWS = (
        Row("arrive",     AWAY, HERE, "is_awaited", "connect",                        "the process that was asked for"),
        Row("die",        HERE, AWAY, "may_fail",   "spend_failure, vanish",          "killed, or cut off"),
        Row("usurp",      HERE, STAY, "may_fail",   "spend_failure, vanish, connect", "a newer process comes while the old one still speaks"),
        Row("tell",       HERE, STAY, "is_told",    "handle_message",                 "the oldest message arrives at the process"),
        Row("hear",       ANY,  STAY, "is_heard",   "deliver_message",                "the oldest message arrives at the driver"),
        Row("hear_late",  ANY,  STAY, "is_late",    "deliver_late",                   "a message of a process that was replaced arrives after all"),
        Row("hear_again", HERE, STAY, "has_echo",   "deliver_echo",                   "an acknowledgement arrives a second time"),
        Row("end_input",  HERE, STAY, "may_end",    "note_end",                       "the subtask has nothing more to read"),
        Row("ended",      HERE, AWAY, None,         "vanish",                         "the driver has ended it"),
        Ignore("ended",   AWAY,       None,                                           "it is gone already"),
    )
    # fmt: on

    def is_awaited(self) -> bool:
        return self.is_wanted

    def may_fail(self) -> bool:
        return self.system.budget.has_failures()

    def is_told(self) -> bool:
        return not self.down.empty()

    def is_heard(self) -> bool:
        return not self.up.empty()

    def is_late(self) -> bool:
        return not self.late.empty()

    def may_end(self) -> bool:
        return self.system.task[self.subtask].state == RUNNING and not self.has_ended

    def note_end(self) -> None:
        self.has_ended = True
        self.up.push(ENDED)

    def has_echo(self) -> bool:
        return self.echo > 0

    def connect(self) -> None:
        self.is_wanted = False
        self.echo = 0
        self.has_ended = False
        self.late.drain(self.up)
        self.identity += 1
        self.system.task[self.subtask].replaced()
        self.system.attempt[self.subtask].connect(self.identity)

    def spend_failure(self) -> None:
        self.system.budget.failures += 1

    def vanish(self) -> None:
        self.down.clear()
        self.up.push(LOST)

    def deliver_message(self) -> None:
        self.deliver(self.identity, self.up.pop())

    def deliver_late(self) -> None:
        self.deliver(self.identity - 1, self.late.pop())

    def deliver_echo(self) -> None:
        self.system.attempt[self.subtask].acknowledge(self.identity, self.echo, False, 0)
        self.echo = 0

    def deliver(self, identity: int, message: int) -> None:
        if message == INITIALIZE:
            self.system.attempt[self.subtask].initialize(identity)
        elif message == RUN:
            self.system.attempt[self.subtask].run(identity)
        elif message == LOST:
            self.system.attempt[self.subtask].lost(identity)
        elif message == ENDED:
            self.system.attempt[self.subtask].end_of_input(identity)
        elif message == FINISHED:
            self.system.attempt[self.subtask].finish(identity)
        else:
            self.deliver_numbered(identity, message - FINISHED)

    def deliver_numbered(self, identity: int, number: int) -> None:
        checkpoints = self.system.checkpoints
        if number <= checkpoints:
            self.system.attempt[self.subtask].acknowledge(identity, number, False, 0)
            if self.system.repeats > 0:
                self.echo = number
        elif number <= 2 * checkpoints:
            self.system.attempt[self.subtask].acknowledge(identity, number - checkpoints, True, 0)
        else:
            place = number - 2 * checkpoints - 1
            coordinator = place // self.system.events
            confirmed = place % self.system.events + 1
            self.system.attempt[self.subtask].confirm(identity, coordinator, confirmed)

    def handle_message(self) -> None:
        message = self.down.pop()
        if message == 0:
            self.system.task[self.subtask].restore(0, 0, 0)
        elif message <= self.system.checkpoints:
            self.system.task[self.subtask].barrier(message)
        elif message == self.system.checkpoints + 1:
            self.system.task[self.subtask].finish()
        else:
            rest = message - self.system.checkpoints - 2
            event = rest % self.system.events + 1
            number = rest // self.system.events % self.system.events + 1
            coordinator = rest // self.system.events // self.system.events
            self.system.task[self.subtask].event(coordinator, number, event)

    # port `scheduler` of the attempt

    def deploy(self, attempt: int) -> None:
        self.is_wanted = True

    def end(self, identity: int) -> None:
        if identity == self.identity:
            self.ended()

    def refuse(self, identity: int) -> None:
        if identity == self.identity:
            self.ended()


class Wire(Machine):
    """Takes what the driver tells a process; port `task` of the attempt, port `operators` of the
    task.
    """

    INDEX = ("subtask",)

    system: ClosedJob
    subtask: int

    def put(self, message: int) -> None:
        if self.system.process[self.subtask].state == HERE:
            self.system.process[self.subtask].down.push(message)

    # port `task` of the attempt

    def restore(self, attempt: int, checkpoint: int) -> None:
        self.put(0)

    def event(self, coordinator: int, number: int, event: int) -> None:
        place = (coordinator * self.system.events + number - 1) * self.system.events + event - 1
        self.put(self.system.checkpoints + 2 + place)

    def barrier(self, checkpoint: int) -> None:
        self.put(checkpoint)

    def complete(self, checkpoint: int) -> None:
        pass

    def aborted(self, checkpoint: int) -> None:
        pass

    def finish(self) -> None:
        self.put(self.system.checkpoints + 1)


class Operators(Machine):
    """What the subtask's operators do: port `operators` of the task."""

    INDEX = ("subtask",)

    system: ClosedJob
    subtask: int

    def restore(self, attempt: int, checkpoint: int, state: int) -> None:
        for c in range(self.system.coordinators):
            self.system.process[self.subtask].handled[c] = self.system.process[
                self.subtask
            ].completed_handled[c]
        self.system.process[self.subtask].up.push(INITIALIZE)
        self.system.process[self.subtask].up.push(RUN)

    def event(self, coordinator: int, number: int, event: int) -> None:
        assert event == self.system.process[self.subtask].handled[coordinator] + 1, (
            "I3: each event is handled once, in its order"
        )
        self.system.process[self.subtask].handled[coordinator] = event
        self.system.process[self.subtask].up.push(
            FINISHED + 2 * self.system.checkpoints + coordinator * self.system.events + number
        )

    def snapshot(self, checkpoint: int) -> None:
        for c in range(self.system.coordinators):
            self.system.process[self.subtask].snapshot_handled[c] = self.system.process[
                self.subtask
            ].handled[c]
        if self.system.process[self.subtask].has_ended:
            self.system.process[self.subtask].up.push(
                FINISHED + self.system.checkpoints + checkpoint
            )
        else:
            self.system.process[self.subtask].up.push(FINISHED + checkpoint)

    def complete(self, checkpoint: int) -> None:
        pass

    def aborted(self, checkpoint: int) -> None:
        pass

    def finish(self) -> None:
        self.system.process[self.subtask].up.push(FINISHED)
        self.system.process[self.subtask].ended()

    def gap(self, coordinator: int, number: int) -> None:
        assert number == 0, "I1: no event is missing before another"
