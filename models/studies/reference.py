"""The reference model P(N, C, K, E, F): small, with counts that other checkers agree on.

N subtasks, C coordinators, at most K checkpoints, E events for each coordinator and subtask, F
failures. A checker that gives other counts than Spin, TLC and Stateright is wrong.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import ANY, STAY, Array, Bool, Channel, Fifo, Ignore, Int, Machine, Row, Trigger
from epochgate.fsm.closed import ClosedSystem, Step, sometimes
from epochgate.fsm.system import machines

RUNNING, FAILED, RESET = "running", "failed", "reset"
OPEN, CLOSED = "open", "closed"
PENDING, DONE = "pending", "done"
IDLE, TRIGGERED, INJECTED = "idle", "triggered", "injected"


class Subtask(Machine):
    """A task: handles events and barriers in their order, fails, and goes back."""

    INDEX = ("subtask",)
    STATES = (RUNNING, FAILED, RESET)
    INITIAL = RUNNING

    system: Reference
    subtask: int

    wire: Fifo[int] = Channel("message", "wire")
    acknowledgements: Fifo[int] = Channel("K", "K")
    received: list[int] = Array(Int("E"), "C")
    snapshot: list[int] = Array(Int("E"), "C")
    completed: list[int] = Array(Int("E"), "C")
    has_acknowledged: bool = Bool()

    deliver: Trigger
    acknowledge: Trigger
    fail: Trigger
    restore: Trigger
    ready: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("deliver",     RUNNING, STAY,    "has_message",
            "receive",               "the oldest message arrives"),
        Row("acknowledge", ANY,     STAY,    "has_acknowledgement",
            "take_acknowledgement",  "the oldest acknowledgement arrives, perhaps late"),
        Row("fail",        RUNNING, FAILED,  "may_fail",
            "drop",                  "the task is lost, and what is on the wire to it"),
        Row("restore",     FAILED,  RESET,   None,
            "abort_pending, rewind", "its coordinators go back to the last checkpoint"),
        Row("ready",       RESET,   RUNNING, None,
            "load",                  "a new attempt starts from the last checkpoint"),
    )
    # fmt: on

    def has_message(self) -> bool:
        return not self.wire.empty()

    def has_acknowledgement(self) -> bool:
        return not self.acknowledgements.empty()

    def may_fail(self) -> bool:
        return self.system.checkpoint.failures < self.system.F

    def is_running(self) -> bool:
        return self.state == RUNNING

    def receive(self) -> None:
        message = self.wire.pop()
        if message < self.system.C * self.system.E:
            coordinator = message // self.system.E
            number = message % self.system.E + 1
            assert number == self.received[coordinator] + 1, "events arrive once and in order"
            self.received[coordinator] = number
        else:
            checkpoint = message - self.system.C * self.system.E + 1
            self.acknowledgements.push(checkpoint)
            if self.system.checkpoint.is_injected(checkpoint):
                for c in range(self.system.C):
                    self.snapshot[c] = self.received[c]

    def drop(self) -> None:
        self.system.checkpoint.failures += 1
        self.wire.clear()
        for c in range(self.system.C):
            self.received[c] = 0
            self.system.gateway[c, self.subtask].drop()

    def abort_pending(self) -> None:
        self.system.checkpoint.abort_if_pending()

    def rewind(self) -> None:
        for c in range(self.system.C):
            self.system.gateway[c, self.subtask].rewind()

    def load(self) -> None:
        for c in range(self.system.C):
            self.received[c] = self.completed[c]

    def take_acknowledgement(self) -> None:
        checkpoint = self.acknowledgements.pop()
        if self.system.checkpoint.is_injected(checkpoint):
            for c in range(self.system.C):
                self.system.gateway[c, self.subtask].reopen()
            self.has_acknowledged = True
            self.system.checkpoint.complete_if_all_acknowledged()


class Gateway(Machine):
    """The valve between one coordinator and one subtask."""

    INDEX = ("coordinator", "subtask")
    STATES = (OPEN, CLOSED)
    INITIAL = OPEN

    system: Reference
    coordinator: int
    subtask: int

    held: Fifo[int] = Channel("message", "E")
    sent: int = Int("E")
    snapshot: int = Int("E")
    completed: int = Int("E")

    send: Trigger
    close: Trigger
    reopen: Trigger
    drop: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("send",      OPEN,   STAY,   "may_send", "pass_on", "no snapshot lies between"),
        Row("send",      CLOSED, STAY,   "may_send", "hold",    "it waits for the barrier"),
        Row("close",     OPEN,   CLOSED, None,       None,      "the coordinator has its snapshot"),
        Row("reopen",    CLOSED, OPEN,   None,       "release", "the barrier has passed, or the checkpoint is over"),
        Ignore("reopen", OPEN,           None,                  "it was not closed"),
        Row("drop",      CLOSED, OPEN,   None,       "forget",  "the subtask is lost"),
        Ignore("drop",   OPEN,           None,                  "nothing is held"),
    )
    # fmt: on

    def may_send(self) -> bool:
        return self.system.subtask[self.subtask].is_running() and self.sent < self.system.E

    def pass_on(self) -> None:
        self.system.subtask[self.subtask].wire.push(self.coordinator * self.system.E + self.sent)
        self.sent += 1

    def hold(self) -> None:
        self.held.push(self.coordinator * self.system.E + self.sent)
        self.sent += 1

    def release(self) -> None:
        self.system.subtask[self.subtask].wire.drain(self.held)

    def forget(self) -> None:
        self.held.clear()

    def rewind(self) -> None:
        self.sent = self.completed


class Coordinator(Machine):
    """A coordinator's part of the checkpoint."""

    INDEX = ("coordinator",)
    STATES = (PENDING, DONE)
    INITIAL = PENDING

    system: Reference
    coordinator: int

    future: Trigger
    clear: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("future",   PENDING, DONE,    "is_asked", "snapshot_and_close", "its future completes"),
        Row("clear",    DONE,    PENDING, None,       None,                 "the checkpoint is over"),
        Ignore("clear", PENDING,          None,                             "it was not done"),
    )
    # fmt: on

    def is_asked(self) -> bool:
        return self.system.checkpoint.is_triggered()

    def is_done(self) -> bool:
        return self.state == DONE

    def snapshot_and_close(self) -> None:
        for s in range(self.system.N):
            self.system.gateway[self.coordinator, s].snapshot = self.system.gateway[
                self.coordinator, s
            ].sent
            if self.system.subtask[s].is_running():
                self.system.gateway[self.coordinator, s].close()


