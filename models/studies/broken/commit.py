"""Committers that leave something out, and what that does."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from epochgate.fsm.system import machines
from epochgate.models.closed.commits import CommitJob, CommitsInDoubt, HangingWork
from epochgate.models.closed.surroundings.commits import (
    Checkpoint,
    Committer,
    Driver,
    PostCommitWork,
)
from epochgate.models.closed.surroundings.target import Sink

ONE: dict[str, int] = {"subtasks": 1, "F": 1, "commit_retries": 0, "after_commit": 0}
WITH_WORK: dict[str, int] = {**ONE, "after_commit": 1}


class SilentCommitter(Committer):
    """A committer whose ledger stays in the driver's memory."""

    def carry_ledger(self, checkpoint: int) -> None:
        pass


class UnstoredLedger(CommitJob):
    """The driver dies after the second checkpoint is stored and before the first is committed."""

    CONSTANTS: ClassVar[dict[str, int]] = {**CommitJob.CONSTANTS, **ONE}

    committer: Committer = machines(SilentCommitter)


class GenerousCommitter(Committer):
    """A committer that takes an answer for everything in the ledger."""

    def settle(self) -> None:
        self.covered.drain(self.waiting)
        for checkpoint in self.covered.take_all():
            self.sink.settled(checkpoint)
            self.system.post_commit.owe(checkpoint)


class RemovedTooMuch(CommitJob):
    """A checkpoint is completed during a commit that does not cover it, and leaves the ledger."""

    CONSTANTS: ClassVar[dict[str, int]] = {**CommitJob.CONSTANTS, **ONE}

    committer: Committer = machines(GenerousCommitter)


class HastyCheckpoint(Checkpoint):
    """A checkpoint that is committed when its parts are there."""

    def save(self) -> None:
        self.system.committer.carry(self.number)
        self.system.sink.is_held[self.number - 1] = True
        self.system.committer.due(self.number)

    def complete(self) -> None:
        self.clear()


class EarlyCommit(CommitJob):
    """A commit takes effect, and the checkpoint may never be completed."""

    CONSTANTS: ClassVar[dict[str, int]] = {**CommitJob.CONSTANTS, **ONE}

    checkpoint: Checkpoint = machines(HastyCheckpoint)


class ForgetfulDriver(Driver):
    """A start that knows of the restored checkpoint and not of its ledger."""

    def adopt_ledger(self) -> None:
        pass


class ForgottenLedger(CommitJob):
    """The restored checkpoint carries an earlier one, which is committed no more."""

    CONSTANTS: ClassVar[dict[str, int]] = {**CommitJob.CONSTANTS, **ONE}

    driver: Driver = machines(ForgetfulDriver)


class GullibleCommitter(Committer):
    """A committer that takes any answer for the answer to its last commit."""

    def is_asked(self, checkpoint: int, tries: int) -> bool:
        return True


class LateAnswer(CommitJob):
    """An answer that comes a second time counts for the next commit."""

    CONSTANTS: ClassVar[dict[str, int]] = {**CommitJob.CONSTANTS, **ONE}
    # It may change something, so that it is seen what that leads to.
    STEPS = tuple(replace(step, is_stuttering=False) for step in CommitJob.STEPS)

    committer: Committer = machines(GullibleCommitter)


class ForgetfulAdoption(Committer):
    """A committer that takes the tries of the last checkpoint of the ledger for all of it."""

    def enter_adopted(self, checkpoint: int, tries: int) -> None:
        self.tries = tries
        self.waiting.push(checkpoint)


class TriesOfTheLast(CommitJob):
    """The oldest checkpoint of the restored ledger was tried, and a newer one was not."""

    CONSTANTS: ClassVar[dict[str, int]] = {
        **CommitJob.CONSTANTS,
        **ONE,
        "wanted": 3,
        "F": 2,
        "commit_retries": 1,
    }

    committer: Committer = machines(ForgetfulAdoption)


class AppendingSink(Sink):
    """A sink without keys."""

    def is_known(self, checkpoint: int) -> bool:
        return False


class Appending(CommitJob):
    """The driver does not learn that a commit has taken effect, and the next one repeats it."""

    CONSTANTS: ClassVar[dict[str, int]] = {**CommitJob.CONSTANTS, **ONE}

    sink: Sink = machines(AppendingSink)


class SinkOfARun(Sink):
    """A sink whose number belongs to a run: the next driver has another."""

    def keep_number(self) -> None:
        self.last = 0


class KeyOfARun(CommitJob):
    """The next driver commits the restored checkpoint again, and the target does not know it."""

    CONSTANTS: ClassVar[dict[str, int]] = {**CommitJob.CONSTANTS, **ONE}

    sink: Sink = machines(SinkOfARun)


class LastSeenSink(Sink):
    """A sink that takes the number seen last for the greatest."""

    def is_known(self, checkpoint: int) -> bool:
        return checkpoint == self.last


