"""The holder of one operator coordinator: what of the world reaches the user's code, and when.

Decides that a coordinator is restored before it starts, hears of subtasks only while it runs, and
can fail the job once until it is restored; an event from a subtask reaches it only from the attempt
that is current. Leaves checkpoints to `CoordinatorSnapshot` and sending to `Gateway`. Everything
that leaves through `user` is a call of the user's coordinator, made on the queue's thread in this
order.

Source: Apache Flink's OperatorCoordinatorHolder (rules H1 to H8, H13 and H15 in docs/protocol.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import (
    STAY,
    Bool,
    Ignore,
    Machine,
    Opaque,
    Port,
    Row,
    Trigger,
    output,
)

if TYPE_CHECKING:
    from epochgate.models.job import Job

CREATED, STARTED, CLOSED = "created", "started", "closed"


class UserPort(Port):
    """Calls of the user's coordinator."""

    def start(self) -> None: ...
    def close(self) -> None: ...
    def reset_to(self, checkpoint: int) -> None:
        """Restore the coordinator from its state in `checkpoint`; 0 means that there is none."""

    def checkpoint(self, checkpoint: int, lane: int) -> None:
        """Ask for a snapshot; the answer is a `succeed` or `fail` of the snapshot machine of that
        lane.
        """

    def complete(self, checkpoint: int) -> None: ...
    def aborted(self, checkpoint: int) -> None: ...
    def ready(self, subtask: int, attempt: int) -> None: ...
    def failed(self, subtask: int, attempt: int) -> None: ...
    def subtask_reset(self, subtask: int, checkpoint: int) -> None:
        """Take back what `subtask` was told after `checkpoint`; 0 means all of it."""

    def event(self, subtask: int, attempt: int, event: Opaque) -> None: ...


class Holder(Machine):
    """The holder of one coordinator."""

    INDEX = ("coordinator",)
    STATES = (CREATED, STARTED, CLOSED)
    INITIAL = CREATED
    TERMINAL = (CLOSED,)

    system: Job
    coordinator: int
    user: UserPort = output(UserPort)

    has_failed: bool = Bool()
    """The coordinator has failed the job, and was not restored since."""

    start: Trigger
    reset: Trigger
    fail_job: Trigger
    event: Trigger
    attempt_ready: Trigger
    attempt_failed: Trigger
    subtask_reset: Trigger
    checkpoint_complete: Trigger
    checkpoint_aborted: Trigger
    close: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("start",               CREATED,            STARTED, None,                  "call_start",                  "the job begins"),
        Row("reset",               (CREATED, STARTED), STAY,    None,                  "clear_failure, call_reset",   "all state goes back to one checkpoint"),

        Row("fail_job",            (CREATED, STARTED), STAY,    "not is_failing",      "note_failure, fail_globally", "only the coordinator knows that its state is wrong"),
        Ignore("fail_job",         (CREATED, STARTED),          "is_failing",                                         "the first call since the last restore has won"),
        Ignore("fail_job",         CLOSED,                      None,                                                 "the job is over"),

        Row("event",               STARTED,            STAY,    "is_from_current",     "call_event",                  "an operator speaks to its coordinator"),
        Ignore("event",            STARTED,                     "not is_from_current",                                "it was sent by an attempt that is gone"),
        Ignore("event",            (CREATED, CLOSED),           None,                                                 "nobody listens"),

        Row("attempt_ready",       STARTED,            STAY,    None,                  "call_ready",                  "its gateway can be used"),
        Row("attempt_failed",      STARTED,            STAY,    None,                  "call_failed",                 "its gateway leads nowhere"),
        Row("subtask_reset",       STARTED,            STAY,    None,                  "call_subtask_reset",          "the subtask goes back to a checkpoint, the coordinator does not"),
        Row("checkpoint_complete", STARTED,            STAY,    None,                  "call_complete",               "the checkpoint is durable"),
        Row("checkpoint_aborted",  STARTED,            STAY,    None,                  "call_aborted",                "the checkpoint will never be"),

        Row("close",               (CREATED, STARTED), CLOSED,  None,                  "call_close",                  "the job is over"),
    )
    # fmt: on

    def is_failing(self) -> bool:
        return self.has_failed

    def is_from_current(self, subtask: int, attempt: int) -> bool:
        return (
            self.system.attempt[subtask].is_reachable()
            and self.system.attempt[subtask].number == attempt
        )

    def call_start(self) -> None:
        self.user.start()

    def clear_failure(self) -> None:
        self.has_failed = False

    def call_reset(self, checkpoint: int) -> None:
        self.user.reset_to(checkpoint)

    def note_failure(self) -> None:
        self.has_failed = True

    def fail_globally(self) -> None:
        self.system.lifecycle.fail_globally()

    def call_event(self, subtask: int, attempt: int, event: Opaque) -> None:
        self.user.event(subtask, attempt, event)

    def call_ready(self, subtask: int, attempt: int) -> None:
        self.user.ready(subtask, attempt)

    def call_failed(self, subtask: int, attempt: int) -> None:
        self.user.failed(subtask, attempt)

    def call_subtask_reset(self, subtask: int, checkpoint: int) -> None:
        self.user.subtask_reset(subtask, checkpoint)

    def call_complete(self, checkpoint: int) -> None:
        self.user.complete(checkpoint)

    def call_aborted(self, checkpoint: int) -> None:
        self.user.aborted(checkpoint)

    def call_close(self) -> None:
        self.user.close()
