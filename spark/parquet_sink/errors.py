"""Errors of a target of Parquet files, one exception type per cause.

Every type keeps its facts as constructor arguments, so it survives being pickled between processes.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator

from epochgate.errors import EpochgateError, UsageError
from epochgate.runtime import AheadOfCheckpoint, CommitImpossible
from epochgate.spark.files.checkpoint_directory import CHECKPOINT_COLUMN, checkpoint_of


class TargetNotEmpty(UsageError):
    """The target holds files that this kind of sink has not put there: path, one of its names."""

    def __str__(self) -> str:
        path, name = self.args
        whose = f"it holds {name!r}, which this sink has not written"
        if name in ("_delta_log", "_epochgate"):
            whose = (
                f"its {name!r} is that of a Delta or Iceberg table, and this sink writes Parquet"
            )
        elif checkpoint_of(name) is not None:
            whose = f"its {name!r} holds Parquet files of another sink of epochgate"
        return (
            f"target {path!r} is not empty: {whose}. Give the sink of what is there, or a "
            "directory that is empty or does not exist."
        )


class TargetOfAnotherJob(UsageError):
    """The target belongs to another job: path, its job, this job."""

    def __str__(self) -> str:
        path, owner, job = self.args
        return (
            f"target {path!r} belongs to job {owner!r}, this is job {job!r}. To continue that job, "
            "give its source, and its --checkpoint-dir (checkpoint_directory in Python) if it has "
            "one; for a new job, give a new target."
        )


class TargetVersionUnknown(UsageError):
    """The target's marker is not one that this release reads: path, what it says, what to do."""

    def __str__(self) -> str:
        marker, reason, *way = self.args
        [way_on] = way or ["Continue with the release that wrote it"]
        return (
            f"the marker {marker!r} is not one that this release can read: {reason}. "
            f"{way_on}, or give a new target."
        )


class TargetLocked(UsageError):
    """Another job is writing to the target: path, lock file."""

    def __str__(self) -> str:
        return (
            f"target {self.args[0]!r} is being written by another job, which holds the lock "
            f"{self.args[1]!r}. Stop it first: the lock ends with its process, or in this process "
            "once the job's wait() has returned, after stop() or cancel() too."
        )


class TargetTakenOver(EpochgateError):
    """A later run has claimed the target, so this one must not commit: path, run, later run."""

    def __str__(self) -> str:
        path, run, owner = self.args
        return (
            f"run {run} may not commit to {path!r}: run {owner} has claimed it since. This driver "
            "was taken for dead and replaced; stop it. Nothing was changed."
        )


class TargetUnreachable(EpochgateError):
    """The object store did not answer, or with an error: URL, reason."""

    def __str__(self) -> str:
        return (
            f"the target {self.args[0]!r} did not take a commit: {self.args[1]}. Nothing committed "
            "is lost; the commit is tried again, also by the next start."
        )


class TargetAhead(AheadOfCheckpoint):
    """The target holds checkpoints newer than the restored: path, its last, restored."""

    def __str__(self) -> str:
        path, last, restored = self.args
        known = "no checkpoint" if restored is None else f"checkpoint {restored}"
        return (
            f"target {path!r} already holds checkpoint {last}, but the job starts from {known}: "
            "it would write the newer rows a second time. Give the --checkpoint-dir "
            f"(checkpoint_directory in Python) that holds checkpoint {last}, or give a new target, "
            "or withdraw the newer checkpoints from the target (they are written again)."
        )


class TargetCompacted(UsageError):
    """The job would go back behind what was compacted: path, the last compacted, restored."""

    def __str__(self) -> str:
        path, last, restored = self.args
        known = "no checkpoint" if restored is None else f"checkpoint {restored}"
        return (
            f"target {path!r} was compacted up to checkpoint {last}, but the job starts from "
            f"{known}: the rows since then cannot be told from older ones any more, so they "
            f"cannot be withdrawn. Give the --checkpoint-dir (checkpoint_directory in Python) that "
            f"holds checkpoint {last} or a newer one, or give a new target."
        )


class TargetBehind(UsageError):
    """The restored state belongs to a target that is gone: path, restored checkpoint."""

    def __str__(self) -> str:
        return (
            f"this job restores checkpoint {self.args[1]}, and target {self.args[0]!r} is new: "
            "the rows committed before would be missing from it. Restore the target, "
            "or start from the beginning with a new --checkpoint-dir (checkpoint_directory in "
            "Python)."
        )


class TargetNotWritable(UsageError):
    """The operating system refuses to write to the target or beside it: path, reason."""

    def __str__(self) -> str:
        return (
            f"cannot write to {self.args[0]!r}: {self.args[1]}. The job needs to write to the "
            "target and to the directory that holds it, where it stages files. Check the path and "
            "the permissions, or give a target in a directory of your own."
        )


