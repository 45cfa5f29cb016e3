"""The checkpoint lifecycle: triggered, pending, storing, and in the end completed, aborted or
unknown; one at a time.

Decides when the coordinators' parts are all there so that barriers may go out, when the subtasks'
parts are all there so that the checkpoint may be stored, and that whatever belongs to another
checkpoint is ignored. Every way out reopens the gateways, so none stays closed for a checkpoint
that is over. A checkpoint of which the store cannot tell whether it exists is in doubt: neither its
completion nor its abort is announced, no other follows it, and the job fails; the next start reads
the store.

A store that does not answer within its limit leaves a checkpoint in doubt too, and so does the end
of a job that waits for the store no longer. A checkpoint that the committer refuses before it is
stored is aborted, and ends the job: the same rows would be refused again.

Leaves asking for a checkpoint to `CheckpointRequest`, storing to the store behind its port, time to
the timer port (whose answers are `expire` and `expire_save`). Source: Apache Flink's
CheckpointCoordinator and PendingCheckpoint (section 3 of docs/protocol.md); unlike there an abort
always names the checkpoint that it ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import (
    STAY,
    Array,
    Bool,
    Ignore,
    Int,
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

NONE, TRIGGERING, PENDING, STORING, COMPLETED, ABORTED, UNKNOWN = (
    "none",
    "triggering",
    "pending",
    "storing",
    "completed",
    "aborted",
    "unknown",
)
OVER = (NONE, COMPLETED, ABORTED)
ENDED = (COMPLETED, ABORTED, UNKNOWN)
UNFINISHED = (TRIGGERING, PENDING)


class CheckpointPort(Port):
    """The timer and store of a checkpoint, and the driver."""

    def started(self, checkpoint: int) -> None:
        """Expire it after the timeout."""

    def keep(self, checkpoint: int, subtask: int, snapshot: Opaque) -> None:
        """A subtask's state and committables in this checkpoint."""

    @fallible(
        "refused, store_failed, store_unknown, expire_save",
        succeeds="stored",
        within="store_timeout_s",
    )
    def save(self, checkpoint: int) -> None:
        """Let the committer check everything kept for it, and store it durably. `refused`: the
        committer could never commit it, and nothing is stored; `store_failed`: it is not stored
        and never will be; `store_unknown`: neither is known.
        """

    def completed(self, checkpoint: int) -> None: ...
    def aborted(self, checkpoint: int, reason: Opaque) -> None: ...
    def unknown(self, checkpoint: int, reason: Opaque) -> None:
        """The outcome of the save is unknown; the job is about to fail because of that."""


class CheckpointTaskPort(Port):
    """The process that speaks for a subtask."""

    def barrier(self, subtask: int, identity: int, checkpoint: int) -> None:
        """Take a snapshot now: everything told before belongs to it, nothing told later does."""

    def complete(self, subtask: int, identity: int, checkpoint: int) -> None: ...
    def aborted(self, subtask: int, identity: int, checkpoint: int) -> None: ...


