"""What stands around the gateways and snapshots where checkpoints overlap: subtasks that fail, wires,
futures that complete in any order, and one machine for each checkpoint, with its record of what was
sent before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import (
    STAY,
    Array,
    Bool,
    Channel,
    Fifo,
    Ignore,
    Int,
    Machine,
    Opaque,
    Port,
    Row,
    Trigger,
    output,
)
from epochgate.models.snapshot import IDLE
from epochgate.models.surroundings.sends import Sends

if TYPE_CHECKING:
    from epochgate.models.overlapping import Overlapping

UP, DOWN = "up", "down"
UNUSED, ASKED, PENDING, COMPLETED, ABORTED = "unused", "asked", "pending", "completed", "aborted"


class WirePort(Port):
    """What is told to a subtask."""

    def event(self, coordinator: int, number: int, event: Opaque) -> None: ...


class FuturePort(Port):
    """Who is asked for a snapshot."""

    def checkpoint(self, checkpoint: int, lane: int) -> None: ...


class Subtask(Machine):
    """The attempt of a subtask, as the gateways know it."""

    INDEX = ("subtask",)
    STATES = (UP, DOWN)
    INITIAL = UP

    system: Overlapping
    subtask: int
    task: WirePort = output(WirePort)

    number: int = Int("attempts")

    fail: Trigger
    fault: Trigger
    come_back: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("fail",      UP,   DOWN, "may_fail", "count_failure, go_down", "it fails"),
        Row("fault",     UP,   DOWN, None,       "go_down",                "it missed an event"),
        Row("come_back", DOWN, UP,   None,       "renew",                  "its next attempt begins"),
    )
    # fmt: on

    def is_reachable(self) -> bool:
        return self.state == UP

    def may_fail(self) -> bool:
        return self.system.failures.has_more()

    def count_failure(self) -> None:
        self.system.failures.count += 1

    def go_down(self) -> None:
        for before in range(self.system.checkpoints):
            self.system.round[before].doom()
        self.system.gateway[0, self.subtask].disconnect()

    def renew(self) -> None:
        self.number += 1
        self.system.gateway[0, self.subtask].renew(self.number)
        self.system.wire[self.subtask].begin_anew()
        self.system.sender[0, self.subtask].sent = 0


class Wire(Machine):
    """The wire to a subtask, and what the subtask makes of it: barriers, and above these events with
    their numbers.
    """

    INDEX = ("subtask",)
    STATES = ("open",)
    INITIAL = "open"

    system: Overlapping
    subtask: int

    down: Fifo[int] = Channel("item", "length")
    handled: int = Int("events")

    tell: Trigger
    lose: Trigger
    confirm_again: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("tell",          "open", STAY, "has_next",              "handle_next",              "the oldest message arrives"),
        Row("lose",          "open", STAY, "is_event_and_may_fail", "count_failure, drop_next", "an event gets lost, which is noticed"),
        Row("confirm_again", "open", STAY, None,                    "repeat_confirmations",     "what was confirmed before is confirmed again"),
    )
    # fmt: on

    def has_next(self) -> bool:
        return self.system.attempt[self.subtask].is_reachable() and not self.down.empty()

    def is_event_and_may_fail(self) -> bool:
        return (
            self.has_next()
            and self.down.head() > self.system.checkpoints
            and self.system.failures.has_more()
        )

    def count_failure(self) -> None:
        self.system.failures.count += 1

    def handle_next(self) -> None:
        item = self.down.pop()
        if item <= self.system.checkpoints:
            self.system.round[item - 1].pass_barrier(self.subtask)
        else:
            self.handle(item - self.system.checkpoints - 1)

    def handle(self, place: int) -> None:
        number = place // self.system.events + 1
        event = place % self.system.events + 1
        assert event == self.handled + 1, "I3: each event is handled once, in its order"
        self.handled = event
        attempt = self.system.attempt[self.subtask].number
        self.system.gateway[0, self.subtask].confirm(attempt, number)

    def drop_next(self) -> None:
        place = self.down.pop() - self.system.checkpoints - 1
        attempt = self.system.attempt[self.subtask].number
        self.system.gateway[0, self.subtask].lose(attempt, place // self.system.events + 1)

    def repeat_confirmations(self) -> None:
        attempt = self.system.attempt[self.subtask].number
        for before in range(self.system.events):
            if before < self.system.gateway[0, self.subtask].confirmed:
                self.system.gateway[0, self.subtask].confirm(attempt, before + 1)
            if attempt > 0:
                self.system.gateway[0, self.subtask].confirm(attempt - 1, before + 1)
                self.system.gateway[0, self.subtask].lose(attempt - 1, before + 1)

    def begin_anew(self) -> None:
        self.down.clear()
        self.handled = 0

    # port `task` of the attempt

    def event(self, coordinator: int, number: int, event: int) -> None:
        self.down.push(self.system.checkpoints + (number - 1) * self.system.events + event)


class Sender(Sends):
    """The coordinator's sends to one subtask, and the futures that it holds for them."""

    STATES = ("able",)
    INITIAL = "able"

    system: Overlapping

    send: Trigger
    send_late: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("send",      "able", STAY, "has_more",     "count, post", "the coordinator has an event for this subtask"),
        Row("send_late", "able", STAY, "has_replaced", "post_late",   "it still has the gateway to an attempt that was replaced"),
    )
    # fmt: on

    def has_replaced(self) -> bool:
        return self.system.attempt[self.subtask].number > 0

    def post_late(self) -> None:
        self.undecided += 1
        self.system.gateway[self.coordinator, self.subtask].send(
            self.system.attempt[self.subtask].number - 1, 1
        )


