"""The subtask's side, in the worker process: restores, handles events and barriers in their order,
and leaves.

Decides that an event is handled once and in its order, that a gap means that an event was lost,
which only a new attempt can mend, that the snapshot after the end of the input is the last, and
that nothing is handled once the attempt is over. Leaves to the operators behind the port what an event does
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
    fallible,
    machines,
    output,
)

CREATED, RUNNING, ENDED, FINISHED, FAILED = "created", "running", "ended", "finished", "failed"
UP = (RUNNING, ENDED)
OVER = (FINISHED, FAILED)


class OperatorPort(Port):
    """Calls of the subtask's operators, made in this order between units of work, and what the
    driver is told.
    """

    @fallible("fail", in_event=True)
    def restore(self, attempt: int, checkpoint: int, state: Opaque) -> None:
        """Open the operators; from then on the program may work."""

    @fallible("fail", in_event=True)
    def event(self, coordinator: int, number: int, event: Opaque) -> None: ...
    @fallible("fail", in_event=True)
    def snapshot(self, checkpoint: int, is_final: bool) -> None:
        """Take the snapshot and acknowledge the checkpoint."""

    @fallible("fail", in_event=True)
    def commit(self, checkpoint: int, tries: int, part: Opaque) -> None:
        """Commit the subtask's part of a completed checkpoint, and tell the driver what came of
        it.
        """

    @fallible("fail", in_event=True)
    def complete(self, checkpoint: int) -> None: ...
    @fallible("fail", in_event=True)
    def aborted(self, checkpoint: int) -> None: ...
    def ended(self) -> None:
        """Tell the driver that the input has ended; the program works no more."""

    def finish(self) -> None:
        """Leave cleanly."""

    def failed(self, reason: Opaque, is_fatal: bool) -> None:
        """Tell the driver that this attempt cannot go on, or that no attempt could."""

    @fallible("fail", in_event=True)
    def gap(self, coordinator: int, number: int) -> None:
        """An event is missing before this one: this attempt cannot go on."""


class Task(Machine):
    """The subtask as its worker process sees it."""

    STATES = (CREATED, RUNNING, ENDED, FINISHED, FAILED)
    INITIAL = CREATED
    TERMINAL = OVER

    system: TaskSystem
    operators: OperatorPort = output(OperatorPort)

    received: list[int] = Array(Int("numbers"), "coordinators")
    """For each coordinator the number of the last event handled."""

    restore: Trigger
    event: Trigger
    barrier: Trigger
    commit: Trigger
    complete: Trigger
    aborted: Trigger
    end_input: Trigger
    fail: Trigger
    finish: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("restore",      CREATED,          RUNNING,  None,
            "call_restore",       "the driver has assigned an attempt"),
        Ignore("restore",   OVER,                       None,
                                  "this attempt is over"),

        Row("event",        UP,               STAY,     "is_next",
            "count, call_event",  "the coordinator's next event"),
        Ignore("event",     UP,                         "not is_next and is_old",
                                  "the event was handled before"),
        Row("event",        UP,               STAY,     "not is_next and not is_old",
            "call_gap",           "an event before this one is missing"),
        Ignore("event",     OVER,                       None,
                                  "this attempt is over"),

        Row("barrier",      RUNNING,          STAY,     None,
            "call_snapshot",      "all events before the barrier belong to the checkpoint"),
        Row("barrier",      ENDED,            STAY,     None,
            "call_last_snapshot", "the checkpoint holds the end of the input"),
        Ignore("barrier",   OVER,                       None,
                                  "this attempt is over"),

        Row("commit",       UP,               STAY,     None,
            "call_commit",        "the checkpoint is completed: its part may take effect"),
        Ignore("commit",    OVER,                       None,
                                  "this attempt is over"),
        Row("complete",     UP,               STAY,     None,
            "call_complete",      "the checkpoint is durable"),
        Ignore("complete",  (CREATED, *OVER),           None,
                                  "no operator is open"),
        Row("aborted",      UP,               STAY,     None,
            "call_aborted",       "the checkpoint will never be completed"),
        Ignore("aborted",   (CREATED, *OVER),           None,
                                  "no operator is open"),

        Row("end_input",    RUNNING,          ENDED,    None,
            "report_end",         "the program has nothing more to read"),
        Ignore("end_input", (ENDED, *OVER),             None,
                                  "the end was reported before, or this attempt is over"),

        Row("fail",         (CREATED, *UP),   FAILED,   None,
            "report_failure",     "an operator or the program has raised an error"),
        Ignore("fail",      OVER,                       None,
                                  "this attempt is over"),

        Row("finish",       (CREATED, *UP),   FINISHED, None,
            "call_finish",        "the job has what it needs"),
        Ignore("finish",    OVER,                       None,
                                  "this attempt is over"),
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
        self.operators.snapshot(checkpoint, False)

    def call_last_snapshot(self, checkpoint: int) -> None:
        self.operators.snapshot(checkpoint, True)

    def call_commit(self, checkpoint: int, tries: int, part: Opaque) -> None:
        self.operators.commit(checkpoint, tries, part)

    def call_complete(self, checkpoint: int) -> None:
        self.operators.complete(checkpoint)

    def call_aborted(self, checkpoint: int) -> None:
        self.operators.aborted(checkpoint)

    def report_end(self) -> None:
        self.operators.ended()

    def report_failure(self, reason: Opaque, is_fatal: bool) -> None:
        self.operators.failed(reason, is_fatal)

    def call_finish(self) -> None:
        self.operators.finish()


class TaskSystem(System):
    """Everything that a worker process decides about its subtask; `coordinators` is how many may
    send it events.
    """

    CONSTANTS: ClassVar[dict[str, int]] = {"coordinators": 0}

    coordinators: int

    task: Task = machines(Task)
