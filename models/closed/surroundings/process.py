"""The worker processes, and what is on its way to and from them.

A process dies, is replaced while it still speaks, or is ended by the driver. One that the driver has
released comes back under a newer identity, before its loss is known or after it, and before or
after it is wanted. Messages arrive late and in order; acknowledgements arrive again at any time, and
so does anything that a process could say that was replaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import ANY, STAY, Array, Bool, Channel, Fifo, Ignore, Int, Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.attempt import DEPLOYING, INITIALIZING
from epochgate.models.checkpoint import PENDING
from epochgate.models.lifecycle import CANCELING, FAILING, RESTARTING
from epochgate.models.task import CREATED, ENDED as TASK_ENDED, RUNNING, Task

if TYPE_CHECKING:
    from epochgate.models.closed.job import ClosedJob

AWAY, HERE = "away", "here"
CURRENT, OUTDATED = 1, 0
"""Whose figures they are: those of the process that speaks, or of one before it."""
INITIALIZE, RUN, LOST, ENDED, FINISHED, FAILED, FATAL = 0, 1, 2, 3, 4, 5, 6
SAID = "INITIALIZE, RUN, LOST, ENDED, FINISHED, FAILED, FATAL"


class ProcessTask(Task):
    """The task machine that runs in worker processes, one for each subtask, renewed with its
    process.
    """

    INDEX = ("subtask",)

    replaced: Trigger

    # fmt: off
    ROWS = (
        *Task.ROWS,
        Row("replaced", ANY, CREATED, None, "forget", "what the process knew is gone with it"),
    )
    # fmt: on

    def forget(self) -> None:
        for c in range(self.system.coordinators):
            self.received[c] = 0


class Process(Environment):
    """The worker process of one subtask, with the wires to and from it.

    `down` holds 0 for finish, n for barrier n, and above that an event with its number and value;
    `up` holds what the present process has said, INITIALIZE to FATAL, above that acknowledgements,
    final acknowledgements, declined checkpoints and operator events. Some things happen in one step
    here, because no machine can tell when the process did its part: a restore is handled when it is
    sent, unless the process dies silently, and so is the word to leave for a process that comes too
    late; and an event when its confirmation arrives, which is after everything that the process
    said before.
    """

    INDEX = ("subtask",)
    STATES = (AWAY, HERE)
    INITIAL = AWAY

    system: ClosedJob
    subtask: int

    identity: int = Int("identities")
    is_wanted: bool = Bool()
    is_released: bool = Bool()
    """The process may come back before it is wanted; what comes then is the one that is wanted."""
    down: Fifo[int] = Channel("down", "down_length")
    up: Fifo[int] = Channel("up", "up_length", names=SAID)
    handled: list[int] = Array(Int("events"), "coordinators")
    """How far the subtask has handled each coordinator's events: its state."""
    snapshot_handled: list[int] = Array(Int("events"), "coordinators")
    completed_handled: list[int] = Array(Int("events"), "coordinators")
    spoken: list[int] = Array(Int("said"), "coordinators")
    """The last event that the operator has sent to each coordinator; all are sent in order."""
    receipts: list[int] = Array(Int("said"), "coordinators")
    """The last one for which it has a receipt: its state; what comes after is sent again."""
    snapshot_receipts: list[int] = Array(Int("said"), "coordinators")
    completed_receipts: list[int] = Array(Int("said"), "coordinators")
    is_owed_an_end: bool = Bool()
    """The task has taken its part of a checkpoint, and was not told the checkpoint's outcome."""
    is_unwanted: bool = Bool()
    """A process has to be told to leave in this step; never so between two steps."""
    is_measured: bool = Bool()
    """Its figures are to be passed on in this step; never so between two steps."""

    arrive: Trigger
    come_back: Trigger
    die: Trigger
    die_silently: Trigger
    usurp: Trigger
    tell: Trigger
    hear: Trigger
    hear_again: Trigger
    hear_zombie: Trigger
    speak: Trigger
    decline: Trigger
    fail: Trigger
    fail_fatally: Trigger
    fail_to_restore: Trigger
    lose_event: Trigger
    expire_start: Trigger
    end_input: Trigger
    ended: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("arrive",          AWAY, HERE, "is_awaited",
            "connect",                                  "the process that was asked for"),
        Row("come_back",       AWAY, HERE, "may_come_back",
            "connect_again",                            "the process that was released begins again by itself"),
        Row("die",             HERE, AWAY, "may_fail",
            "spend_failure, vanish",                    "killed, or cut off"),
        Row("die_silently",    HERE, AWAY, "may_fail and is_restoring",
            "spend_failure, fall_silent, vanish",       "killed before it has said that it restores or runs"),
        Row("usurp",           HERE, STAY, "may_fail",
            "spend_failure, vanish, replace",           "a newer process comes while the old one still speaks"),
        Row("tell",            HERE, STAY, "is_told",
            "handle_message",                           "the oldest message arrives at the process"),
        Row("hear",            ANY,  STAY, "is_heard",
            "deliver_message",                          "the oldest message arrives at the driver"),
        Row("hear_again",      ANY,  STAY, "may_repeat",
            "repeat_answers",                           "the process answers for a checkpoint once more"),
        Row("hear_zombie",     ANY,  STAY, "has_replaced",
            "say_everything",                           "all messages of a replaced process arrive after all"),
        Row("speak",           HERE, STAY, "may_speak",
            "send_events",                              "an operator speaks to its coordinators"),
        Row("decline",         HERE, STAY, "may_fail and is_asked",
            "spend_failure, say_no",                    "the subtask cannot take its snapshot"),
        Row("fail",            HERE, STAY, "may_fail and is_restored",
            "spend_failure, say_failed",                "the process reports that it cannot go on"),
        Row("fail_fatally",    HERE, STAY, "may_fail and is_restored",
            "spend_failure, say_fatal",                 "the process reports that no attempt could go on"),
        Row("fail_to_restore", HERE, STAY, "may_fail and is_restoring and is_restored",
            "spend_failure, take_back_run, say_failed", "an operator cannot be opened"),
        Row("lose_event",      HERE, STAY, "may_fail and is_event_next",
            "spend_failure, drop_event",                "an event gets lost on its way, which is noticed"),
        Row("expire_start",    ANY,  STAY, "may_fail and is_starting",
            "spend_failure, report_slow_start",         "it takes too long to restore"),
        Row("end_input",       HERE, STAY, "may_end",
            "end_the_input",                            "the subtask has nothing more to read"),
        Row("ended",           HERE, AWAY, None,
            "vanish",                                   "the driver has ended it"),
        Ignore("ended",        AWAY,       None,
                                                        "it is gone already"),
    )
    # fmt: on

    def is_awaited(self) -> bool:
        return self.is_wanted

    def may_come_back(self) -> bool:
        return self.is_released and (self.up.empty() or self.up.head() == LOST)

    def may_fail(self) -> bool:
        return self.system.budget.has_failures()

    def is_restoring(self) -> bool:
        return not self.up.empty() and self.up.head() <= RUN

    def is_told(self) -> bool:
        return (
            self.is_restored()
            and not self.down.empty()
            and (self.up.empty() or self.down.head() <= self.system.checkpoints)
        )

    def is_heard(self) -> bool:
        return not self.up.empty()

    def may_repeat(self) -> bool:
        return self.system.repeats > 0 and self.system.checkpoint.number > 0

    def has_replaced(self) -> bool:
        return self.identity > 1

    def is_restored(self) -> bool:
        return (
            self.system.task[self.subtask].state == RUNNING
            or self.system.task[self.subtask].state == TASK_ENDED
        )

    def may_speak(self) -> bool:
        return self.is_restored() and any(
            self.spoken[c] < self.system.said for c in range(self.system.coordinators)
        )

    def is_asked(self) -> bool:
        return (
            self.is_restored()
            and not self.down.empty()
            and 0 < self.down.head() <= self.system.checkpoints
        )

    def is_event_next(self) -> bool:
        return (
            self.is_restored()
            and not self.down.empty()
            and self.down.head() > self.system.checkpoints
        )

    def is_starting(self) -> bool:
        return (
            self.system.attempt[self.subtask].state == DEPLOYING
            or self.system.attempt[self.subtask].state == INITIALIZING
        )

    def may_end(self) -> bool:
        return self.system.task[self.subtask].state == RUNNING

    def end_the_input(self) -> None:
        self.system.task[self.subtask].end_input()

    def connect(self) -> None:
        self.is_wanted = False
        self.is_released = False
        self.up.clear()
        self.identity += 1
        self.system.attempt[self.subtask].connect(self.identity)

    def connect_again(self) -> None:
        is_loss_unknown = not self.up.empty()
        self.connect()
        if is_loss_unknown:
            self.system.attempt[self.subtask].lost(self.identity - 1, "it has begun again")

    def replace(self) -> None:
        waiting = self.system.attempt[self.subtask].waiting
        self.is_unwanted = self.speaks() or waiting == self.identity
        self.connect()

    def speaks(self) -> bool:
        present = self.system.attempt[self.subtask].identity
        return present == self.identity and self.system.attempt[self.subtask].is_connected()

    def spend_failure(self) -> None:
        self.system.budget.failures += 1

    def fall_silent(self) -> None:
        self.up.clear()

    def vanish(self) -> None:
        self.down.clear()
        self.up.push(LOST)
        self.is_owed_an_end = False
        self.system.task[self.subtask].replaced()
        for c in range(self.system.coordinators):
            self.handled[c] = 0
            self.spoken[c] = 0
            self.receipts[c] = 0

    def send_events(self) -> None:
        for c in range(self.system.coordinators):
            if self.spoken[c] < self.system.said:
                self.spoken[c] += 1
                self.up.push(
                    FATAL + 3 * self.system.checkpoints + c * self.system.speeches + self.spoken[c]
                )

    def say_no(self) -> None:
        self.up.push(FATAL + 2 * self.system.checkpoints + self.down.pop())

    def take_back_run(self) -> None:
        if self.up.pop() == INITIALIZE:
            self.up.clear()
            self.up.push(INITIALIZE)

    def say_failed(self) -> None:
        self.is_owed_an_end = False
        self.down.clear()
        self.system.task[self.subtask].fail("an operator has raised", False)

    def say_fatal(self) -> None:
        self.is_owed_an_end = False
        self.down.clear()
        self.system.task[self.subtask].fail("an operator has raised", True)

    def deliver_message(self) -> None:
        self.deliver(self.identity, self.up.pop())

    def repeat_answers(self) -> None:
        self.is_measured = self.speaks()
        self.system.attempt[self.subtask].metrics(self.identity, CURRENT)
        for before in range(self.system.checkpoints):
            number = before + 1
            if number < self.system.checkpoint.number:
                self.system.attempt[self.subtask].decline(self.identity, number, "again")
            if number < self.system.checkpoint.number or (
                number == self.system.checkpoint.number
                and self.system.checkpoint.has_acknowledged[self.subtask]
            ):
                self.acknowledge(self.identity, number, False)

    def say_everything(self) -> None:
        self.is_unwanted = True
        self.system.attempt[self.subtask].connect(self.identity - 1)
        self.system.attempt[self.subtask].metrics(self.identity - 1, OUTDATED)
        for message in range(self.system.up + 1):
            self.deliver(self.identity - 1, message)
        for c in range(self.system.coordinators):
            for before in range(self.system.numbers):
                self.system.attempt[self.subtask].confirm(self.identity - 1, c, before + 1)

    def deliver(self, identity: int, message: int) -> None:
        if message == INITIALIZE:
            self.system.attempt[self.subtask].initialize(identity)
        elif message == RUN:
            self.system.attempt[self.subtask].run(identity)
        elif message == LOST:
            self.system.attempt[self.subtask].lost(identity, "it was killed")
        elif message == ENDED:
            self.system.attempt[self.subtask].end_of_input(identity)
        elif message == FINISHED:
            self.system.attempt[self.subtask].finish(identity)
        elif message == FAILED:
            self.system.attempt[self.subtask].fail(identity, "it cannot go on", False)
        elif message == FATAL:
            self.system.attempt[self.subtask].fail(identity, "no attempt can go on", True)
        else:
            self.deliver_numbered(identity, message - FATAL)

    def deliver_numbered(self, identity: int, number: int) -> None:
        checkpoints = self.system.checkpoints
        if number <= checkpoints:
            self.acknowledge(identity, number, False)
        elif number <= 2 * checkpoints:
            self.acknowledge(identity, number - checkpoints, True)
        elif number <= 3 * checkpoints:
            self.deliver_decline(identity, number - 2 * checkpoints)
        else:
            place = number - 3 * checkpoints - 1
            coordinator = place // self.system.speeches
            said = place % self.system.speeches + 1
            self.system.attempt[self.subtask].operator_event(identity, coordinator, said)

    def acknowledge(self, identity: int, checkpoint: int, is_final: bool) -> None:
        part = self.part(checkpoint)
        self.system.attempt[self.subtask].acknowledge(identity, checkpoint, is_final, part)

    def part(self, checkpoint: int) -> int:
        """Return what stands for the subtask's state in a checkpoint: alike for all subtasks, so
        that they are interchangeable.
        """
        return checkpoint + 1

    def deliver_decline(self, identity: int, checkpoint: int) -> None:
        if (
            self.system.attempt[self.subtask].identity == identity
            and self.system.attempt[self.subtask].is_running()
            and self.system.checkpoint.state == PENDING
            and self.system.checkpoint.number == checkpoint
        ):
            self.system.store.expect_failure()
        self.system.attempt[self.subtask].decline(identity, checkpoint, "it has no snapshot")

    def handle_message(self) -> None:
        message = self.down.pop()
        if message == 0:
            self.system.task[self.subtask].finish()
        elif message <= self.system.checkpoints:
            self.system.task[self.subtask].barrier(message)
        else:
            rest = message - self.system.checkpoints - 1
            event = rest % self.system.event + 1
            number = rest // self.system.event % self.system.numbers + 1
            coordinator = rest // self.system.event // self.system.numbers
            self.system.task[self.subtask].event(coordinator, number, event)

    def report_slow_start(self) -> None:
        self.is_unwanted = True
        self.system.attempt[self.subtask].expire_start(
            self.system.attempt[self.subtask].number, "it takes too long to start"
        )

    def drop_event(self) -> None:
        rest = self.down.pop() - self.system.checkpoints - 1
        number = rest // self.system.event % self.system.numbers + 1
        coordinator = rest // self.system.event // self.system.numbers
        self.system.gateway[coordinator, self.subtask].lose(
            self.system.attempt[self.subtask].number, number, "an event was lost"
        )

    # port `scheduler` of the attempt

    def deploy(self, attempt: int) -> None:
        self.check_attempt(attempt)
        self.is_wanted = True
        self.is_released = False
        self.system.restarter.due[self.subtask] = False

    def starting(self, attempt: int) -> None:
        self.check_attempt(attempt)

    def check_attempt(self, attempt: int) -> None:
        assert attempt == self.system.attempt[self.subtask].number, (
            "a process is started for the present attempt"
        )

    def release(self, identity: int) -> None:
        assert not self.goes_down_for_good(), "no process begins again in a job that goes down"
        if identity == self.identity:
            self.is_released = self.state == HERE
            self.ended()
        self.is_unwanted = False

    def goes_down_for_good(self) -> bool:
        return self.system.lifecycle.state == FAILING or self.system.lifecycle.state == CANCELING

    def end(self, identity: int) -> None:
        assert self.system.lifecycle.state != RESTARTING, (
            "the processes of a job that starts again may begin again"
        )
        if identity == self.identity:
            self.ended()
        self.is_unwanted = False

    def metrics(self, counters: int) -> None:
        assert counters == CURRENT, "figures are taken from the process that speaks"
        self.is_measured = False

    def refuse(self, identity: int) -> None:
        assert identity > 0, "a process that is refused has connected"
        if identity == self.identity:
            self.ended()
        self.is_unwanted = False

    def dismiss(self, identity: int) -> None:
        assert identity > 0, "a process that is told to leave has connected"
        if identity == self.identity and self.state == HERE:
            self.system.task[self.subtask].finish()
        self.is_unwanted = False
