"""What became of the one valve: it waits for events on their way, and still does not hold.

As of Apache Flink 1.13 a checkpoint waits for the events sent before the snapshot, and a failed
send fails its subtask. `SettlingValve` is where that ended: an event counts as on its way until its
loss has been dealt with, so that no checkpoint slips in between. The other systems here are what
made each step necessary, and fail: `LostEvent`, `QueuedFailure` and, what ended the one valve,
`OtherReceiver`: a subtask that is no source gets its barrier through the one before it, later than
the valve thinks.

A subtask that fails is restored at once. All of it runs on one thread, but for what is on a wire.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Bool, Channel, Fifo, Row, Trigger
from epochgate.fsm.closed import Step, sometimes
from epochgate.fsm.system import machines
from epochgate.models.valve import IDLE, INJECTED, READY, TRIGGERED, Checkpoint, Subtask, Valve

WAITING = "waiting"


class WaitingCheckpoint(Checkpoint):
    """A checkpoint that waits until the events sent before the snapshot have arrived."""

    STATES = (IDLE, TRIGGERED, WAITING, READY, INJECTED)

    settled: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in Checkpoint.ROWS if row.trigger != "future"),
        Row("future",  TRIGGERED, READY,   "not has_to_wait", "take_snapshot, close",       "the coordinator's future completes"),
        Row("future",  TRIGGERED, WAITING, "has_to_wait",     "take_snapshot, close, wait", "its future completes, with events on their way"),
        Row("settled", WAITING,   READY,   None,              None,                         "all of them have arrived"),
        Row("abort",   WAITING,   IDLE,    None,              "reopen, clear",              "it takes too long, or something failed"),
    )
    # fmt: on

    def has_to_wait(self) -> bool:
        return any(self.system.sender[s].in_flight > 0 for s in range(self.system.N))

    def wait(self) -> None:
        for s in range(self.system.N):
            self.system.sender[s].awaited = self.system.sender[s].in_flight

    def proceed_if_settled(self) -> None:
        if self.state == WAITING and all(
            self.system.sender[s].awaited == 0 for s in range(self.system.N)
        ):
            self.settled()


class LosingSubtask(Subtask):
    """A subtask to which events may be lost; the coordinator learns of it, and nothing happens."""

    lose: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *Subtask.ROWS,
        Row("lose", "running", STAY, "has_event and may_lose", "lose_event, on_lost_send", "the call that carries the oldest message fails"),
    )
    # fmt: on

    def has_event(self) -> bool:
        return not self.wire.empty() and self.wire.head() < self.system.E

    def may_lose(self) -> bool:
        return self.system.checkpoint.losses < self.system.losses

    def lose_event(self) -> None:
        self.wire.pop()
        self.system.checkpoint.losses += 1

    def on_lost_send(self) -> None:
        self.system.sender[self.subtask].settle()


class FailingSubtask(LosingSubtask):
    """A subtask that is failed by a queued handler when an event to it was lost."""

    is_failing: bool = Bool()
    """The handler is queued."""

    fail: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *LosingSubtask.ROWS,
        Row("fail", "running", STAY, "has_failed_send", "restore", "the handler of a failed send runs"),
    )
    # fmt: on

    def has_failed_send(self) -> bool:
        return self.is_failing

    def on_lost_send(self) -> None:
        self.is_failing = True
        if self.system.sender[self.subtask].awaited > 0:
            self.system.checkpoint.abort()
        self.system.sender[self.subtask].settle()

    def restore(self) -> None:
        self.is_failing = False
        self.system.checkpoint.abort_if_running()
        self.wire.clear()
        self.system.gate.drop(self.subtask)
        self.system.sender[self.subtask].rewind()
        for e in range(self.system.E):
            self.handled[e] = self.completed[e]


class SettlingSubtask(FailingSubtask):
    """A subtask whose lost event is settled by the handler that fails it, and not before."""

    def on_lost_send(self) -> None:
        self.is_failing = True


class StreamedSubtask(Subtask):
    """A subtask that gets its barrier, unless it is a source, behind the records of another."""

    system: OtherReceiver

    stream: Fifo[int] = Channel("K", "K")

    align: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *Subtask.ROWS,
        Row("align", "running", STAY, "has_barrier", "take_streamed_barrier", "the barrier arrives behind the records before it"),
    )
    # fmt: on

    def has_barrier(self) -> bool:
        return not self.stream.empty()

    def take_streamed_barrier(self) -> None:
        checkpoint = self.stream.pop()
        self.take_snapshot(checkpoint)

    def pass_barrier_on(self, checkpoint: int) -> None:
        for s in range(self.system.N):
            if s == self.subtask + 1 and s >= self.system.sources:
                self.system.subtask[s].stream.push(checkpoint)


class WaitingValve(Valve):
    """The design that waits for events on their way."""

    checkpoint: Checkpoint = machines(WaitingCheckpoint)


class SettlingValve(WaitingValve):
    """The design that holds when events are lost: one counts as on its way until that is dealt
    with.
    """

    CONSTANTS: ClassVar[dict[str, int]] = {**Valve.CONSTANTS, "E": 1, "losses": 1}
    STEPS = (*Valve.STEPS, Step("subtask", "lose", is_fair=False), Step("subtask", "fail"))

    subtask: list[Subtask] = machines(SettlingSubtask)

    @sometimes("a checkpoint completes after an event was lost")
    def completes_after_a_loss(self) -> bool:
        return self.checkpoint.last > 0 and self.checkpoint.losses > 0


class OtherReceiver(WaitingValve):
    """A receiver that is no source gets an event from behind the snapshot before its barrier, which
    travels through another subtask first.
    """

    CONSTANTS: ClassVar[dict[str, int]] = {**Valve.CONSTANTS, "K": 1, "E": 1, "sources": 1}
    STEPS = (*Valve.STEPS, Step("subtask", "align"))

    subtask: list[StreamedSubtask] = machines(StreamedSubtask)  # type: ignore[assignment]  # a Subtask


class LostEvent(Valve):
    """An event is lost on its way, and the checkpoint that counts it as sent completes."""

    CONSTANTS: ClassVar[dict[str, int]] = {**Valve.CONSTANTS, "K": 1, "E": 1, "losses": 1}
    STEPS = (*Valve.STEPS, Step("subtask", "lose", is_fair=False))

    subtask: list[Subtask] = machines(LosingSubtask)


class QueuedFailure(WaitingValve):
    """A send has failed, what fails its subtask for it is queued, and a checkpoint slips in."""

    CONSTANTS: ClassVar[dict[str, int]] = {**Valve.CONSTANTS, "K": 1, "E": 1, "losses": 1}
    STEPS = SettlingValve.STEPS

    subtask: list[Subtask] = machines(FailingSubtask)
