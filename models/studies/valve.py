"""One valve for each coordinator: the first design of checkpoints with operator events.

The valve closes when the coordinator's snapshot is complete and opens again when the barriers are
put on the wires of the sources, or when the checkpoint is aborted. An event sent before the
snapshot is then before the barrier on its wire, and one sent after it is behind. That holds as long
as each receiver of events is a source and no event is lost on its way.

Source: Apache Flink 1.11. One coordinator is enough: each has a valve of its own, and others only
delay barriers. All of it runs on one thread, but for what is on a wire.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import ANY, STAY, Array, Bool, Channel, Fifo, Ignore, Int, Machine, Row, Trigger
from epochgate.fsm.closed import ClosedSystem, Step, sometimes, terminal
from epochgate.fsm.system import machines

OPEN, CLOSED = "open", "closed"
IDLE, TRIGGERED, READY, INJECTED = "idle", "triggered", "ready", "injected"


class Gate(Machine):
    """The valve: one for all subtasks."""

    STATES = (OPEN, CLOSED)
    INITIAL = OPEN

    system: Valve

    held: Fifo[int] = Channel("event", "events")

    send: Trigger
    close: Trigger
    reopen: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("send",      OPEN,   STAY,   None,
            "put_on_wire", "no snapshot lies between"),
        Row("send",      CLOSED, STAY,   None,
            "hold",        "it belongs behind the barriers"),
        Row("close",     OPEN,   CLOSED, None,
            None,          "the coordinator has its snapshot"),
        Row("reopen",    CLOSED, OPEN,   None,
            "release",     "the sources have their barriers, or the checkpoint is over"),
        Ignore("reopen", OPEN,           None,
                           "it was not closed"),
    )
    # fmt: on

    def put_on_wire(self, subtask: int, number: int) -> None:
        self.system.subtask[subtask].wire.push(number)

    def hold(self, subtask: int, number: int) -> None:
        self.held.push(subtask * self.system.E + number)

    def release(self) -> None:
        for event in self.held.take_all():
            self.system.subtask[event // self.system.E].wire.push(event % self.system.E)

    def drop(self, subtask: int) -> None:
        for event in self.held.take_all():
            if event // self.system.E != subtask:
                self.held.push(event)


class Sender(Machine):
    """The events that the coordinator sends to one subtask."""

    INDEX = ("subtask",)
    STATES = ("sending",)
    INITIAL = "sending"

    system: Valve
    subtask: int

    sent: int = Int("E")
    snapshot: int = Int("E")
    completed: int = Int("E")
    in_flight: int = Int("E")
    """Sends of which nothing is known yet."""
    awaited: int = Int("E")
    """Those of them that the checkpoint waits for."""

    send: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("send", "sending", STAY, "has_more", "count, pass_on", "the coordinator has an event for this subtask"),
    )
    # fmt: on

    def has_more(self) -> bool:
        return self.sent < self.system.E

    def count(self) -> None:
        self.sent += 1
        self.in_flight += 1

    def pass_on(self) -> None:
        self.system.gate.send(self.subtask, self.sent - 1)

    def settle(self) -> None:
        self.in_flight -= 1
        if self.awaited > 0:
            self.awaited -= 1
            self.system.checkpoint.proceed_if_settled()

    def rewind(self) -> None:
        self.sent = self.completed
        self.in_flight = 0
        self.awaited = 0


class Subtask(Machine):
    """A receiver of events: handles what arrives, and takes its part of the checkpoint at the
    barrier.

    Its wire holds events, by their number, and above these the barriers of a source.
    """

    INDEX = ("subtask",)
    STATES = ("running",)
    INITIAL = "running"

    system: Valve
    subtask: int

    wire: Fifo[int] = Channel("message", "wire")
    handled: list[bool] = Array(Bool(), "E")
    snapshot: list[bool] = Array(Bool(), "E")
    completed: list[bool] = Array(Bool(), "E")

    deliver: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("deliver", "running", STAY, "has_message", "take_message", "the oldest message arrives"),
    )
    # fmt: on

    def has_message(self) -> bool:
        return not self.wire.empty()

    def take_message(self) -> None:
        message = self.wire.pop()
        if message < self.system.E:
            self.handled[message] = True
            self.system.sender[self.subtask].settle()
        else:
            self.take_snapshot(message - self.system.E + 1)

    def take_snapshot(self, checkpoint: int) -> None:
        for e in range(self.system.E):
            self.snapshot[e] = self.handled[e]
        self.pass_barrier_on(checkpoint)
        self.system.checkpoint.acknowledge(self.subtask, checkpoint)

    def pass_barrier_on(self, checkpoint: int) -> None:
        """All subtasks are sources: no other subtask waits for this one's barrier."""


