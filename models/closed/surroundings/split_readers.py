"""The surroundings of the assignment of splits: the readers with their wires, and the enumerator's
dealings with each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import ANY, STAY, Array, Bool, Channel, Fifo, Int, Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.split_assignment import TOLD

if TYPE_CHECKING:
    from epochgate.models.closed.sources import Sources

STARTING, UP, DOWN = "starting", "up", "down"
REGISTER, REQUEST = 0, 1
CURRENT, OUTDATED = 1, 0
"""Whose words they are: those of the reader that is there, or of one before it."""


class Reader(Environment):
    """The process that reads the splits of one subtask, with the wires to and from it: port
    `readers`.

    `down` holds splits from 1 to S, S + 1 for the end, and above that barriers.
    """

    INDEX = ("subtask",)
    STATES = (STARTING, UP, DOWN)
    INITIAL = STARTING

    system: Sources
    subtask: int

    attempt: int = Int("attempts")
    down: Fifo[int] = Channel("down", "down_length")
    up: Fifo[int] = Channel("up", "up_length", names="REGISTER, REQUEST")
    has_asked: bool = Bool()
    is_told: bool = Bool()
    """It knows that there are no more splits."""
    holds: list[bool] = Array(Bool(), "S")
    """The splits that this reader's history has: its state."""
    snapshot_holds: list[bool] = Array(Bool(), "S")
    completed_holds: list[bool] = Array(Bool(), "S")

    begin: Trigger
    hear: Trigger
    hear_again: Trigger
    hear_late: Trigger
    ask: Trigger
    tell: Trigger
    fail: Trigger
    reset: Trigger
    restart: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("begin",      STARTING,       UP,       None,
            "get_ready",                     "its state is restored"),
        Row("hear",       UP,             STAY,     "has_said_something",
            "deliver_message",               "the oldest message arrives at the driver"),
        Row("hear_again", UP,             STAY,     "has_joined",
            "register_again",                "it registers a second time"),
        Row("hear_late",  ANY,            STAY,     "has_predecessor",
            "repeat_everything",             "whatever an earlier attempt could say arrives after all"),
        Row("ask",        UP,             STAY,     "may_ask",
            "ask_for_more",                  "it could read another split"),
        Row("tell",       UP,             STAY,     "is_told_something",
            "handle_message",                "the oldest message arrives at the reader"),
        Row("fail",       (STARTING, UP), DOWN,     "may_fail",
            "spend_failure, vanish, report", "the process dies"),
        Row("reset",      DOWN,           STARTING, "is_store_settled",
            "go_back, reset_assignment",     "the subtask goes back to the last completed checkpoint"),
        Row("restart",    ANY,            STARTING, None,
            "vanish, go_back",               "everything goes back"),
    )
    # fmt: on

    def has_said_something(self) -> bool:
        return not self.up.empty()

    def has_joined(self) -> bool:
        return self.system.assignment[self.subtask].is_there(self.attempt)

    def has_predecessor(self) -> bool:
        return self.system.assignment[self.subtask].attempts > 0

    def may_ask(self) -> bool:
        return not self.has_asked and not self.is_told and self.up.size() < self.system.up_length

    def is_told_something(self) -> bool:
        return not self.down.empty()

    def may_fail(self) -> bool:
        return self.system.job.failures < self.system.F

    def is_store_settled(self) -> bool:
        return not self.system.job.is_storing()

    def has_ended(self) -> bool:
        return self.state == UP and self.is_told and self.down.empty()

    def get_ready(self) -> None:
        self.up.push(REGISTER)
        self.system.assignment[self.subtask].ready(self.attempt)

    def deliver_message(self) -> None:
        message = self.up.pop()
        if message == REGISTER:
            self.system.assignment[self.subtask].register(self.attempt)
        else:
            self.system.dealer[self.subtask].is_spoken_to = True
            self.system.assignment[self.subtask].speak(self.attempt, CURRENT)
            self.system.assignment[self.subtask].request(self.attempt)

    def register_again(self) -> None:
        self.system.assignment[self.subtask].register(self.attempt)

    def repeat_everything(self) -> None:
        for a in range(self.system.attempts):
            if a < self.attempt and a < self.system.assignment[self.subtask].attempts:
                self.system.assignment[self.subtask].register(a)
                self.system.assignment[self.subtask].request(a)
                self.system.assignment[self.subtask].speak(a, OUTDATED)
                self.system.assignment[self.subtask].lost(a)

    def ask_for_more(self) -> None:
        self.has_asked = True
        self.up.push(REQUEST)

    def handle_message(self) -> None:
        message = self.down.pop()
        if message <= self.system.S:
            self.has_asked = False
            assert not self.is_told, "a reader that was told of the end is given no more"
            for s in range(self.system.S):
                if s == message - 1:
                    assert not self.holds[s], "a reader is given a split once"
                    self.holds[s] = True
        elif message == self.system.S + 1:
            self.is_told = True
        else:
            for s in range(self.system.S):
                self.snapshot_holds[s] = self.holds[s]
            self.system.job.acknowledge(message - self.system.S - 1)

    def spend_failure(self) -> None:
        self.system.job.count_failure()

    def vanish(self) -> None:
        self.down.clear()
        self.up.clear()
        self.has_asked = False
        self.is_told = False
        for s in range(self.system.S):
            self.snapshot_holds[s] = self.snapshot_holds[s] and self.system.job.is_storing()

    def report(self) -> None:
        self.system.job.subtask_failed()
        self.system.assignment[self.subtask].lost(self.attempt)

    def go_back(self) -> None:
        self.attempt += 1
        for s in range(self.system.S):
            self.holds[s] = self.completed_holds[s]

    def reset_assignment(self) -> None:
        self.system.assignment[self.subtask].reset(self.system.job.completed)

    def settle(self, is_completed: bool) -> None:
        """A checkpoint is over."""
        for s in range(self.system.S):
            if is_completed:
                self.completed_holds[s] = self.snapshot_holds[s]
            self.snapshot_holds[s] = False

    def put_barrier(self, checkpoint: int) -> None:
        self.down.push(self.system.S + 1 + checkpoint)

    def withhold_barrier(self, checkpoint: int) -> None:
        """The enumerator has no snapshot of the checkpoint: its barrier is never sent."""
        for message in self.down.take_all():
            if message != self.system.S + 1 + checkpoint:
                self.down.push(message)

    # port `readers`

    def send(self, attempt: int, split: int) -> None:
        assert self.state == UP, "a split goes to a reader that is up"
        assert attempt == self.attempt, "a split goes to the present attempt"
        self.down.push(split)

    def tell_no_more(self, attempt: int) -> None:
        assert self.state == UP, "the end is told to a reader that is up"
        assert attempt == self.attempt, "the end is told to the present attempt"
        self.down.push(self.system.S + 1)


