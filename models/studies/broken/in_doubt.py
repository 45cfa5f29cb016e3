"""Checkpoints of unknown outcome that are announced after all: each variant tells what the store
cannot tell, and must fail.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import Opaque, machines
from epochgate.models.checkpoint import Checkpoint
from epochgate.models.closed.resuming import ResumingJob


class AbortingCheckpoint(Checkpoint):
    """Ends the job, and takes a save of unknown outcome for one that has failed."""

    def report(self, checkpoint: int, reason: Opaque) -> None:
        self.driver.aborted(self.number, reason)
        for c in range(self.system.coordinators):
            self.system.holder[c].checkpoint_aborted(self.number)
        self.forget_parts()


class AnnouncedAbort(ResumingJob):
    """A coordinator that undoes what belongs to an aborted checkpoint is restored from it."""

    UNTAKEN: ClassVar[dict[str, str]] = {}

    checkpoint: Checkpoint = machines(AbortingCheckpoint)


class CompletingCheckpoint(Checkpoint):
    """Ends the job, and takes a save of unknown outcome for one that has succeeded."""

    def report(self, checkpoint: int, reason: Opaque) -> None:
        self.complete()


class AnnouncedCompletion(ResumingJob):
    """A coordinator that forgets what belongs to a completed checkpoint is restored from an older
    one.
    """

    UNTAKEN: ClassVar[dict[str, str]] = {}

    checkpoint: Checkpoint = machines(CompletingCheckpoint)