class OtherFileSystem(UsageError):
    """Staging and target are on different devices, so nothing can be renamed: staging, target."""

    def __str__(self) -> str:
        return (
            f"{self.args[0]!r} and {self.args[1]!r} are on different file systems, so a checkpoint "
            "cannot become visible by one rename. Give a directory below the mount point as the "
            "target, not the mount point itself."
        )


class CommittableMissing(CommitImpossible):
    """A staged file that a checkpoint promised is not there: path, checkpoint."""

    def __str__(self) -> str:
        return (
            f"checkpoint {self.args[1]} needs the staged file {self.args[0]!r}, and it is gone. "
            "Was the staging directory cleaned by hand, or is it not shared by all machines? "
            "Put it back and start again; nothing of this checkpoint has become visible."
        )


class CommittableDamaged(CommitImpossible):
    """A staged file is not what its writer closed: path, expected, found."""

    def __str__(self) -> str:
        path, expected, found = self.args
        return (
            f"the staged file {path!r} is damaged: expected {expected}, found {found}. Nothing of "
            "its checkpoint has become visible. Check the disk, then start again from an earlier "
            "checkpoint."
        )


class TargetDamaged(CommittableDamaged):
    """A file of the target, or beside it, is not what the sink has written there: path, expected,
    found, the way on if there is another than a backup.
    """

    def __str__(self) -> str:
        path, expected, found, way_on = self.args
        way_on = way_on or "Put the file back from a backup, then start again."
        return (
            f"the file {path!r} of the target is missing or damaged: expected {expected}, found "
            f"{found}. Nothing was changed. {way_on}"
        )


class CommitConflict(CommitImpossible):
    """A checkpoint is asked for again with other files: checkpoint, its run, difference."""

    def __str__(self) -> str:
        checkpoint, run, difference = self.args
        return (
            f"checkpoint {checkpoint} was committed by run {run} with other files: {difference}. "
            "Two jobs use one target, or a state older than the target was restored. Nothing was "
            "changed; give each job a target of its own."
        )


class CommitOutOfOrder(CommitImpossible):
    """A checkpoint older than the last committed one would become visible: checkpoint, last."""

    def __str__(self) -> str:
        return (
            f"checkpoint {self.args[0]} cannot be committed after checkpoint {self.args[1]}, which "
            "the target already holds. A restored job must number its checkpoints from the last "
            "one on; this run may be one that was replaced. Nothing was changed."
        )


class OutputSchemaChanged(EpochgateError):
    """A batch for the target has other columns than those before: expected, found, where."""

    def __str__(self) -> str:
        expected, found, where = self.args
        return (
            f"the output's schema changes ({where}).\n  expected: {expected}\n  found:    {found}\n"
            "The first batch fixes it for the whole target. Let the transform return the same "
            "column names, order and types for every batch (a column without any value easily "
            "becomes null or float: cast it); without a transform, declare the types of columns "
            "that are inferred by --schema-hints (schema_hints in Python) in a new job with a new "
            "--checkpoint-dir; or give a new target."
        )


class ReservedColumn(EpochgateError):
    """The output has a column that readers would take for the target's own: its name."""

    def __str__(self) -> str:
        return (
            f"the output has a column {self.args[0]!r}, and readers of the target show the number "
            f"of a row's checkpoint as column {CHECKPOINT_COLUMN!r} (capitals do not count): the "
            "one would hide the other. Rename it, then start again."
        )


class DiskFull(EpochgateError):
    """No space or quota is left: path, reason."""

    def __str__(self) -> str:
        return (
            f"no space left for {self.args[0]!r}: {self.args[1]}. Nothing committed is lost. Make "
            "room, then start again with the same checkpoint directory (a commit may also simply "
            "be tried again)."
        )


FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""The error numbers that `DiskFull` stands for."""


@contextlib.contextmanager
def translating(target: str, working_directory: str, *, claims: bool = False) -> Iterator[None]:
    """Raise what an error of the operating system means; while claiming, each refuses."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise DiskFull(error.filename or target, error.strerror) from error
        if error.errno == errno.EXDEV:
            raise OtherFileSystem(working_directory, target) from error
        if claims and error.errno in (errno.EEXIST, errno.ENOTDIR):
            reason = _in_the_way(error.filename or target)
            raise TargetNotWritable(target, reason) from error
        if claims or error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise TargetNotWritable(error.filename or target, error.strerror) from error
        raise


def _in_the_way(path: str) -> str:
    """Return the one of the directories above that is none."""
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    return f"{path!r} is no directory"