class Checkpoint(Machine):
    """The one checkpoint at a time."""

    STATES: ClassVar[tuple[str, ...]] = (IDLE, TRIGGERED, READY, INJECTED)
    INITIAL = IDLE

    system: Valve

    number: int = Int("K")
    last: int = Int("K")
    losses: int = Int("losses")
    has_acknowledged: list[bool] = Array(Bool(), "N")

    begin: Trigger
    future: Trigger
    inject: Trigger
    acknowledge: Trigger
    complete: Trigger
    abort: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("begin",          IDLE,                         TRIGGERED, "may_begin",
            "count",                           "the interval is over"),
        Row("future",         TRIGGERED,                    READY,     None,
            "take_snapshot, close",            "the coordinator's future completes"),
        Row("inject",         READY,                        INJECTED,  None,
            "put_barriers, reopen_at_barrier", "the coordinator's part is there"),
        Row("acknowledge",    INJECTED,                     STAY,      "is_current",
            "note, complete_if_all",           "a subtask has its part"),
        Ignore("acknowledge", ANY,                                     "not is_current",
                                               "it belongs to a checkpoint that is over"),
        Row("complete",       INJECTED,                     IDLE,      None,
            "compare, clear",                  "all parts are there"),
        Row("abort",          (TRIGGERED, READY, INJECTED), IDLE,      None,
            "reopen, clear",                   "it takes too long, or something failed"),
    )
    # fmt: on

    def may_begin(self) -> bool:
        return self.number < self.system.K

    def is_current(self, subtask: int, checkpoint: int) -> bool:
        return self.state == INJECTED and checkpoint == self.number

    def count(self) -> None:
        self.number += 1

    def take_snapshot(self) -> None:
        for s in range(self.system.N):
            self.system.sender[s].snapshot = self.system.sender[s].sent

    def close(self) -> None:
        self.system.gate.close()

    def proceed_if_settled(self) -> None:
        """The first design waits for nothing."""

    def put_barriers(self) -> None:
        for s in range(self.system.N):
            if s < self.system.sources:
                self.system.subtask[s].wire.push(self.system.E + self.number - 1)

    def reopen_at_barrier(self) -> None:
        self.system.gate.reopen()

    def reopen(self) -> None:
        self.system.gate.reopen()

    def note(self, subtask: int) -> None:
        self.has_acknowledged[subtask] = True

    def complete_if_all(self) -> None:
        if all(self.has_acknowledged[s] for s in range(self.system.N)):
            self.complete()

    def compare(self) -> None:
        self.last = self.number
        for s in range(self.system.N):
            for e in range(self.system.E):
                assert e >= self.system.sender[s].snapshot or self.system.subtask[s].snapshot[e], (
                    "I1: what was sent before the coordinator's snapshot is in the subtask's"
                )
                assert (
                    e < self.system.sender[s].snapshot or not self.system.subtask[s].snapshot[e]
                ), "I2: what was sent after the coordinator's snapshot is not in the subtask's"
                self.system.subtask[s].completed[e] = self.system.subtask[s].snapshot[e]
            self.system.sender[s].completed = self.system.sender[s].snapshot

    def clear(self) -> None:
        for s in range(self.system.N):
            self.has_acknowledged[s] = False
            self.system.sender[s].snapshot = 0
            self.system.sender[s].awaited = 0
            for e in range(self.system.E):
                self.system.subtask[s].snapshot[e] = False

    def abort_if_running(self) -> None:
        if self.state != IDLE:
            self.abort()


class Valve(ClosedSystem):
    """Flink's first design, the event valve: it holds where receivers are sources."""

    IS_SEPARATED = False  # a design that does not run, written before effects
    INDEX_SETS: ClassVar[dict[str, str]] = {"subtask": "N"}
    CONSTANTS: ClassVar[dict[str, int]] = {"N": 2, "sources": 2, "K": 2, "E": 2, "losses": 0}
    DERIVED: ClassVar[dict[str, str]] = {
        "event": "N * E - 1",
        "events": "N * E",
        "message": "E + K - 1",
        "wire": "E + K",
    }
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("sender", "send"),
        Step("subtask", "deliver"),
        Step("checkpoint", "begin"),
        Step("checkpoint", "future"),
        Step("checkpoint", "inject"),
        Step("checkpoint", "abort", is_fair=False),
    )

    N: int
    sources: int
    K: int
    E: int
    losses: int

    gate: Gate = machines(Gate)
    sender: list[Sender] = machines(Sender)
    subtask: list[Subtask] = machines(Subtask)
    checkpoint: Checkpoint = machines(Checkpoint)

    @sometimes("the valve holds an event")
    def holds_an_event(self) -> bool:
        return not self.gate.held.empty()

    @sometimes("a checkpoint with an event in it completes")
    def completes_with_an_event(self) -> bool:
        return self.checkpoint.last > 0 and self.sender[0].completed > 0

    @terminal("the checkpoint is over, and nothing is held or on its way")
    def is_quiet(self) -> bool:
        return (
            self.checkpoint.state == IDLE
            and all(self.subtask[s].wire.empty() for s in range(self.N))
            and self.gate.held.empty()
        )


class LeakingGate(Gate):
    """A valve that lets events pass while it is closed."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("send",      ANY,    STAY,   None, "put_on_wire", "nothing is held back"),
        *(row for row in Gate.ROWS if row.trigger != "send"),
    )
    # fmt: on


class NoValve(Valve):
    """Without a valve, an event sent between the snapshot and the barrier enters the subtask's
    part.
    """

    CONSTANTS: ClassVar[dict[str, int]] = {**Valve.CONSTANTS, "K": 1, "E": 1}

    gate: Gate = machines(LeakingGate)


class LosingSubtask(Subtask):
    """A subtask to which one event may be lost; the coordinator learns of it, and goes on."""

    has_lost: bool = Bool()

    lose: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *Subtask.ROWS,

        Row("lose", "running", STAY, "has_event and not has_lost_one",
            "lose_event", "the call that carries the oldest message fails"),
    )
    # fmt: on

    def has_event(self) -> bool:
        return not self.wire.empty() and self.wire.head() < self.system.E

    def has_lost_one(self) -> bool:
        return self.has_lost

    def lose_event(self) -> None:
        self.wire.pop()
        self.has_lost = True


class LostEvent(Valve):
    """An event is lost on its way, and the checkpoint that counts it as sent completes."""

    CONSTANTS: ClassVar[dict[str, int]] = {**Valve.CONSTANTS, "K": 1, "E": 1}
    STEPS = (*Valve.STEPS, Step("subtask", "lose", is_fair=False))

    subtask: list[Subtask] = machines(LosingSubtask)
