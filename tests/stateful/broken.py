"""Variants of the machines with one guard, action or row broken, and the invariants that each
breaks: the suite must find all of them.
"""

from __future__ import annotations

from dataclasses import replace

from epochgate.fsm import Ignore, Opaque, machines
from epochgate.models import (
    Attempt,
    Checkpoint,
    CoordinatorSnapshot,
    Gateway,
    GlobalCommitter,
    Job,
)
from epochgate.models.checkpoint import PENDING
from epochgate.models.studies.broken.in_doubt import AbortingCheckpoint, CompletingCheckpoint


class GatewayThatDoesNotClose(Gateway):
    """It sends on what it should hold."""

    def hold(self, attempt: int, event: Opaque) -> None:
        self.pass_on(event)


class JobWithoutValve(Job):
    gateway: dict[tuple[int, int], Gateway] = machines(GatewayThatDoesNotClose)


REFUSED = (
    ("acknowledge", "not is_current"),
    ("acknowledge", "is_current and not is_due"),
)


class CheckpointOfAnyAcknowledgement(Checkpoint):
    """A late acknowledgement of an earlier checkpoint counts for the one under way."""

    ROWS = (
        *(
            replace(row, when=row.when.removeprefix("is_current and "))
            if row.trigger == "acknowledge" and row.when and not row.is_ignored
            else row
            for row in Checkpoint.ROWS
            if (row.trigger, row.when) not in REFUSED
        ),
        Ignore("acknowledge", PENDING, "not is_due", "a repeated acknowledgement"),
    )

    count = Checkpoint.count_subtask

    def count_subtask(
        self, checkpoint: int, subtask: int, is_final: bool, snapshot: Opaque
    ) -> None:
        self.count(self.number, subtask, is_final, snapshot)


class JobOfAnyAcknowledgement(Job):
    checkpoint: Checkpoint = machines(CheckpointOfAnyAcknowledgement)


class GatewayThatHandsOn(Gateway):
    """Events that were held for a failed attempt wait for its successor."""

    def pass_on(self, event: Opaque) -> None:
        if self.reaches_attempt():
            self.put_on_wire(self.attempt, event)
        else:
            self.held.push(event)


class JobThatHandsOn(Job):
    gateway: dict[tuple[int, int], Gateway] = machines(GatewayThatHandsOn)


class GatewayOfAnyAttempt(Gateway):
    """It does not ask for which attempt a send was meant."""

    def is_bound(self, attempt: int) -> bool:
        return True


class JobOfAnyAttempt(Job):
    gateway: dict[tuple[int, int], Gateway] = machines(GatewayOfAnyAttempt)


class SnapshotWithoutWaiting(CoordinatorSnapshot):
    """It does not wait for what is on its way."""

    def has_in_flight(self) -> bool:
        return False


class JobWithoutWaiting(Job):
    snapshot: list[CoordinatorSnapshot] = machines(SnapshotWithoutWaiting)


class CheckpointThatCountsTwice(Checkpoint):
    """A repeated acknowledgement counts for a subtask that has not acknowledged."""

    def is_due(self, checkpoint: int, subtask: int) -> bool:
        return True


class JobThatCountsTwice(Job):
    checkpoint: Checkpoint = machines(CheckpointThatCountsTwice)


class CheckpointThatStaysShut(Checkpoint):
    """An abort does not reopen the gateways of subtasks that have not acknowledged."""

    def announce_abort(self, reason: Opaque) -> None:
        self.driver.aborted(self.number, reason)
        for c in range(self.system.coordinators):
            self.system.snapshot[c].cancel(self.number)
            self.system.holder[c].checkpoint_aborted(self.number)
        for s in range(self.system.subtasks):
            if self.system.attempt[s].is_running():
                self.tasks.aborted(s, self.system.attempt[s].identity, self.number)
        self.forget_parts()


class JobThatStaysShut(Job):
    checkpoint: Checkpoint = machines(CheckpointThatStaysShut)


class AttemptThatTellsNoCoordinator(Attempt):
    """A coordinator does not learn that a subtask went back."""

    def reset_coordinators(self) -> None:
        """Forgotten."""


class JobThatTellsNoCoordinator(Job):
    attempt: list[Attempt] = machines(AttemptThatTellsNoCoordinator)


class AttemptOfAnyProcess(Attempt):
    """Whatever process speaks is believed."""

    def speaks(self, identity: int) -> bool:
        return True


class JobOfAnyProcess(Job):
    attempt: list[Attempt] = machines(AttemptOfAnyProcess)


class JobThatAbortsInDoubt(Job):
    checkpoint: Checkpoint = machines(AbortingCheckpoint)


class JobThatCompletesInDoubt(Job):
    checkpoint: Checkpoint = machines(CompletingCheckpoint)


class CommitterWithoutStore(GlobalCommitter):
    """Its ledger is in no checkpoint."""

    def carry_ledger(self, checkpoint: int) -> None:
        """Forgotten."""


class JobWithoutStoredLedger(Job):
    committer: GlobalCommitter = machines(CommitterWithoutStore)


class CommitterThatBeginsEmpty(GlobalCommitter):
    """It does not take over the ledger of the restored checkpoint."""

    ROWS = tuple(
        replace(row, after=None) if row.trigger == "adopt" else row for row in GlobalCommitter.ROWS
    )


class JobThatBeginsWithoutLedger(Job):
    committer: GlobalCommitter = machines(CommitterThatBeginsEmpty)


BROKEN: dict[str, tuple[type[Job], tuple[str, ...]]] = {
    "a gateway that does not close": (JobWithoutValve, ("I2",)),
    "a late acknowledgement ignores its checkpoint": (JobOfAnyAcknowledgement, ("I1", "output")),
    "held events go to the next attempt": (JobThatHandsOn, ("I3", "I4")),
    "sends to the past are delivered": (JobOfAnyAttempt, ("I3",)),
    "no checkpoint waits for what is on its way": (JobWithoutWaiting, ("I1", "I6")),
    "a repeated acknowledgement counts": (JobThatCountsTwice, ("I1", "I6")),
    "an abort leaves the gateways shut": (JobThatStaysShut, ("I4", "I5", "I6")),
    "a coordinator is not told of a reset": (JobThatTellsNoCoordinator, ("I1", "contract")),
    "a checkpoint in doubt is announced as aborted": (JobThatAbortsInDoubt, ("I8",)),
    "a checkpoint in doubt is announced as completed": (JobThatCompletesInDoubt, ("I8", "output")),
    "the ledger is in no checkpoint": (JobWithoutStoredLedger, ("ledger", "output")),
    "a start has no ledger": (JobThatBeginsWithoutLedger, ("ledger", "output")),
    "every process is believed": (JobOfAnyProcess, ("I1", "I3", "I6", "contract", "processes")),
}
"""What is broken -> the job, and the invariants one of which must be found broken."""