class Dealer(Environment):
    """The enumerator's dealings with one subtask: port `enumerator`."""

    INDEX = ("subtask",)
    STATES = ("up",)
    INITIAL = "up"

    system: Sources
    subtask: int

    is_waiting: bool = Bool()
    """The reader has asked, and has no answer."""
    has_reader: bool = Bool()
    """As it was told."""
    is_planned: bool = Bool()
    """The next reader is given a split, or told of the end, when it is announced."""
    is_spoken_to: bool = Bool()
    """What the reader says is to be heard in this step; never so between two steps."""

    deal: Trigger
    end: Trigger
    push: Trigger
    plan: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("deal", "up", STAY, "is_asked and has_splits",
            "stop_waiting, assign_next",  "a reader that asks is given a split"),
        Row("end",  "up", STAY, "is_asked and not has_splits",
            "signal_end",                 "there is none left"),
        Row("push", "up", STAY, "may_push and is_open",
            "spend_push, decide_unasked", "an enumerator need not wait until it is asked"),
        Row("plan", "up", STAY, "may_push and not has_plan",
            "spend_push, plan_ahead",     "an enumerator may decide for a reader when that is announced"),
    )
    # fmt: on

    def is_asked(self) -> bool:
        return self.is_waiting

    def has_splits(self) -> bool:
        return self.system.job.has_unassigned()

    def may_push(self) -> bool:
        return self.system.job.pushes < self.system.P

    def has_plan(self) -> bool:
        return self.is_planned

    def is_open(self) -> bool:
        return not self.has_splits() or self.system.assignment[self.subtask].state != TOLD

    def stop_waiting(self) -> None:
        self.is_waiting = False

    def assign_next(self) -> None:
        self.system.assignment[self.subtask].assign(self.system.job.take_next())

    def signal_end(self) -> None:
        self.is_waiting = False
        self.system.assignment[self.subtask].signal()

    def spend_push(self) -> None:
        self.system.job.count_push()

    def decide_unasked(self) -> None:
        if self.has_splits():
            self.assign_next()
        else:
            self.signal_end()

    def plan_ahead(self) -> None:
        self.is_planned = True

    def forget(self) -> None:
        """Another enumerator takes over."""
        self.is_waiting = False
        self.is_planned = False

    # port `enumerator`

    def joined(self, attempt: int) -> None:
        assert not self.has_reader, "a reader joins once"
        self.has_reader = True

    def left(self, attempt: int) -> None:
        self.has_reader = False
        self.is_waiting = False

    def announce(self) -> None:
        self.system.job.tell_of_reader()
        if self.is_planned:
            self.is_planned = False
            self.decide_unasked()
        self.system.assignment[self.subtask].announced()

    def asked(self, attempt: int) -> None:
        assert self.system.reader[self.subtask].state == UP, "the reader that asks is there"
        assert self.system.reader[self.subtask].attempt == attempt, "it is the present one"
        self.is_waiting = True

    def said(self, attempt: int, event: int) -> None:
        assert self.system.reader[self.subtask].attempt == attempt, "it is the present one"
        assert event == CURRENT, "what is said is heard from the reader that is there"
        self.is_spoken_to = False

    def returned(self, split: int) -> None:
        self.system.job.take_back(split)

    def unsent(self) -> None:
        self.system.job.refuse_checkpoint()

    def listed(self, split: int) -> None:
        assert split > 0, "what is listed is a split"
        assert not self.system.job.is_to_assign(split), "what is listed is assigned"
        self.system.job.to_list -= 1
