"""Commits in several steps without one of the rules: each variant must fail by one claim."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Ignore, Opaque, Row, machines
from epochgate.models.attempt import RUNNING, every_state_but
from epochgate.models.closed.committing import CommittingAgain, CommittingInSteps
from epochgate.models.closed.surroundings.committing_parts import LEDGER, TASKS
from epochgate.models.closed.surroundings.committing_steps import Way
from epochgate.models.closed.surroundings.renewed import (
    Attempts,
    CheckpointUnderWay,
    Collector,
    Committer,
    Lifecycle,
    TaskCommitter,
)

SIMPLE: dict[str, int] = {
    **CommittingInSteps.CONSTANTS,
    "subtasks": 1,
    "operators_before": 0,
    "operators_behind": 0,
}


class InconsiderateCommitter(TaskCommitter):
    """A committer that asks its task at any time."""

    def is_amid(self) -> bool:
        return False


class AskedAmid(CommittingInSteps):
    """Operators hand a checkpoint over between the barriers and the snapshots of the next."""

    subtask_committer: list[TaskCommitter] = machines(InconsiderateCommitter)


class ForgetfulCommitter(TaskCommitter):
    """A committer that takes what it has passed on for done, even if its attempt fails."""

    def go_back(self) -> None:
        self.passed.clear()


class NotPassedOnAgain(CommittingInSteps):
    """The operator behind a committer is restored, and never gets what the attempt before got."""

    CONSTANTS: ClassVar[dict[str, int]] = SIMPLE

    subtask_committer: list[TaskCommitter] = machines(ForgetfulCommitter)


class GenerousCollector(Collector):
    """A collector that takes whatever comes."""

    def is_new(self, subtask: int, checkpoint: int) -> bool:
        return True


class CollectedTwice(CommittingInSteps):
    """A restored subtask passes its part on a second time, before the others have."""

    CONSTANTS: ClassVar[dict[str, int]] = {**SIMPLE, "subtasks": 2}
    # What comes too late would be found first.
    STEPS = tuple(step for step in CommittingInSteps.STEPS if step.trigger != "late")

    committable_collector: Collector = machines(GenerousCollector)


class HastyCollector(Collector):
    """A collector that takes the first part for all."""

    def makes_whole(self, subtask: int, checkpoint: int) -> bool:
        return True


class MissingPart(CommittingInSteps):
    """A checkpoint is committed globally although a task has not committed its part."""

    CONSTANTS: ClassVar[dict[str, int]] = {**SIMPLE, "subtasks": 2}

    committable_collector: Collector = machines(HastyCollector)


class HastyLifecycle(Lifecycle):
    """A lifecycle whose tasks leave with their last checkpoint, as in a job without committers."""

    def has_committers(self) -> bool:
        return False


class LeftTooEarly(CommittingInSteps):
    """The tasks are gone that would commit what the last checkpoint holds."""

    CONSTANTS: ClassVar[dict[str, int]] = SIMPLE

    lifecycle: Lifecycle = machines(HastyLifecycle)


class SealingCheckpoint(CheckpointUnderWay):
    """An aborted checkpoint that leaves sealed what was passed on before its barrier."""

    def unseal(self) -> None:
        pass


class StillSealed(CommittingInSteps):
    """A checkpoint is aborted, and what it says is passed on is in no stored one."""

    CONSTANTS: ClassVar[dict[str, int]] = {**SIMPLE, "F": 2}

    checkpoint: CheckpointUnderWay = machines(SealingCheckpoint)


class ForgetfulWay(Way):
    """A start that knows of the tasks and of the ledger, and not of the operators' input."""

    def adopt(self) -> None:
        for k in range(self.system.checkpoints):
            if self.stored[k] == LEDGER:
                self.system.committer.adopt(k + 1, 0)
            elif self.stored[k] == TASKS:
                self.system.committable_collector.expect(k + 1)
                for s in range(self.system.subtasks):
                    self.system.parts[s].adopt(k + 1)


class InputForgotten(CommittingInSteps):
    """The restored checkpoint holds an earlier one in front of the operators, where it ends."""

    CONSTANTS: ClassVar[dict[str, int]] = {**SIMPLE, "operators_behind": 1}

    way: Way = machines(ForgetfulWay)


class OptimisticCommitter(TaskCommitter):
    """A committer that begins to count at 0 with each driver."""

    def enter_adopted(self, checkpoint: int, tries: int) -> None:
        self.waiting.push(checkpoint)


class TriesForgotten(CommittingAgain):
    """A commit that fails whenever it is tried is tried for ever, as its driver fails too."""

    CONSTANTS: ClassVar[dict[str, int]] = {**SIMPLE, "F": 2}

    subtask_committer: list[TaskCommitter] = machines(OptimisticCommitter)


class GullibleAttempt(Attempts):
    """An attempt that believes any process which says that its subtask has committed."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in Attempts.ROWS if row.trigger != "commit_done"),
        Row("commit_done",    RUNNING, STAY, None,
            "pass_committed", "the subtask has committed its part of a checkpoint"),
        Ignore("commit_done", every_state_but(RUNNING), None,
                              "the attempt is over, and its successor commits again"),
    )
    # fmt: on


class AnswerOfAnother(CommittingInSteps):
    """A process that was replaced answers, and its successor has committed nothing."""

    CONSTANTS: ClassVar[dict[str, int]] = SIMPLE

    attempt: list[Attempts] = machines(GullibleAttempt)


class SayingCheckpoint(CheckpointUnderWay):
    """A checkpoint that says at each subtask's barrier what the subtask has to commit."""

    def count_subtask(
        self, checkpoint: int, subtask: int, is_final: bool, snapshot: Opaque
    ) -> None:
        self.has_acknowledged[subtask] = True
        self.subtasks_due -= 1
        if is_final:
            self.ends_due -= 1
        self.driver.keep(checkpoint, subtask, snapshot)
        self.system.subtask_committer[subtask].carry(checkpoint)

    def carry_commits(self) -> None:
        self.system.stage_before.carry(self.number)
        self.system.committable_collector.carry(self.number)
        self.system.stage_behind.carry(self.number)
        self.system.committer.carry(self.number)


class SaidAtTheBarrier(CommittingInSteps):
    """Operators hand a checkpoint over between the barriers of two subtasks: one does not have it."""

    checkpoint: CheckpointUnderWay = machines(SayingCheckpoint)


class ForgetfulLedger(Committer):
    """A global committer whose ledger stays in the driver's memory."""

    def carry_ledger(self, checkpoint: int) -> None:
        pass


class LedgerForgotten(CommittingInSteps):
    """A driver dies while the sink is at a checkpoint that has taken each step before."""

    CONSTANTS: ClassVar[dict[str, int]] = SIMPLE

    committer: Committer = machines(ForgetfulLedger)