class Coordinator(Machine):
    """What the snapshots ask for the coordinator: its port `user`."""

    INDEX = ("coordinator",)

    system: Overlapping
    coordinator: int
    user: FuturePort = output(FuturePort)


class Futures(Machine):
    """Hands the coordinator's futures out: port `user` of the holder."""

    INDEX = ("coordinator",)

    system: Overlapping
    coordinator: int

    def checkpoint(self, checkpoint: int, lane: int) -> None:
        self.system.future[self.coordinator, lane].checkpoint = checkpoint


class Future(Machine):
    """The future of the snapshot in one lane, and where its state goes."""

    INDEX = ("coordinator", "lane")
    STATES = ("here",)
    INITIAL = "here"

    system: Overlapping
    coordinator: int
    lane: int

    checkpoint: int = Int("checkpoints")
    """The checkpoint whose snapshot is wanted; 0 for none."""

    complete: Trigger
    fail: Trigger
    answer_late: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("complete",    "here", STAY, "is_wanted",              "remember, succeed",     "the moment of the coordinator's snapshot, perhaps late"),
        Row("fail",        "here", STAY, "is_wanted and may_fail", "count_failure, report", "there is no snapshot"),
        Row("answer_late", "here", STAY, None,                     "answer_all_again",      "the futures of earlier checkpoints complete after all, and fail too"),
    )
    # fmt: on

    def is_wanted(self) -> bool:
        return self.checkpoint > 0

    def may_fail(self) -> bool:
        return self.system.failures.has_more()

    def count_failure(self) -> None:
        self.system.failures.count += 1

    def remember(self) -> None:
        for s in range(self.system.subtasks):
            self.system.round[self.checkpoint - 1].note_sent(s)

    def succeed(self) -> None:
        checkpoint = self.checkpoint
        self.checkpoint = 0
        self.system.snapshot[self.coordinator, self.lane].succeed(checkpoint, 0)

    def report(self) -> None:
        checkpoint = self.checkpoint
        self.checkpoint = 0
        self.system.snapshot[self.coordinator, self.lane].fail(checkpoint)

    def answer_all_again(self) -> None:
        for before in range(self.system.checkpoints):
            if not self.system.snapshot[self.coordinator, self.lane].is_asked_for(before + 1):
                self.system.snapshot[self.coordinator, self.lane].succeed(before + 1, 0)
                self.system.snapshot[self.coordinator, self.lane].fail(before + 1)

    # port `results` of the snapshot

    def keep(self, checkpoint: int, state: int) -> None:
        pass


