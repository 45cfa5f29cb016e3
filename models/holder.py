"""The holder of one operator coordinator: which calls reach the user's code, and when.

Decides that a coordinator starts only after its restore has ended well, hears of subtasks only
while it runs, and can fail the job once until it is restored; one whose restore or start has failed
is rebuilt before any call reaches it. Requests of clients and for snapshots without checkpoints reach it once its start has
ended well; those made during the start wait, and all others are refused. An event from a subtask
reaches it only from the current attempt, and the receipt takes the way of all events, through the
gateway: after the coordinator's snapshot the receipt waits for the barrier, so an operator that has
a receipt before its own snapshot knows that the event is in the coordinator's::

    operator      x               [snapshot N: no receipt]     receipt of x
    coordinator       [snapshot N]  x handled
    gateway           closed: the receipt is held              open

Leaves checkpoints to `CoordinatorSnapshot` and sending to `Gateway`. Everything that leaves through
`user` is a call of the user's coordinator, made on the queue's thread in this order.

Source: Apache Flink's OperatorCoordinatorHolder (rules H1 to H8, H13, H15 and H16 in
docs/protocol.md); receipts, a second start, and refused requests (H18) are not in Flink.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import (
    STAY,
    Bool,
    Channel,
    Fifo,
    Ignore,
    Machine,
    Opaque,
    Port,
    Row,
    Trigger,
    fallible,
    output,
)

if TYPE_CHECKING:
    from epochgate.models.job import Job

CREATED, RESTORING, STARTING, STARTED = "created", "restoring", "starting", "started"
RESETTING, BROKEN, CLOSED = "resetting", "broken", "closed"
UP = (STARTING, STARTED)
GOING_BACK = (RESTORING, RESETTING)


class UserPort(Port):
    """Calls of the user's coordinator."""

    @fallible("start_failed", succeeds="started", within="coordinator_call_timeout_s")
    def start(self) -> None:
        """Start the coordinator."""

    @fallible("start_failed")
    def unfit(self) -> None:
        """The coordinator is not started, because it has failed the job."""

    @fallible("restore_failed", succeeds="restored", in_event=True)
    def rebuild(self, checkpoint: int) -> None:
        """Make a new coordinator in place of this one, and restore it from its state in
        `checkpoint`; 0 means that there is nothing to restore.
        """

    @fallible("restore_failed", succeeds="restored", in_event=True)
    def rebuild_from_batch_snapshot(self) -> None:
        """Make a new coordinator in place of this one, and restore it from the snapshot without a
        checkpoint that the job began from.
        """

    @fallible("restore_failed", succeeds="restored", in_event=True)
    def reset_to(self, checkpoint: int) -> None:
        """Restore the coordinator from its state in `checkpoint`; 0 means that there is none. A
        snapshot without a checkpoint that is under way fails.
        """

    @fallible("restore_failed", succeeds="restored", in_event=True)
    def reset_to_batch_snapshot(self) -> None:
        """Restore the coordinator from the snapshot without a checkpoint that the job began from."""

    def close(self) -> None: ...
    def cancel_batch_snapshot(self) -> None:
        """Fail a snapshot without a checkpoint that is under way: the state is wrong."""

    def client_request(self, request: Opaque) -> None:
        """Hand the request to the coordinator."""

    def batch_snapshot(self, request: Opaque) -> None:
        """Begin a snapshot without a checkpoint."""

    def refuse_early(self, request: Opaque) -> None:
        """Refuse a request of either kind: the coordinator has not started."""

    def refuse_broken(self, request: Opaque) -> None:
        """Refuse the request: the coordinator could not start, and is not rebuilt yet."""

    def refuse_failing(self, request: Opaque) -> None:
        """Refuse the request: the coordinator has failed the job, and is not restored yet."""

    def refuse_periodic(self, request: Opaque) -> None:
        """Refuse the request: the job takes periodic checkpoints."""

    def refuse_late(self, request: Opaque) -> None:
        """Refuse the request: the job is over."""

    @fallible("fail_job", in_event=True)
    def complete(self, checkpoint: int) -> None: ...
    @fallible("fail_job", in_event=True)
    def aborted(self, checkpoint: int) -> None: ...
    @fallible("fail_job", in_event=True)
    def ready(self, subtask: int, attempt: int) -> None: ...
    @fallible("fail_job", in_event=True)
    def failed(self, subtask: int, attempt: int, reason: Opaque) -> None: ...
    @fallible("fail_job", in_event=True)
    def subtask_reset(self, subtask: int, checkpoint: int) -> None:
        """Take back what `subtask` was told after `checkpoint`; 0 means all of it."""

    @fallible("fail_job, event_malformed")
    def event(self, subtask: int, attempt: int, event: Opaque) -> None:
        """Hand an operator's event to the coordinator; answer with `event_malformed` if it is none
        that the coordinator can handle.
        """


