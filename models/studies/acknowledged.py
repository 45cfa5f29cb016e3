"""The design that was proposed first: a marker behind the snapshot, and acknowledged events.

What a coordinator sends goes through its outbox. When its snapshot is complete it puts a marker
there: what is behind the marker stays in the outbox until all subtasks have finished the
checkpoint. Its part of the checkpoint is there when the marker has come out and all events before
it are acknowledged, so that each of them is handled before any barrier is sent::

    outbox        a  b  marker  c  d
    wire          a  b |                      c  d
    subtask         a  b   [snapshot N]            c  d

Subtasks send events to the coordinator too. Its acknowledgements of these go through the same
outbox, which gives the operators' guarantee: when an acknowledgement arrives before the operator's
snapshot, the event is in the coordinator's checkpoint.

Source: the design in Apache Flink's ticket for exactly-once operator events; what happens when a
subtask fails is not said there, so here it is restored at once and the checkpoint is aborted. One
coordinator is enough: each has an outbox of its own. The price is that the fastest subtask waits
for the slowest.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import ANY, STAY, Array, Bool, Channel, Fifo, Ignore, Int, Machine, Row, Trigger
from epochgate.fsm.closed import ClosedSystem, Step, sometimes, terminal
from epochgate.fsm.system import machines

OPEN, MARKED = "open", "marked"
IDLE, TRIGGERED, SETTLING, READY, INJECTED = "idle", "triggered", "settling", "ready", "injected"


class Outbox(Machine):
    """The messages of the coordinator, in its order: events, by subtask and number, then
    acknowledgements, then the marker.
    """

    STATES = (OPEN, MARKED)
    INITIAL = OPEN

    system: Acknowledged

    waiting: Fifo[int] = Channel("outgoing", "outbox_length")

    put: Trigger
    release: Trigger
    reopen: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("put",     ANY,    STAY,   None,
            "keep",          "the coordinator sends something"),
        Row("release", OPEN,   STAY,   "has_item and not has_marker",
            "put_on_wire",   "no snapshot lies between"),
        Row("release", OPEN,   MARKED, "has_item and has_marker",
            "take_marker",   "the snapshot: what follows waits"),
        Row("reopen",  MARKED, OPEN,   None,
            None,            "the checkpoint is over"),
        Row("reopen",  OPEN,   STAY,   None,
            "remove_marker", "it is over before the marker came out"),
    )
    # fmt: on

    def has_item(self) -> bool:
        return not self.waiting.empty()

    def has_marker(self) -> bool:
        return not self.waiting.empty() and self.waiting.head() == self.system.marker

    def keep(self, item: int) -> None:
        self.waiting.push(item)

    def put_on_wire(self) -> None:
        item = self.waiting.pop()
        if item < self.system.events:
            self.system.subtask[item // self.system.E].wire.push(item % self.system.E)
        else:
            subtask = item - self.system.events
            self.system.subtask[subtask].wire.push(self.system.E)

    def take_marker(self) -> None:
        self.waiting.pop()
        self.system.checkpoint.marked()

    def remove_marker(self) -> None:
        for item in self.waiting.take_all():
            if item != self.system.marker:
                self.waiting.push(item)

    def drop(self, subtask: int) -> None:
        for item in self.waiting.take_all():
            if item == self.system.marker or not self.is_for(item, subtask):
                self.waiting.push(item)

    def is_for(self, item: int, subtask: int) -> bool:
        return (
            item // self.system.E == subtask
            if item < self.system.events
            else item - self.system.events == subtask
        )


class Sender(Machine):
    """The coordinator's side of one subtask: what it sends to it, and what it hears from it."""

    INDEX = ("subtask",)
    STATES = ("sending",)
    INITIAL = "sending"

    system: Acknowledged
    subtask: int

    sent: int = Int("E")
    snapshot: int = Int("E")
    completed: int = Int("E")
    heard: int = Int("U")
    heard_snapshot: int = Int("U")
    heard_completed: int = Int("U")

    send: Trigger
    hear: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("send", "sending", STAY, "has_more",
            "post",                     "the coordinator has an event for this subtask"),
        Row("hear", "sending", STAY, "has_report",
            "take_report, acknowledge", "an event of the subtask arrives"),
    )
    # fmt: on

    def has_more(self) -> bool:
        return self.sent < self.system.E

    def has_report(self) -> bool:
        return self.system.subtask[self.subtask].reports > 0

    def post(self) -> None:
        self.system.outbox.put(self.subtask * self.system.E + self.sent)
        self.sent += 1

    def take_report(self) -> None:
        self.system.subtask[self.subtask].reports -= 1
        self.heard += 1

    def acknowledge(self) -> None:
        self.system.outbox.put(self.system.events + self.subtask)

    def rewind(self) -> None:
        self.sent = self.completed
        self.heard = self.heard_completed