class Checkpoint(Machine):
    """The one checkpoint at a time."""

    STATES = (IDLE, TRIGGERED, INJECTED)
    INITIAL = IDLE

    system: Reference

    number: int = Int("K")
    last: int = Int("K")
    failures: int = Int("F")

    begin: Trigger
    inject: Trigger
    abort: Trigger
    complete: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("begin",    IDLE,                  TRIGGERED, "may_begin",
            "count",             "all subtasks run"),
        Row("inject",   TRIGGERED,             INJECTED,  "is_ready",
            "send_barriers",     "all coordinators are done"),
        Row("abort",    (TRIGGERED, INJECTED), IDLE,      None,
            "reopen_all, clear", "it will not complete"),
        Row("complete", INJECTED,              IDLE,      None,
            "commit, clear",     "all subtasks have acknowledged"),
    )
    # fmt: on

    def may_begin(self) -> bool:
        return self.number < self.system.K and all(
            self.system.subtask[s].is_running() for s in range(self.system.N)
        )

    def is_ready(self) -> bool:
        return all(self.system.coordinator[c].is_done() for c in range(self.system.C))

    def is_triggered(self) -> bool:
        return self.state == TRIGGERED

    def is_injected(self, checkpoint: int) -> bool:
        return self.state == INJECTED and checkpoint == self.number

    def abort_if_pending(self) -> None:
        if self.state != IDLE:
            self.abort()

    def complete_if_all_acknowledged(self) -> None:
        if all(self.system.subtask[s].has_acknowledged for s in range(self.system.N)):
            self.complete()

    def count(self) -> None:
        self.number += 1

    def send_barriers(self) -> None:
        for s in range(self.system.N):
            if self.system.subtask[s].is_running():
                self.system.subtask[s].wire.push(self.system.C * self.system.E + self.number - 1)

    def reopen_all(self) -> None:
        for s in range(self.system.N):
            for c in range(self.system.C):
                self.system.gateway[c, s].reopen()

    def commit(self) -> None:
        self.last = self.number
        for s in range(self.system.N):
            for c in range(self.system.C):
                assert self.system.gateway[c, s].snapshot == self.system.subtask[s].snapshot[c], (
                    "coordinator and subtask agree on what belongs to the checkpoint"
                )
                self.system.gateway[c, s].completed = self.system.gateway[c, s].snapshot
                self.system.subtask[s].completed[c] = self.system.subtask[s].snapshot[c]

    def clear(self) -> None:
        for c in range(self.system.C):
            self.system.coordinator[c].clear()
        for s in range(self.system.N):
            self.system.subtask[s].has_acknowledged = False
            for c in range(self.system.C):
                self.system.gateway[c, s].snapshot = 0
                self.system.subtask[s].snapshot[c] = 0


class Reference(ClosedSystem):
    """A reference model with known counts: P(N, C, K, E, F)."""

    IS_SEPARATED = False  # a design that does not run, written before effects
    INDEX_SETS: ClassVar[dict[str, str]] = {"subtask": "N", "coordinator": "C"}
    CONSTANTS: ClassVar[dict[str, int]] = {
        "N": 2,
        "C": 2,
        "K": 2,
        "E": 1,
        "F": 1,
        "message": 3,
        "wire": 4,
    }
    DERIVED: ClassVar[dict[str, str]] = {"message": "C * E + K - 1", "wire": "C * E + K"}
    STEPS = (
        Step("gateway", "send"),
        Step("subtask", "deliver"),
        Step("checkpoint", "begin"),
        Step("coordinator", "future"),
        Step("checkpoint", "inject"),
        Step("subtask", "acknowledge"),
        Step("checkpoint", "abort", is_fair=False),
        Step("subtask", "fail", is_fair=False),
        Step("subtask", "restore"),
        Step("subtask", "ready"),
    )

    N: int
    C: int
    K: int
    E: int
    F: int

    subtask: list[Subtask] = machines(Subtask)
    gateway: dict[tuple[int, int], Gateway] = machines(Gateway)
    coordinator: list[Coordinator] = machines(Coordinator)
    checkpoint: Checkpoint = machines(Checkpoint)

    @sometimes("a checkpoint completes after a failure")
    def completes_after_failure(self) -> bool:
        return self.checkpoint.failures > 0 and self.checkpoint.last > 0
