"""The subtask's side, in the worker process: restores, handles events and barriers in their order,
and leaves.

Decides that an event is handled once and in its order, and that a gap means that something was
lost, which only a new attempt can mend. Leaves to the operators behind the port what an event does
and what a snapshot holds. Source: Apache Flink's operator event handling on the task side (section
1 of docs/protocol.md).
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import (
    STAY,
    Array,
    Ignore,
    Int,
    Machine,
    Opaque,
    Port,
    Row,
    System,
    Trigger,
    machines,
    output,
)

CREATED, RUNNING, FINISHED, FAILED = "created", "running", "finished", "failed"


class OperatorPort(Port):
    """Calls of the subtask's operators, made in this order between units of work."""

    def restore(self, attempt: int, checkpoint: int, state: Opaque) -> None: ...
    def event(self, coordinator: int, number: int, event: Opaque) -> None: ...
    def snapshot(self, checkpoint: int) -> None:
        """Take the snapshot and acknowledge, or decline, the checkpoint."""

    def complete(self, checkpoint: int) -> None: ...
    def aborted(self, checkpoint: int) -> None: ...
    def finish(self) -> None: ...
    def gap(self, coordinator: int, number: int) -> None:
        """An event is missing before this one: this attempt cannot go on."""


class Task(Machine):
    """The subtask as its worker process sees it."""

    STATES = (CREATED, RUNNING, FINISHED, FAILED)
    INITIAL = CREATED
    TERMINAL = (FINISHED, FAILED)

    system: TaskSystem
    operators: OperatorPort = output(OperatorPort)

    received: list[int] = Array(Int("numbers"), "coordinators")
    """For each coordinator the number of the last event handled."""

    restore: Trigger
    event: Trigger
    barrier: Trigger
    complete: Trigger
    aborted: Trigger
    finish: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("restore",  CREATED, RUNNING,  None,                         "call_restore",      "the driver has assigned an attempt"),

        Row("event",    RUNNING, STAY,     "is_next",                    "count, call_event", "the next of its coordinator"),
        Ignore("event", RUNNING,           "not is_next and is_old",                          "it was handled before"),
        Row("event",    RUNNING, FAILED,   "not is_next and not is_old", "call_gap",          "one before it is missing"),

        Row("barrier",  RUNNING, STAY,     None,                         "call_snapshot",     "all before it belongs to the checkpoint"),
        Row("complete", RUNNING, STAY,     None,                         "call_complete",     "the checkpoint is durable"),
        Row("aborted",  RUNNING, STAY,     None,                         "call_aborted",      "the checkpoint will never be"),

        Row("finish",   RUNNING, FINISHED, None,                         "call_finish",       "the job has what it needs"),
        Row("finish",   CREATED, FINISHED, None,                         "call_finish",       "there was nothing to do"),
    )
    # fmt: on

    def is_next(self, coordinator: int, number: int) -> bool:
        return number == self.received[coordinator] + 1

    def is_old(self, coordinator: int, number: int) -> bool:
        return number <= self.received[coordinator]

    def call_restore(self, attempt: int, checkpoint: int, state: Opaque) -> None:
        self.operators.restore(attempt, checkpoint, state)

    def count(self, coordinator: int, number: int) -> None:
        self.received[coordinator] = number

    def call_event(self, coordinator: int, number: int, event: Opaque) -> None:
        self.operators.event(coordinator, number, event)

    def call_gap(self, coordinator: int, number: int) -> None:
        self.operators.gap(coordinator, number)

    def call_snapshot(self, checkpoint: int) -> None:
        self.operators.snapshot(checkpoint)

    def call_complete(self, checkpoint: int) -> None:
        self.operators.complete(checkpoint)

    def call_aborted(self, checkpoint: int) -> None:
        self.operators.aborted(checkpoint)

    def call_finish(self) -> None:
        self.operators.finish()


class TaskSystem(System):
    """Everything that a worker process decides about its subtask; `coordinators` is how many may
    send it events.
    """

    CONSTANTS: ClassVar[dict[str, int]] = {"coordinators": 0}

    coordinators: int

    task: Task = machines(Task)