class Checkpoint(Machine):
    """The checkpoint under way, or the last one."""

    STATES = (NONE, TRIGGERING, PENDING, STORING, COMPLETED, ABORTED, UNKNOWN)
    INITIAL = NONE
    TERMINAL = (UNKNOWN,)

    system: Job
    driver: CheckpointPort = output(CheckpointPort)
    tasks: CheckpointTaskPort = output(CheckpointTaskPort)

    number: int = Int("checkpoints")
    """The id of the checkpoint under way, or of the last one."""
    completed: int = Int("checkpoints")
    """The id of the last completed one, to which failovers go back; 0 if there is none."""
    coordinators_due: int = Int("coordinators")
    subtasks_due: int = Int("subtasks")
    ends_due: int = Int("subtasks")
    """Subtasks whose part is not their last."""
    has_acknowledged: list[bool] = Array(Bool(), "subtasks")
    failures: int = Int("failures")
    """Checkpoints that failed since one completed."""

    restore: Trigger
    trigger_next: Trigger
    coordinator_ready: Trigger
    coordinator_failed: Trigger
    acknowledge: Trigger
    decline: Trigger
    store: Trigger
    stored: Trigger
    store_failed: Trigger
    store_unknown: Trigger
    refused: Trigger
    expire_save: Trigger
    give_save_up: Trigger
    expire: Trigger
    abort: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("restore", NONE, COMPLETED, None,
            "adopt",                              "the store holds a completed checkpoint"),

        Row("trigger_next", OVER, TRIGGERING, "has_coordinators",
            "begin, ask_coordinators",            "a request was chosen"),
        Row("trigger_next", OVER, PENDING,    "not has_coordinators",
            "begin, inject_barriers",             "a request was chosen; there is no coordinator to ask"),

        Row("coordinator_ready",    TRIGGERING,                       STAY,    "is_current and not is_last_coordinator",
            "count_coordinator",                  "other coordinators are not ready"),
        Row("coordinator_ready",    TRIGGERING,                       PENDING, "is_current and is_last_coordinator",
            "count_coordinator, inject_barriers", "all snapshots are taken, and all gateways are closed"),
        Ignore("coordinator_ready", TRIGGERING,                                "not is_current",
                                                  "the snapshot belongs to an earlier checkpoint"),
        Ignore("coordinator_ready", (NONE, PENDING, STORING, *ENDED),          None,
                                                  "no checkpoint waits for coordinators"),

        Row("coordinator_failed",    TRIGGERING,                       ABORTED, "is_current",
            "count_failure, fail",                "a coordinator has no snapshot"),
        Ignore("coordinator_failed", TRIGGERING,                                "not is_current",
                                                  "the snapshot belongs to an earlier checkpoint"),
        Ignore("coordinator_failed", (NONE, PENDING, STORING, *ENDED),          None,
                                                  "no checkpoint waits for coordinators"),

        Row("acknowledge",    PENDING,                             STAY,    "is_current and is_due and not is_last_subtask",
            "count_subtask",                      "other subtasks have not passed the barrier"),
        Row("acknowledge",    PENDING,                             STORING, "is_current and is_due and is_last_subtask",
            "count_subtask, gather_ledger",       "all subtasks have acknowledged"),
        Ignore("acknowledge", PENDING,                                      "is_current and not is_due",
                                                  "a repeated acknowledgement"),
        Ignore("acknowledge", PENDING,                                      "not is_current",
                                                  "a late acknowledgement of an earlier checkpoint"),
        Ignore("acknowledge", (NONE, TRIGGERING, STORING, *ENDED),          None,
                                                  "a late or repeated acknowledgement"),

        Row("decline",    PENDING,                             ABORTED, "is_current",
            "count_failure, fail",                "a subtask could not take its snapshot"),
        Ignore("decline", PENDING,                                      "not is_current",
                                                  "the subtask declines an earlier checkpoint"),
        Ignore("decline", (NONE, TRIGGERING, STORING, *ENDED),          None,
                                                  "no checkpoint waits for subtasks"),

        Row("store",         STORING, STAY,      None,
            "save",                               "all parts and the committer's ledger are there"),
        Row("stored",        STORING, COMPLETED, "is_current",
            "complete, settle_request",           "the checkpoint is durable: failovers go back to it"),
        Row("store_failed",  STORING, ABORTED,   "is_current",
            "count_failure, fail",                "the checkpoint could not be made durable"),
        Row("store_unknown", STORING, UNKNOWN,   "is_current",
            "report, end_job, settle_request",    "the store cannot tell whether the checkpoint exists"),
        Row("refused",       STORING, ABORTED,   "is_current",
            "abandon_for_good",                   "the committer could never commit it; nothing is stored"),
        Row("expire_save",   STORING, UNKNOWN,   "is_current",
            "report, end_job, settle_request",    "the store has not answered within its limit"),
        Row("give_save_up",  STORING, UNKNOWN,   None,
            "report_end, settle_request",         "the job ends and waits for the store no longer"),
        Ignore("stored",        UNKNOWN,                 None,
                                                  "the store has answered after its limit; the next start reads it"),
        Ignore("store_failed",  UNKNOWN,                 None,
                                                  "the store has answered after its limit; the next start reads it"),
        Ignore("store_unknown", UNKNOWN,                 None,
                                                  "the store has answered after its limit; the next start reads it"),
        Ignore("refused",       UNKNOWN,                 None,
                                                  "the committer has answered after the limit; nothing is stored"),
        Ignore("expire_save",   STORING,                 "not is_current",
                                                  "the limit was for the save of an earlier checkpoint"),
        Ignore("expire_save",   (*OVER, *UNFINISHED, UNKNOWN), None,
                                                  "the store has answered within its limit"),
        Ignore("give_save_up",  (*OVER, *UNFINISHED, UNKNOWN), None,
                                                  "nothing is being stored"),

        Row("expire",    UNFINISHED,              ABORTED, "is_current",
            "count_failure, fail",                "the checkpoint took longer than the timeout"),
        Ignore("expire", UNFINISHED,                       "not is_current",
                                                  "the timer of an earlier checkpoint"),
        Ignore("expire", (NONE, STORING, *ENDED),          None,
                                                  "all parts are there, or the checkpoint is over"),

        Row("abort",    UNFINISHED,              ABORTED, None,
            "abandon",                            "after a failure a part of the checkpoint cannot arrive"),
        Ignore("abort", (NONE, STORING, *ENDED),          None,
                                                  "all parts are there, or the checkpoint is over"),
    )
    # fmt: on

    def has_coordinators(self) -> bool:
        return self.system.coordinators > 0

    def is_current(self, checkpoint: int) -> bool:
        return checkpoint == self.number

    def is_last_coordinator(self) -> bool:
        return self.coordinators_due == 1

    def is_due(self, checkpoint: int, subtask: int) -> bool:
        return not self.has_acknowledged[subtask]

    def is_last_subtask(self) -> bool:
        return self.subtasks_due == 1

    def is_over(self) -> bool:
        return self.state == NONE or self.state == COMPLETED or self.state == ABORTED

    def is_pending(self) -> bool:
        """Return whether barriers are out whose snapshots are not all taken."""
        return self.state == PENDING

    def is_storing(self) -> bool:
        return self.state == STORING

    def is_in_doubt(self) -> bool:
        return self.state == UNKNOWN

    def adopt(self, checkpoint: int, newest: int) -> None:
        """Resume from `checkpoint`; ids go on after `newest`, the newest that the store ever held."""
        self.number = newest
        self.completed = checkpoint

    def begin(self) -> None:
        self.number += 1
        self.coordinators_due = self.system.coordinators
        self.subtasks_due = self.parts()
        self.ends_due = self.subtasks_due
        self.driver.started(self.number)

    def parts(self) -> int:
        """Count the subtasks that hand over a part."""
        return self.system.subtasks

    def ask_coordinators(self) -> None:
        for c in range(self.system.coordinators):
            self.system.snapshot[c].ask(self.number)

    def count_coordinator(self) -> None:
        self.coordinators_due -= 1

    def inject_barriers(self) -> None:
        for s in range(self.system.subtasks):
            self.tasks.barrier(s, self.system.attempt[s].identity, self.number)

    def count_subtask(
        self, checkpoint: int, subtask: int, is_final: bool, snapshot: Opaque
    ) -> None:
        self.has_acknowledged[subtask] = True
        self.subtasks_due -= 1
        if is_final:
            self.ends_due -= 1
        self.driver.keep(checkpoint, subtask, snapshot)
        for c in range(self.system.coordinators):
            self.system.gateway[c, subtask].reopen(checkpoint)

    def unseal(self) -> None:
        """Forget this barrier; here the subtasks commit nothing."""

    def gather_ledger(self) -> None:
        self.carry_commits()
        self.system.post_commit.carry(self.number)
        self.store()

    def carry_commits(self) -> None:
        self.system.committer.carry(self.number)

    def save(self) -> None:
        self.driver.save(self.number)

    def complete(self) -> None:
        self.tell_completed()
        self.system.committer.due(self.number)
        self.forget_parts()

    def tell_completed(self) -> None:
        self.completed = self.number
        self.failures = 0
        self.driver.completed(self.number)
        for c in range(self.system.coordinators):
            self.system.holder[c].checkpoint_complete(self.number)
        for s in range(self.system.subtasks):
            if self.system.attempt[s].is_running():
                self.tasks.complete(s, self.system.attempt[s].identity, self.number)
        self.system.lifecycle.checkpoint_completed(self.ends_due == 0)

    def fail(self, checkpoint: int, reason: Opaque) -> None:
        self.announce_abort(reason)
        if self.failures > self.system.tolerable_failures:
            self.failures = 0
            self.system.lifecycle.fail_globally(reason)
        self.settle_request()

    def abandon(self, reason: Opaque) -> None:
        self.announce_abort(reason)
        self.settle_request()

    def announce_abort(self, reason: Opaque) -> None:
        self.driver.aborted(self.number, reason)
        for c in range(self.system.coordinators):
            self.system.snapshot[c].cancel(self.number)
            for s in range(self.system.subtasks):
                self.system.gateway[c, s].reopen(self.number)
            self.system.holder[c].checkpoint_aborted(self.number)
        for s in range(self.system.subtasks):
            if self.system.attempt[s].is_running():
                self.tasks.aborted(s, self.system.attempt[s].identity, self.number)
        self.unseal()
        self.forget_parts()

    def report(self, checkpoint: int, reason: Opaque) -> None:
        """Say that the outcome is unknown; nothing is announced."""
        self.driver.unknown(checkpoint, reason)
        self.forget_parts()

    def report_end(self, reason: Opaque) -> None:
        """Say that the job ends before the outcome is known."""
        self.report(self.number, reason)

    def abandon_for_good(self, checkpoint: int, reason: Opaque) -> None:
        """Announce the abort, and end the job: what was refused would be refused again."""
        self.announce_abort(reason)
        self.system.lifecycle.give_up(reason)
        self.settle_request()

    def end_job(self, checkpoint: int, reason: Opaque) -> None:
        self.system.lifecycle.give_up(reason)

    def forget_parts(self) -> None:
        self.coordinators_due = 0
        self.subtasks_due = 0
        self.ends_due = 0
        for s in range(self.system.subtasks):
            self.has_acknowledged[s] = False

    def count_failure(self) -> None:
        self.failures += 1

    def settle_request(self) -> None:
        self.system.request.settle()
        self.system.lifecycle.checkpoint_over()