class Holder(Machine):
    """The holder of one coordinator."""

    INDEX = ("coordinator",)
    STATES = (CREATED, RESTORING, STARTING, STARTED, RESETTING, BROKEN, CLOSED)
    INITIAL = CREATED
    TERMINAL = (CLOSED,)

    system: Job
    coordinator: int
    user: UserPort = output(UserPort)

    has_failed: bool = Bool()
    """The coordinator has failed the job, and was not restored since."""
    has_batch_snapshot: bool = Bool()
    """The job was given a snapshot without a checkpoint, and does not begin from a checkpoint."""
    requests: Fifo[Opaque] = Channel("questions", "questions")
    """Requests of clients made during the start."""
    snapshot_requests: Fifo[Opaque] = Channel("questions", "questions")
    """Requests for a snapshot without a checkpoint made during the start."""

    adopt_batch_snapshot: Trigger
    start: Trigger
    started: Trigger
    start_failed: Trigger
    reset: Trigger
    restored: Trigger
    restore_failed: Trigger
    fail_job: Trigger
    client_request: Trigger
    batch_snapshot: Trigger
    event: Trigger
    event_malformed: Trigger
    handled: Trigger
    attempt_ready: Trigger
    attempt_failed: Trigger
    subtask_reset: Trigger
    checkpoint_complete: Trigger
    checkpoint_aborted: Trigger
    close: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("adopt_batch_snapshot",    CREATED,          STAY,     None,
            "note_batch_snapshot",                          "the job was given a snapshot without a checkpoint"),
        Ignore("adopt_batch_snapshot", CLOSED,                     None,
                                                            "the job was ended before it began"),
        Row("start",                   CREATED,          STARTING, "not is_failing and not begins_from_batch",
            "call_start",                                   "the job begins"),
        Row("start",                   CREATED,          RESTORING, "not is_failing and begins_from_batch",
            "call_batch_reset",                             "the job begins from a snapshot without a checkpoint"),
        Row("start",                   CREATED,          STARTING, "is_failing",
            "call_unfit",                                   "the coordinator failed the job before its start"),
        Row("started",                 STARTING,         STARTED,  None,
            "serve_requests",                               "the coordinator's start has ended well"),
        Ignore("started",              (BROKEN, CLOSED),           None,
                                                            "the coordinator failed in start, or the job is over"),
        Row("start_failed",            STARTING,         BROKEN,   "not is_fatal",
            "refuse_requests, fail_globally",               "the coordinator is half built: its start failed"),
        Row("start_failed",            STARTING,         BROKEN,   "is_fatal",
            "refuse_requests, give_job_up",                 "the error is fatal: no coordinator could start"),
        Ignore("start_failed",         (BROKEN, CLOSED),           None,
                                                            "the coordinator failed in start, or the job is over"),

        Row("reset", CREATED,            RESTORING, None,
            "forget_batch_snapshot, call_reset",            "the job begins from a checkpoint"),
        Row("reset", STARTED,            RESETTING, "not is_to_batch",
            "clear_failure, call_reset",                    "all state goes back to one checkpoint"),
        Row("reset", STARTED,            RESETTING, "is_to_batch",
            "clear_failure, call_batch_reset",              "the job goes back to the batch snapshot it began from"),
        Row("reset", (STARTING, BROKEN), RESTORING, "not is_to_batch",
            "clear_failure, refuse_requests, rebuild",      "all state goes back, and a half-built coordinator is rebuilt"),
        Row("reset", (STARTING, BROKEN), RESTORING, "is_to_batch",
            "clear_failure, refuse_requests, rebuild_from_batch", "rebuilt from the batch snapshot"),

        Row("restored",    RESTORING, STARTING, "not is_failing",
            "call_start",                                   "the coordinator has its state and may start"),
        Row("restored",    RESTORING, STARTING, "is_failing",
            "call_unfit",                                   "the coordinator failed the job before its start"),
        Row("restored",    RESETTING, STARTED,  None,
            None,                                           "the coordinator has gone back"),
        Ignore("restored", (BROKEN, CLOSED),              None,
                                                            "the restore was given up, or the job is over"),
        Row("restore_failed",    GOING_BACK, BROKEN, "not is_fatal",
            "fail_globally",                                "the coordinator has no state: its restore failed"),
        Row("restore_failed",    GOING_BACK, BROKEN, "is_fatal",
            "give_job_up",                                  "the error is fatal: no coordinator could be restored"),
        Ignore("restore_failed", (BROKEN, CLOSED),        None,
                                                            "the restore was given up, or the job is over"),

        Row("fail_job",    CREATED,            STAY,   "not is_fatal",
            "note_failure",                                 "the coordinator failed the job and may not start"),
        Row("fail_job",    (CREATED, STARTED), STAY,   "is_fatal",
            "give_job_up",                                  "the error is fatal: a restore would not help"),
        Row("fail_job",    STARTING,           BROKEN, "not is_fatal",
            "refuse_requests, fail_globally",               "the coordinator failed the job in start: half built"),
        Row("fail_job",    STARTING,           BROKEN, "is_fatal",
            "refuse_requests, give_job_up",                 "the error is fatal: no coordinator could start"),
        Row("fail_job",    STARTED,            STAY,   "not is_fatal and not is_failing",
            "note_failure, cancel_snapshot, fail_globally", "only the coordinator knows that its state is wrong"),
        Ignore("fail_job", STARTED,                    "not is_fatal and is_failing",
                                                            "only the first failure since the last restore counts"),
        Row("fail_job",    BROKEN,             STAY,   "is_fatal",
            "give_job_up",                                  "the error is fatal: rebuilding would not help"),
        Ignore("fail_job", BROKEN,                     "not is_fatal",
                                                            "all attempts go down already"),
        Ignore("fail_job", CLOSED,                     None,
                                                            "the job is over"),

        Row("client_request", STARTED,  STAY, None,
            "call_client_request",                          "a client asks the coordinator"),
        Row("client_request", STARTING, STAY, None,
            "hold_request",                                 "the coordinator's start has not ended"),
        Row("client_request", CREATED,  STAY, None,
            "refuse_early",                                 "the coordinator has not started"),
        Row("client_request", BROKEN,   STAY, None,
            "refuse_broken",                                "the coordinator could not start"),
        Row("client_request", CLOSED,   STAY, None,
            "refuse_late",                                  "the job is over"),

        Row("batch_snapshot", STARTED,                STAY, "not is_periodic and not is_failing",
            "call_batch_snapshot",                          "a client wants the coordinator's state"),
        Row("batch_snapshot", STARTED,                STAY, "not is_periodic and is_failing",
            "refuse_failing",                               "the coordinator's state is wrong until it is restored"),
        Row("batch_snapshot", STARTING,               STAY, "not is_periodic",
            "hold_snapshot_request",                        "the coordinator's start has not ended"),
        Row("batch_snapshot", CREATED,                STAY, "not is_periodic",
            "refuse_early",                                 "the coordinator has not started"),
        Row("batch_snapshot", BROKEN,                 STAY, "not is_periodic",
            "refuse_broken",                                "the coordinator could not start"),
        Row("batch_snapshot", (CREATED, *UP, BROKEN), STAY, "is_periodic",
            "refuse_periodic",                              "a periodic checkpoint holds what the snapshot would"),
        Row("batch_snapshot", CLOSED,                 STAY, None,
            "refuse_late",                                  "the job is over"),

        Row("event",    UP,                        STAY, "is_from_current",
            "call_event",                                   "an operator speaks to its coordinator"),
        Ignore("event", UP,                              "not is_from_current",
                                                            "the event is from an attempt that is gone"),
        Ignore("event", (CREATED, BROKEN, CLOSED),       None,
                                                            "no coordinator is up to handle the event"),

        Row("event_malformed",    UP,                        STAY, "is_from_current",
            "fail_attempt",                                 "only the attempt that sent the event is to blame"),
        Ignore("event_malformed", UP,                              "not is_from_current",
                                                            "the attempt that sent the event is gone"),
        Ignore("event_malformed", (CREATED, BROKEN, CLOSED),       None,
                                                            "all attempts go down already, or the job is over"),

        Row("handled",    UP,                        STAY, None,
            "send_receipt",                                 "the coordinator has made the event part of its state"),
        Ignore("handled", (CREATED, BROKEN, CLOSED),       None,
                                                            "the attempt that sent the event is gone"),

        Row("attempt_ready",          UP,     STAY, None,
            "call_ready",                                   "the attempt's gateway can be used"),
        Row("attempt_failed",         UP,     STAY, None,
            "call_failed",                                  "the attempt's gateway reaches no process"),
        Row("subtask_reset",          UP,     STAY, None,
            "call_subtask_reset",                           "only the subtask goes back to a checkpoint"),
        Row("checkpoint_complete",    UP,     STAY, None,
            "call_complete",                                "the checkpoint is durable"),
        Row("checkpoint_aborted",     UP,     STAY, None,
            "call_aborted",                                 "the checkpoint will never be completed"),
        Ignore("attempt_ready",       BROKEN,       None,
                                                            "the coordinator must be rebuilt first"),
        Ignore("attempt_failed",      BROKEN,       None,
                                                            "the coordinator must be rebuilt first"),
        Ignore("attempt_failed",      GOING_BACK,   None,
                                                            "the coordinator has not heard of the attempt"),
        Ignore("subtask_reset",       BROKEN,       None,
                                                            "the coordinator must be rebuilt first"),
        Ignore("checkpoint_complete", BROKEN,       None,
                                                            "the coordinator must be rebuilt first"),
        Ignore("checkpoint_aborted",  BROKEN,       None,
                                                            "the coordinator must be rebuilt first"),

        Row("close", (CREATED, *UP, *GOING_BACK, BROKEN), CLOSED, None,
            "refuse_late_requests, call_close",             "the job is over"),
    )
    # fmt: on

    def is_failing(self) -> bool:
        return self.has_failed

    def is_fatal(self, reason: Opaque, is_fatal: bool) -> bool:
        return is_fatal

    def is_periodic(self) -> bool:
        return self.system.periodic > 0

    def begins_from_batch(self) -> bool:
        return self.has_batch_snapshot

    def is_to_batch(self, checkpoint: int) -> bool:
        return self.has_batch_snapshot and checkpoint == 0

    def is_from_current(self, subtask: int, attempt: int) -> bool:
        return (
            self.system.attempt[subtask].is_reachable()
            and self.system.attempt[subtask].number == attempt
        )

    def note_batch_snapshot(self) -> None:
        self.has_batch_snapshot = True

    def forget_batch_snapshot(self) -> None:
        self.has_batch_snapshot = False

    def call_start(self) -> None:
        self.user.start()

    def call_unfit(self) -> None:
        self.user.unfit()

    def clear_failure(self) -> None:
        self.has_failed = False

    def call_reset(self, checkpoint: int) -> None:
        self.user.reset_to(checkpoint)

    def call_batch_reset(self) -> None:
        self.user.reset_to_batch_snapshot()

    def rebuild(self, checkpoint: int) -> None:
        self.user.rebuild(checkpoint)

    def rebuild_from_batch(self) -> None:
        self.user.rebuild_from_batch_snapshot()

    def note_failure(self) -> None:
        self.has_failed = True

    def cancel_snapshot(self) -> None:
        self.user.cancel_batch_snapshot()

    def give_job_up(self, reason: Opaque) -> None:
        self.system.lifecycle.give_up(reason)

    def fail_globally(self, reason: Opaque) -> None:
        self.system.lifecycle.fail_globally(reason)

    def call_client_request(self, request: Opaque) -> None:
        self.user.client_request(request)

    def call_batch_snapshot(self, request: Opaque) -> None:
        self.user.batch_snapshot(request)

    def hold_request(self, request: Opaque) -> None:
        self.requests.push(request)

    def hold_snapshot_request(self, request: Opaque) -> None:
        self.snapshot_requests.push(request)

    def serve_requests(self) -> None:
        for request in self.requests.take_all():
            self.user.client_request(request)
        for request in self.snapshot_requests.take_all():
            self.user.batch_snapshot(request)

    def refuse_requests(self) -> None:
        for request in self.requests.take_all():
            self.user.refuse_broken(request)
        for request in self.snapshot_requests.take_all():
            self.user.refuse_broken(request)

    def refuse_late_requests(self) -> None:
        for request in self.requests.take_all():
            self.user.refuse_late(request)
        for request in self.snapshot_requests.take_all():
            self.user.refuse_late(request)

    def refuse_early(self, request: Opaque) -> None:
        self.user.refuse_early(request)

    def refuse_broken(self, request: Opaque) -> None:
        self.user.refuse_broken(request)

    def refuse_failing(self, request: Opaque) -> None:
        self.user.refuse_failing(request)

    def refuse_periodic(self, request: Opaque) -> None:
        self.user.refuse_periodic(request)

    def refuse_late(self, request: Opaque) -> None:
        self.user.refuse_late(request)

    def call_event(self, subtask: int, attempt: int, event: Opaque) -> None:
        self.user.event(subtask, attempt, event)

    def fail_attempt(self, subtask: int, attempt: int, reason: Opaque) -> None:
        self.system.attempt[subtask].fault(reason)

    def send_receipt(self, subtask: int, attempt: int, receipt: Opaque) -> None:
        self.system.gateway[self.coordinator, subtask].send(attempt, receipt)

    def call_ready(self, subtask: int, attempt: int) -> None:
        self.user.ready(subtask, attempt)

    def call_failed(self, subtask: int, attempt: int, reason: Opaque) -> None:
        self.user.failed(subtask, attempt, reason)

    def call_subtask_reset(self, subtask: int, checkpoint: int) -> None:
        self.user.subtask_reset(subtask, checkpoint)

    def call_complete(self, checkpoint: int) -> None:
        self.user.complete(checkpoint)

    def call_aborted(self, checkpoint: int) -> None:
        self.user.aborted(checkpoint)

    def call_close(self) -> None:
        self.user.close()
