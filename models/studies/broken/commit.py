"""Committers that leave something out, and what that does."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from epochgate.fsm.system import machines
from epochgate.models.closed.commits import CommitJob
from epochgate.models.closed.surroundings.commits import Checkpoint, Committer, Driver
from epochgate.models.closed.surroundings.target import Sink

ONE: dict[str, int] = {"subtasks": 1, "F": 1, "commit_retries": 0}


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
    """What is committed takes effect, and the checkpoint may never be completed."""

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


class AppendingSink(Sink):
    """A sink without keys."""

    def is_known(self, checkpoint: int) -> bool:
        return False


class Appending(CommitJob):
    """The driver does not learn that a commit has taken effect, and the next one repeats it."""

    CONSTANTS: ClassVar[dict[str, int]] = {**CommitJob.CONSTANTS, **ONE}

    sink: Sink = machines(AppendingSink)