class Subtask(Machine):
    """A receiver: its wire holds events, by their number, E for an acknowledgement, and barriers.

    It gets its barrier on its wire if it is a source, else behind the records of the one before it.
    """

    INDEX = ("subtask",)
    STATES = ("running",)
    INITIAL = "running"

    system: Acknowledged
    subtask: int

    wire: Fifo[int] = Channel("message", "wire")
    stream: Fifo[int] = Channel("K", "K")
    handled: int = Int("E")
    snapshot: int = Int("E")
    completed: int = Int("E")
    reported: int = Int("U")
    reports: int = Int("U")
    """Events on their way to the coordinator."""
    acknowledged: int = Int("U")
    """How many of its own events it knows to be with the coordinator."""
    acknowledged_snapshot: int = Int("U")

    deliver: Trigger
    align: Trigger
    report: Trigger
    fail: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("deliver", "running", STAY, "has_message",
            "take_message",          "the oldest message arrives"),
        Row("align",   "running", STAY, "has_barrier",
            "take_streamed_barrier", "the barrier arrives behind the records before it"),
        Row("report",  "running", STAY, "has_more",
            "send_report",           "an operator has an event for the coordinator"),
        Row("fail",    "running", STAY, "may_fail",
            "spend, restore",        "it is lost, and goes back to the last checkpoint"),
    )
    # fmt: on

    def has_message(self) -> bool:
        return not self.wire.empty()

    def has_barrier(self) -> bool:
        return not self.stream.empty()

    def has_more(self) -> bool:
        return self.reported < self.system.U

    def may_fail(self) -> bool:
        return self.system.checkpoint.failures < self.system.F

    def take_message(self) -> None:
        message = self.wire.pop()
        if message < self.system.E:
            assert message == self.handled, "I3: events arrive once and in order"
            self.handled += 1
            self.system.checkpoint.proceed_if_settled()
        elif message == self.system.E:
            self.acknowledged += 1
        else:
            self.take_snapshot(message - self.system.E)

    def take_streamed_barrier(self) -> None:
        checkpoint = self.stream.pop()
        self.take_snapshot(checkpoint)

    def take_snapshot(self, checkpoint: int) -> None:
        self.snapshot = self.handled
        self.acknowledged_snapshot = self.acknowledged
        for s in range(self.system.N):
            if s == self.subtask + 1 and s >= self.system.sources:
                self.system.subtask[s].stream.push(checkpoint)
        self.system.checkpoint.acknowledge(self.subtask, checkpoint)

    def send_report(self) -> None:
        self.reported += 1
        self.reports += 1

    def spend(self) -> None:
        self.system.checkpoint.failures += 1

    def restore(self) -> None:
        self.system.checkpoint.abort_if_running()
        self.wire.clear()
        self.stream.clear()
        self.reports = 0
        self.system.outbox.drop(self.subtask)
        self.system.sender[self.subtask].rewind()
        self.handled = self.completed
        self.reported = self.system.sender[self.subtask].heard
        self.acknowledged = self.reported