class LastSeen(CommitJob):
    """A driver commits two checkpoints, and the next driver the older of them again."""

    CONSTANTS: ClassVar[dict[str, int]] = {**CommitJob.CONSTANTS, **ONE}

    sink: Sink = machines(LastSeenSink)


class ThriftySink(Sink):
    """A shell that stores no ledger entry without committables."""

    def carry(self, checkpoint: int, earlier: int, tries: int) -> None:
        if not self.system.checkpoint.is_empty(earlier):
            self.system.checkpoint.carry(earlier, tries)


class SkippedEmpty(CommitJob):
    """An empty checkpoint is forgotten with the driver that has not committed it."""

    CONSTANTS: ClassVar[dict[str, int]] = {**CommitJob.CONSTANTS, **ONE}

    sink: Sink = machines(ThriftySink)


class HastyDriver(Driver):
    """A driver whose job has finished once its last checkpoint is completed."""

    def is_done(self) -> bool:
        return (
            self.is_working()
            and self.system.store.completed >= self.system.wanted
            and self.is_settled()
        )


class FinishedTooEarly(CommitJob):
    """The last committables come behind the end of the input, and their job has gone by then."""

    CONSTANTS: ClassVar[dict[str, int]] = {**CommitJob.CONSTANTS, **ONE}

    driver: Driver = machines(HastyDriver)


class OpenSink(Sink):
    """A target that takes a commit of any driver."""

    def refuses(self) -> bool:
        return False


class Unfenced(CommitJob):
    """A driver that was taken for dead commits after the next one has begun."""

    CONSTANTS: ClassVar[dict[str, int]] = {**CommitJob.CONSTANTS, **ONE}

    sink: Sink = machines(OpenSink)


class KeepingSink(Sink):
    """A target that keeps what is newer than the restored checkpoint."""

    def withdraw(self) -> None:
        pass


class SilentlyBack(CommitJob):
    """The newest checkpoint is lost, and what it made visible is written once more."""

    CONSTANTS: ClassVar[dict[str, int]] = {**CommitJob.CONSTANTS, **ONE, "F": 2}

    sink: Sink = machines(KeepingSink)


class GenerousPerson(Committer):
    """A committer that gives up everything in the ledger at once."""

    def drop(self, checkpoint: int) -> None:
        for held in self.waiting.take_all():
            self.sink.forgone(held)


class GivenUpTogether(CommitsInDoubt):
    """A person gives up one commit, and loses those before and after it."""

    CONSTANTS: ClassVar[dict[str, int]] = {**CommitsInDoubt.CONSTANTS, "F": 1, "after_commit": 0}

    committer: Committer = machines(GenerousPerson)


class StubbornCommitter(Committer):
    """A committer that keeps in its ledger what was given up."""

    def drop(self, checkpoint: int) -> None:
        self.sink.forgone(checkpoint)


class GivenUpInVain(CommitsInDoubt):
    """The next start commits what a person has given up."""

    CONSTANTS: ClassVar[dict[str, int]] = {**CommitsInDoubt.CONSTANTS, "F": 1, "after_commit": 0}

    committer: Committer = machines(StubbornCommitter)


class SilentWork(PostCommitWork):
    """Debts that stay in the driver's memory."""

    def record_debts(self, checkpoint: int) -> None:
        pass


class ForgottenDebt(CommitJob):
    """The driver dies after the work was put off, and a later checkpoint says nothing of it."""

    CONSTANTS: ClassVar[dict[str, int]] = {**CommitJob.CONSTANTS, **WITH_WORK}

    post_commit: PostCommitWork = machines(SilentWork)


class SkippingWork(PostCommitWork):
    """Work that has failed in every try is left out."""

    def begin(self) -> None:
        newest = 0
        for checkpoint in self.owed.take_all():
            if newest > 0:
                self.worker.release(newest)
            newest = checkpoint
        self.owed.push(newest)
        self.tries = 0
        self.worker.work(self.owed.head(), self.tries)


class SkippedWork(CommitJob):
    """The work of a commit has failed, and that of the next is done in its place."""

    CONSTANTS: ClassVar[dict[str, int]] = {**CommitJob.CONSTANTS, **WITH_WORK}

    post_commit: PostCommitWork = machines(SkippingWork)


class WaitingCheckpoint(Checkpoint):
    """A checkpoint that begins once the work after the last commit is done."""

    def may_begin(self) -> bool:
        return (
            self.system.driver.is_working()
            and self.system.store.completed < self.system.wanted
            and self.system.post_commit.is_settled()
        )


class WorkInTheWay(HangingWork):
    """Work that never ends holds up the checkpoints behind it, as after a commit of Flink's."""

    CONSTANTS: ClassVar[dict[str, int]] = {**CommitJob.CONSTANTS, **WITH_WORK}

    checkpoint: Checkpoint = machines(WaitingCheckpoint)
