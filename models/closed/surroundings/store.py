"""The store: which checkpoints are completed, with the claims I1 and I2 about each."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import STAY, Array, Bool, Int, Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.checkpoint import PENDING, TRIGGERING
from epochgate.models.committer import COMMITTING

if TYPE_CHECKING:
    from epochgate.models.closed.job import ClosedJob


class Store(Environment):
    """The store, the timer and the record of completed checkpoints: port `driver` of the
    checkpoint.
    """

    STATES = ("ready",)
    INITIAL = "ready"

    system: ClosedJob

    has_work: bool = Bool()
    """A checkpoint was given to it to store."""
    is_late_answer_due: bool = Bool()
    """A save that hung may answer after all."""
    begun: int = Int("checkpoints")
    """The checkpoint that it was told of, and not what has come of it; 0 for none."""
    has_part: list[bool] = Array(Bool(), "subtasks")
    """The subtask's part of the checkpoint under way was kept."""
    has_ledger: bool = Bool()
    has_debts: bool = Bool()
    """The checkpoint to be stored carries what is not committed; never so between two steps."""
    is_failure_due: bool = Bool()
    """The checkpoint under way has to fail in this step; never so between two steps."""
    failures_before: int = Int("failures")
    """How many checkpoints had failed in a row before that."""

    finish_save: Trigger
    fail_save: Trigger
    lose_save: Trigger
    lose_answer: Trigger
    refuse: Trigger
    expire_save: Trigger
    answer_late: Trigger
    expire: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("finish_save", "ready", STAY, "is_saving",
            "report_stored",                 "it is durable"),
        Row("fail_save",   "ready", STAY, "is_saving and may_fail",
            "spend_failure, report_failed",  "it is not"),
        Row("lose_save",   "ready", STAY, "is_saving and may_fail",
            "spend_failure, report_unknown", "it is not, and the store cannot tell"),
        Row("lose_answer", "ready", STAY, "is_saving and may_fail",
            "spend_failure, report_unknown", "it is durable, and the store cannot tell"),
        Row("refuse",      "ready", STAY, "is_saving and may_fail",
            "spend_failure, report_refused", "the committer could never commit it"),
        Row("expire_save", "ready", STAY, "is_saving and may_fail",
            "spend_failure, note_late, report_overdue", "it hangs"),
        Row("answer_late", "ready", STAY, "is_late",
            "report_late",                   "what hung answers after all"),
        Row("expire",      "ready", STAY, "is_running and may_expire",
            "spend_timeout, report_expired", "the checkpoint takes too long"),
    )
    # fmt: on

    def is_saving(self) -> bool:
        return self.has_work

    def may_fail(self) -> bool:
        return self.system.budget.has_failures()

    def spend_failure(self) -> None:
        self.system.budget.failures += 1

    def is_running(self) -> bool:
        return self.system.checkpoint.state == TRIGGERING or self.system.checkpoint.state == PENDING

    def may_expire(self) -> bool:
        return self.system.timeouts_cost == 0 or self.system.budget.has_failures()

    def spend_timeout(self) -> None:
        self.system.budget.failures += self.system.timeouts_cost

    def report_stored(self) -> None:
        self.has_work = False
        self.system.checkpoint.stored(self.system.checkpoint.number)

    def report_failed(self) -> None:
        self.has_work = False
        self.expect_failure()
        self.system.checkpoint.store_failed(self.system.checkpoint.number, "the store is broken")

    def report_unknown(self) -> None:
        self.has_work = False
        self.system.checkpoint.store_unknown(self.system.checkpoint.number, "no answer has come")

    def report_refused(self) -> None:
        self.has_work = False
        self.system.checkpoint.refused(self.system.checkpoint.number, "it cannot be committed")

    def note_late(self) -> None:
        self.is_late_answer_due = True

    def report_overdue(self) -> None:
        self.has_work = False
        self.system.checkpoint.expire_save(self.system.checkpoint.number, "no answer has come")

    def is_late(self) -> bool:
        return self.is_late_answer_due

    def report_late(self) -> None:
        self.is_late_answer_due = False
        self.system.checkpoint.stored(self.system.checkpoint.number)

    def report_expired(self) -> None:
        self.expect_failure()
        self.system.checkpoint.expire(self.system.checkpoint.number, "it took too long")

    def expect_failure(self) -> None:
        """Demand that the checkpoint under way fails in this step, and is counted."""
        self.is_failure_due = True
        self.failures_before = self.system.checkpoint.failures

    # port `driver` of the checkpoint

    def started(self, checkpoint: int) -> None:
        assert checkpoint == self.system.checkpoint.number, "each checkpoint is told by its number"
        self.begun = checkpoint

    def check_begun(self, checkpoint: int) -> None:
        assert checkpoint == self.begun, "what is told is told of the checkpoint that has begun"

    def keep(self, checkpoint: int, subtask: int, snapshot: int) -> None:
        self.check_begun(checkpoint)
        assert snapshot == self.system.process[subtask].part(checkpoint), (
            "what is kept is the subtask's part of this checkpoint"
        )
        self.has_part[subtask] = True

    def save(self, checkpoint: int) -> None:
        self.check_begun(checkpoint)
        assert self.has_ledger or self.system.committer.state != COMMITTING, (
            "a checkpoint carries what is not known to be committed"
        )
        assert self.has_debts or self.system.post_commit.owed.empty(), (
            "a checkpoint says which work after commits is owed"
        )
        self.has_ledger = False
        self.has_debts = False
        self.has_work = True

    def completed(self, checkpoint: int) -> None:
        self.check_begun(checkpoint)
        for c in range(self.system.coordinators):
            assert self.system.keeper[c].has_state, (
                "a completed checkpoint holds the state of every coordinator"
            )
        for s in range(self.system.subtasks):
            for c in range(self.system.coordinators):
                assert (
                    self.system.sender[c, s].snapshot_sent
                    <= self.system.process[s].snapshot_handled[c]
                ), "I1: what was sent before the coordinator's snapshot is in the subtask's"
                assert (
                    self.system.process[s].snapshot_handled[c]
                    <= self.system.sender[c, s].snapshot_sent
                ), "I2: what was sent after the coordinator's snapshot is not in the subtask's"
                assert (
                    self.system.process[s].snapshot_receipts[c]
                    <= self.system.sender[c, s].snapshot_heard
                ), "I7: what an operator has a receipt for is in its coordinator's snapshot"
                self.system.sender[c, s].completed_heard = self.system.sender[c, s].snapshot_heard
                self.system.process[s].completed_receipts[c] = self.system.process[
                    s
                ].snapshot_receipts[c]
                self.system.sender[c, s].completed_sent = self.system.sender[c, s].snapshot_sent
                self.system.process[s].completed_handled[c] = self.system.process[
                    s
                ].snapshot_handled[c]
        self.forget()

    def aborted(self, checkpoint: int, reason: int) -> None:
        self.check_begun(checkpoint)
        if self.is_failure_due:
            assert self.system.checkpoint.failures == self.failures_before + 1 or (
                self.failures_before == self.system.tolerable_failures
                and self.system.checkpoint.failures == 0
            ), "a checkpoint that has failed is counted, until there are too many"
            self.is_failure_due = False
            self.failures_before = 0
        self.forget()

    def forget(self) -> None:
        self.begun = 0
        for s in range(self.system.subtasks):
            self.has_part[s] = False
        for c in range(self.system.coordinators):
            self.system.keeper[c].has_state = False
        for s in range(self.system.subtasks):
            for c in range(self.system.coordinators):
                self.system.sender[c, s].snapshot_sent = 0
                self.system.process[s].snapshot_handled[c] = 0
                self.system.sender[c, s].snapshot_heard = 0
                self.system.process[s].snapshot_receipts[c] = 0
        if self.system.renumbered > 0:
            self.system.names.rename_marks()

    def unknown(self, checkpoint: int, reason: int) -> None:
        self.check_begun(checkpoint)
        self.has_work = False
        self.forget()