class Round(Machine):
    """One checkpoint; the next begins before this one is over."""

    INDEX = ("round",)
    STATES = (UNUSED, ASKED, PENDING, COMPLETED, ABORTED)
    INITIAL = UNUSED
    TERMINAL = (COMPLETED, ABORTED)

    system: Overlapping
    round: int

    sent: list[int] = Array(Int("events"), "subtasks")
    """How far the coordinator had sent at its snapshot."""
    has_passed: list[bool] = Array(Bool(), "subtasks")
    is_doomed: bool = Bool()
    """A subtask has failed, and the notice that ends the checkpoint is on its way."""

    begin: Trigger
    be_ready: Trigger
    be_failed: Trigger
    pass_barrier: Trigger
    give_up: Trigger
    hear_notice: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("begin",           UNUSED,           ASKED,     "may_begin",     "ask",                           "another checkpoint is wanted"),
        Row("be_ready",        ASKED,            PENDING,   None,            "put_barriers",                  "the coordinator's part is there"),
        Row("be_failed",       ASKED,            ABORTED,   None,            "reopen",                        "the coordinator has no part"),
        Row("pass_barrier",    PENDING,          STAY,      "not is_last",   "check, reopen_one",             "other subtasks have not passed it"),
        Row("pass_barrier",    PENDING,          COMPLETED, "is_last",       "check, reopen_one, forget",     "every subtask has passed it"),
        Ignore("pass_barrier", ABORTED,                     None,                                             "the checkpoint is over"),
        Row("give_up",         (ASKED, PENDING), ABORTED,   "may_fail",      "count_failure, cancel, reopen", "it takes too long"),
        Row("hear_notice",     (ASKED, PENDING), ABORTED,   "is_called_off", "cancel, reopen",                "a subtask has failed, and may have begun again since"),
    )
    # fmt: on

    def lane(self) -> int:
        return self.round % self.system.overlap

    def may_begin(self) -> bool:
        return (
            (self.round == 0 or self.system.round[self.round - 1].state != UNUSED)
            and self.system.snapshot[0, self.lane()].state == IDLE
            and all(
                self.system.attempt[s].is_reachable() and self.system.gateway[0, s].has_room()
                for s in range(self.system.subtasks)
            )
        )

    def is_last(self, subtask: int) -> bool:
        return all(self.has_passed[s] or s == subtask for s in range(self.system.subtasks))

    def may_fail(self) -> bool:
        return self.system.failures.has_more()

    def count_failure(self) -> None:
        self.system.failures.count += 1

    def is_called_off(self) -> bool:
        return self.is_doomed

    def doom(self) -> None:
        self.is_doomed = self.state == ASKED or self.state == PENDING

    def note_sent(self, subtask: int) -> None:
        if self.state == ASKED:
            self.sent[subtask] = self.system.sender[0, subtask].sent

    def ask(self) -> None:
        self.system.snapshot[0, self.lane()].ask(self.round + 1)

    def put_barriers(self) -> None:
        for s in range(self.system.subtasks):
            if not self.is_doomed:
                self.system.wire[s].down.push(self.round + 1)

    def check(self, subtask: int) -> None:
        assert self.sent[subtask] <= self.system.wire[subtask].handled, (
            "I1: what was sent before the coordinator's snapshot is in the subtask's"
        )
        assert self.system.wire[subtask].handled <= self.sent[subtask], (
            "I2: what was sent after the coordinator's snapshot is not in the subtask's"
        )
        self.has_passed[subtask] = True

    def reopen_one(self, subtask: int) -> None:
        self.system.gateway[0, subtask].reopen(self.round + 1)

    def cancel(self) -> None:
        self.system.snapshot[0, self.lane()].cancel(self.round + 1)

    def reopen(self) -> None:
        for s in range(self.system.subtasks):
            self.system.gateway[0, s].reopen(self.round + 1)
        self.forget()

    def forget(self) -> None:
        self.is_doomed = False
        for s in range(self.system.subtasks):
            self.sent[s] = 0
            self.has_passed[s] = False


class Rounds(Machine):
    """Whom the snapshots tell that they are ready, or have failed."""

    STATES = ("counting",)
    INITIAL = "counting"

    system: Overlapping

    coordinator_ready: Trigger
    coordinator_failed: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("coordinator_ready",  "counting", STAY, None, "pass_on_ready",  "the coordinator's part is there"),
        Row("coordinator_failed", "counting", STAY, None, "pass_on_failed", "the coordinator has no part"),
    )
    # fmt: on

    def pass_on_ready(self, checkpoint: int) -> None:
        self.system.round[checkpoint - 1].be_ready()

    def pass_on_failed(self, checkpoint: int) -> None:
        self.system.round[checkpoint - 1].be_failed()


class Failures(Machine):
    """How many there were."""

    system: Overlapping

    count: int = Int("F")

    def has_more(self) -> bool:
        return self.count < self.system.F