class Checkpoint(Machine):
    """The one checkpoint at a time."""

    STATES: ClassVar[tuple[str, ...]] = (IDLE, TRIGGERED, SETTLING, READY, INJECTED)
    INITIAL = IDLE

    system: Acknowledged

    number: int = Int("K")
    last: int = Int("K")
    failures: int = Int("F")
    has_marker: bool = Bool()
    """The snapshot is there, and its marker in the outbox or out of it."""
    has_acknowledged: list[bool] = Array(Bool(), "N")

    begin: Trigger
    future: Trigger
    marked: Trigger
    settled: Trigger
    inject: Trigger
    acknowledge: Trigger
    complete: Trigger
    abort: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("begin",          IDLE,                                   TRIGGERED, "may_begin",
            "count",                     "the interval is over"),
        Row("future",         TRIGGERED,                              STAY,      "not has_taken",
            "take_snapshot, put_marker", "the coordinator's future completes"),
        Row("marked",         TRIGGERED,                              SETTLING,  "has_to_wait",
            None,                        "the marker came out, with events before it on their way"),
        Row("marked",         TRIGGERED,                              READY,     "not has_to_wait",
            None,                        "the marker came out, and all before it has arrived"),
        Row("settled",        SETTLING,                               READY,     None,
            None,                        "all events before the marker are acknowledged"),
        Row("inject",         READY,                                  INJECTED,  None,
            "put_barriers",              "the coordinator's part is there"),
        Row("acknowledge",    INJECTED,                               STAY,      "is_current",
            "note, complete_if_all",     "a subtask has its part"),
        Ignore("acknowledge", ANY,                                               "not is_current",
                                         "it belongs to a checkpoint that is over"),
        Row("complete",       INJECTED,                               IDLE,      None,
            "compare, clear, reopen",    "all subtasks have finished it"),

        Row("abort",          (TRIGGERED, SETTLING, READY, INJECTED), IDLE,      None,
            "clear, reopen",             "it takes too long, or something failed"),
    )
    # fmt: on

    def may_begin(self) -> bool:
        return self.number < self.system.K

    def has_taken(self) -> bool:
        return self.has_marker

    def has_to_wait(self) -> bool:
        return any(
            self.system.subtask[s].handled < self.system.sender[s].snapshot
            for s in range(self.system.N)
        )

    def is_current(self, subtask: int, checkpoint: int) -> bool:
        return self.state == INJECTED and checkpoint == self.number

    def count(self) -> None:
        self.number += 1

    def take_snapshot(self) -> None:
        self.has_marker = True
        for s in range(self.system.N):
            self.system.sender[s].snapshot = self.system.sender[s].sent
            self.system.sender[s].heard_snapshot = self.system.sender[s].heard

    def put_marker(self) -> None:
        self.system.outbox.put(self.system.marker)

    def proceed_if_settled(self) -> None:
        if self.state == SETTLING and not self.has_to_wait():
            self.settled()

    def put_barriers(self) -> None:
        for s in range(self.system.N):
            if s < self.system.sources:
                self.system.subtask[s].wire.push(self.system.E + self.number)

    def note(self, subtask: int) -> None:
        self.has_acknowledged[subtask] = True

    def complete_if_all(self) -> None:
        if all(self.has_acknowledged[s] for s in range(self.system.N)):
            self.complete()

    def compare(self) -> None:
        self.last = self.number
        for s in range(self.system.N):
            self.compare_events(s)
            assert (
                self.system.subtask[s].acknowledged_snapshot <= self.system.sender[s].heard_snapshot
            ), "what was acknowledged before the operator's snapshot is in the coordinator's"

    def compare_events(self, s: int) -> None:
        assert self.system.sender[s].snapshot <= self.system.subtask[s].snapshot, (
            "I1: what was sent before the coordinator's snapshot is in the subtask's"
        )
        assert self.system.subtask[s].snapshot <= self.system.sender[s].snapshot, (
            "I2: what was sent after the coordinator's snapshot is not in the subtask's"
        )
        self.system.sender[s].completed = self.system.sender[s].snapshot
        self.system.subtask[s].completed = self.system.subtask[s].snapshot
        self.system.sender[s].heard_completed = self.system.sender[s].heard_snapshot

    def clear(self) -> None:
        self.has_marker = False
        for s in range(self.system.N):
            self.has_acknowledged[s] = False
            self.system.sender[s].snapshot = 0
            self.system.sender[s].heard_snapshot = 0
            self.system.subtask[s].snapshot = 0
            self.system.subtask[s].acknowledged_snapshot = 0

    def reopen(self) -> None:
        self.system.outbox.reopen()

    def abort_if_running(self) -> None:
        if self.state != IDLE:
            self.abort()


class Acknowledged(ClosedSystem):
    """Acknowledged operator events, the design of FLINK-16986."""

    IS_SEPARATED = False  # a design that does not run, written before effects
    INDEX_SETS: ClassVar[dict[str, str]] = {"subtask": "N"}
    CONSTANTS: ClassVar[dict[str, int]] = {
        "N": 2,
        "sources": 1,
        "K": 1,
        "E": 1,
        "U": 1,
        "F": 1,
    }
    DERIVED: ClassVar[dict[str, str]] = {
        "events": "N * E",
        "marker": "N * E + N",
        "outgoing": "N * E + N",
        "outbox_length": "N * E + N * U + 1",
        "message": "E + K",
        "wire": "E + U + K",
    }
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("sender", "send"),
        Step("sender", "hear"),
        Step("outbox", "release"),
        Step("subtask", "deliver"),
        Step("subtask", "align"),
        Step("subtask", "report"),
        Step("checkpoint", "begin"),
        Step("checkpoint", "future"),
        Step("checkpoint", "inject"),
        Step("checkpoint", "abort", is_fair=False),
        Step("subtask", "fail", is_fair=False),
    )

    N: int
    sources: int
    K: int
    E: int
    U: int
    F: int
    events: int
    marker: int

    outbox: Outbox = machines(Outbox)
    sender: list[Sender] = machines(Sender)
    subtask: list[Subtask] = machines(Subtask)
    checkpoint: Checkpoint = machines(Checkpoint)

    @sometimes("something waits behind the marker")
    def holds_something(self) -> bool:
        return self.outbox.state == MARKED and not self.outbox.waiting.empty()

    @sometimes("an acknowledged event is in a completed checkpoint of the coordinator")
    def completes_with_a_report(self) -> bool:
        return self.checkpoint.last > 0 and self.sender[0].heard_completed > 0

    @sometimes("a checkpoint completes after a subtask has failed")
    def completes_after_a_failure(self) -> bool:
        return self.checkpoint.last > 0 and self.checkpoint.failures > 0

    @terminal("the checkpoint is over, and nothing waits or is on its way")
    def is_quiet(self) -> bool:
        return (
            self.checkpoint.state == IDLE
            and self.outbox.waiting.empty()
            and all(self.subtask[s].wire.empty() for s in range(self.N))
        )
