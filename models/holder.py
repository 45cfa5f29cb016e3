"""The holder of one operator coordinator: what of the world reaches the user's code, and when.

Decides that a coordinator is restored before it starts, hears of subtasks only while it runs, and
can fail the job once until it is restored; one that could not start is built anew before anything
reaches it. An event from a subtask reaches it only from the attempt that is current, and the
receipt for it takes the way of all events, through the gateway: after the coordinator's snapshot it
waits for the barrier, so an operator that has a receipt before its own snapshot knows that the
event is in the coordinator's::

    operator      x               [snapshot N: no receipt]     receipt of x
    coordinator       [snapshot N]  x handled
    gateway           closed: the receipt is held              open

Leaves checkpoints to `CoordinatorSnapshot` and sending to `Gateway`. Everything that leaves through
`user` is a call of the user's coordinator, made on the queue's thread in this order.

Source: Apache Flink's OperatorCoordinatorHolder (rules H1 to H8, H13, H15 and H16 in
docs/protocol.md); receipts and a second start are not in Flink.
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

CREATED, STARTING, STARTED, BROKEN, CLOSED = "created", "starting", "started", "broken", "closed"
UP = (STARTING, STARTED)


class UserPort(Port):
    """Calls of the user's coordinator."""

    def start(self) -> None:
        """Answer with `started`, or with `start_failed`."""

    def unfit(self) -> None:
        """It is not started, because it has failed the job before; answer with `start_failed`."""

    def rebuild(self) -> None:
        """Make a new coordinator in place of the one that could not start."""

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
    STATES = (CREATED, STARTING, STARTED, BROKEN, CLOSED)
    INITIAL = CREATED
    TERMINAL = (CLOSED,)

    system: Job
    coordinator: int
    user: UserPort = output(UserPort)

    has_failed: bool = Bool()
    """The coordinator has failed the job, and was not restored since."""

    start: Trigger
    started: Trigger
    start_failed: Trigger
    reset: Trigger
    fail_job: Trigger
    event: Trigger
    handled: Trigger
    attempt_ready: Trigger
    attempt_failed: Trigger
    subtask_reset: Trigger
    checkpoint_complete: Trigger
    checkpoint_aborted: Trigger
    close: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("start",                  CREATED,                   STARTING, "not is_failing",      "call_start",                       "the job begins"),
        Row("start",                  CREATED,                   STARTING, "is_failing",          "call_unfit",                       "it has failed the job before that began"),
        Row("started",                STARTING,                  STARTED,  None,                  None,                               "it is ready for whatever comes"),
        Ignore("started",             (BROKEN, CLOSED),                    None,                                                      "it has failed the job while it was starting, or the job is over"),
        Row("start_failed",           STARTING,                  BROKEN,   None,                  "fail_globally",                    "it is half built"),
        Ignore("start_failed",        (BROKEN, CLOSED),                    None,                                                      "it has failed the job while it was starting, or the job is over"),

        Row("reset",                  CREATED,                   STAY,     None,                  "call_reset",                       "the job begins from a checkpoint"),
        Row("reset",                  UP,                        STAY,     None,                  "clear_failure, call_reset",        "all state goes back to one checkpoint"),
        Row("reset",                  BROKEN,                    STARTING, None,                  "clear_failure, rebuild_and_start", "all state goes back to one checkpoint, and this one begins anew"),

        Row("fail_job",               CREATED,                   STAY,     None,                  "note_failure",                     "it may not start"),
        Row("fail_job",               STARTING,                  BROKEN,   None,                  "fail_globally",                    "it is half built"),
        Row("fail_job",               STARTED,                   STAY,     "not is_failing",      "note_failure, fail_globally",      "only the coordinator knows that its state is wrong"),
        Ignore("fail_job",            STARTED,                             "is_failing",                                              "the first call since the last restore has won"),
        Ignore("fail_job",            BROKEN,                              None,                                                      "everything goes down already"),
        Ignore("fail_job",            CLOSED,                              None,                                                      "the job is over"),

        Row("event",                  UP,                        STAY,     "is_from_current",     "call_event",                       "an operator speaks to its coordinator"),
        Ignore("event",               UP,                                  "not is_from_current",                                     "it was sent by an attempt that is gone"),
        Ignore("event",               (CREATED, BROKEN, CLOSED),           None,                                                      "nobody listens"),

        Row("handled",                UP,                        STAY,     None,                  "send_receipt",                     "the coordinator has made the event part of its state"),
        Ignore("handled",             (CREATED, BROKEN, CLOSED),           None,                                                      "its attempt is gone"),

        Row("attempt_ready",          UP,                        STAY,     None,                  "call_ready",                       "its gateway can be used"),
        Row("attempt_failed",         UP,                        STAY,     None,                  "call_failed",                      "its gateway leads nowhere"),
        Row("subtask_reset",          UP,                        STAY,     None,                  "call_subtask_reset",               "the subtask goes back to a checkpoint, the coordinator does not"),
        Row("checkpoint_complete",    UP,                        STAY,     None,                  "call_complete",                    "the checkpoint is durable"),
        Row("checkpoint_aborted",     UP,                        STAY,     None,                  "call_aborted",                     "the checkpoint will never be"),
        Ignore("attempt_ready",       BROKEN,                              None,                                                      "it has to be built anew first"),
        Ignore("attempt_failed",      BROKEN,                              None,                                                      "it has to be built anew first"),
        Ignore("subtask_reset",       BROKEN,                              None,                                                      "it has to be built anew first"),
        Ignore("checkpoint_complete", BROKEN,                              None,                                                      "it has to be built anew first"),
        Ignore("checkpoint_aborted",  BROKEN,                              None,                                                      "it has to be built anew first"),

        Row("close",                  (CREATED, *UP, BROKEN),    CLOSED,   None,                  "call_close",                       "the job is over"),
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

    def call_unfit(self) -> None:
        self.user.unfit()

    def clear_failure(self) -> None:
        self.has_failed = False

    def call_reset(self, checkpoint: int) -> None:
        self.user.reset_to(checkpoint)

    def rebuild_and_start(self, checkpoint: int) -> None:
        self.user.rebuild()
        if checkpoint > 0:
            self.user.reset_to(checkpoint)
        self.user.start()

    def note_failure(self) -> None:
        self.has_failed = True

    def fail_globally(self) -> None:
        self.system.lifecycle.fail_globally()

    def call_event(self, subtask: int, attempt: int, event: Opaque) -> None:
        self.user.event(subtask, attempt, event)

    def send_receipt(self, subtask: int, attempt: int, receipt: Opaque) -> None:
        self.system.gateway[self.coordinator, subtask].send(attempt, receipt)

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
