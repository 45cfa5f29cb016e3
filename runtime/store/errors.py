"""Errors of stored checkpoints: one type for each cause, each saying what to do next.

Decides: which failures a caller can tell apart. Those that a user causes with a wrong directory
carry exit code 2 (`UsageError`). Leaves to others: whether the job fails, retries or goes on.
"""

from __future__ import annotations

from epochgate.errors import EpochgateError, UsageError


class CheckpointStoreError(EpochgateError):
    """The root of everything that a checkpoint store raises on purpose."""


class CheckpointNotStorable(CheckpointStoreError):
    """A checkpoint holds something that would not come back as it was; nothing was written."""


class CheckpointIdNotIncreasing(CheckpointStoreError):
    """A checkpoint was saved under an id that is not above all ids the store has ever seen."""


class CheckpointNotFound(CheckpointStoreError):
    """No checkpoint of this id is stored."""


class CheckpointDamaged(CheckpointStoreError):
    """A stored checkpoint is not what was written: `source` is its file, `reason` what failed."""

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(
            f"checkpoint {source} is damaged: {reason}. The disk or a program other than epochgate "
            "has changed it; restore it from a copy, or let the job resume from an earlier "
            "checkpoint"
        )
        self.source = source
        self.reason = reason


class NoWholeCheckpoint(CheckpointStoreError):
    """Checkpoints were taken, and none can be read: a start without one would repeat their rows."""


class CheckpointFormatUnknown(CheckpointStoreError, UsageError):
    """Written in a format version that this epochgate does not read."""


class CheckpointOfAnotherJob(CheckpointStoreError, UsageError):
    """The directory or the checkpoint belongs to another job."""


class CheckpointStoreInUse(CheckpointStoreError, UsageError):
    """Another driver that is alive holds the store."""


class CheckpointStoreUnusable(CheckpointStoreError, UsageError):
    """The store's directory cannot be created, listed or read."""


class CheckpointStoreLost(CheckpointStoreError):
    """A newer driver has claimed the store: this one must stop, and may not save any more."""


class CheckpointStoreClosed(CheckpointStoreError):
    """The store was used after `close`."""


class CheckpointSaveFailed(CheckpointStoreError):
    """The checkpoint was not stored and never will be; the earlier ones are as they were."""


class CheckpointStoreFull(CheckpointSaveFailed):
    """There was no space for the checkpoint; a later save works once there is."""


class CheckpointOutcomeUnknown(CheckpointStoreError):
    """The save failed after it may have taken effect, and could not be undone.

    The checkpoint may not be treated as completed nor as aborted: the driver has to fail the job,
    open the store again, and resume from what it finds. Until then the store refuses to save.
    """
