"""Errors of savepoints: one type for each cause, each saying what to do next."""

from __future__ import annotations

from epochgate.errors import EpochgateError, UsageError


class SavepointPlaceTaken(UsageError):
    """A savepoint was to be written where something is already: place."""

    def __str__(self) -> str:
        return (
            f"{self.args[0]} is there already, and a savepoint is never written over anything. "
            "Give a path that does not exist (--to), or none for a place beside the checkpoints"
        )


class SavepointFailed(EpochgateError):
    """A savepoint could not be written: place, reason. What is there of it cannot be started from.

    The job and its checkpoints are as they were.
    """

    def __str__(self) -> str:
        return (
            f"the savepoint {self.args[0]} was not written: {self.args[1]}. The job and its "
            "checkpoints are as they were. Remove its remains and request it again"
        )


class NoSavepoint(UsageError):
    """There is no savepoint where one was to be read: place, what is there instead."""

    def __str__(self) -> str:
        return (
            f"{self.args[0]} is no savepoint: {self.args[1]}. Give the place that `epochgate "
            "savepoint` has printed"
        )


class SavepointIncomplete(UsageError):
    """A file that belongs to a checkpoint is missing, or was never noted: what is wrong."""


class SavepointOfAnotherJob(UsageError):
    """A savepoint was to be started from as another job: place, its job, the job that starts."""

    def __str__(self) -> str:
        place, job, started = self.args
        return (
            f"the savepoint {place} is of job {job!r}, and this is job {started!r}. A target tells "
            "by the job id what is committed, so another job would commit it again: start it under "
            "the same job id (an ingestion's is made of its source and target)"
        )


class CheckpointsNotFresh(UsageError):
    """A start from a savepoint was asked for where there are checkpoints: place, newest, savepoint.

    Going back to an older checkpoint there would be silent for what has been committed since.
    """

    def __str__(self) -> str:
        place, newest, savepoint = self.args
        return (
            f"{place} holds checkpoints up to {newest}, which did not begin with the savepoint "
            f"{savepoint}. Start from a savepoint with a checkpoint directory that is not there "
            "yet (--checkpoint-dir); or leave the savepoint out, to restore the newest of these"
        )
