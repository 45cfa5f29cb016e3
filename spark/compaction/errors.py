"""Errors that keep a target from being compacted, one exception type for each cause."""

from __future__ import annotations

from epochgate.errors import EpochgateError, UsageError


class NothingThere(UsageError):
    """No job of epochgate has written there: target."""

    def __str__(self) -> str:
        return (
            f"{self.args[0]!r} was not written by epochgate. Give the TARGET of `epochgate ingest`."
        )


class OthersCompact(UsageError):
    """The target is of a kind that is compacted by its own tools: target, with what."""

    def __str__(self) -> str:
        return f"{self.args[0]!r} is not compacted by epochgate: {self.args[1]}."


class CompactionRunning(UsageError):
    """Another process compacts the target: path, lock file."""

    def __str__(self) -> str:
        return (
            f"target {self.args[0]!r} is being compacted by another process, which holds the lock "
            f"{self.args[1]!r}. The lock ends with the process; nothing was changed."
        )


class TargetTooOld(UsageError):
    """A job of an earlier release may be writing, which would not wait: path, version."""

    def __str__(self) -> str:
        return (
            f"target {self.args[0]!r} was written by an earlier release (version {self.args[1]}), "
            "whose commits do not wait for a compaction. Let its job go on once with this release, "
            "then compact it."
        )


class ForeignFile(UsageError):
    """Something lies in the target that no job has put there: path."""

    def __str__(self) -> str:
        return (
            f"{self.args[0]!r} was not written by the target's job, and a compaction would lose "
            "it. Move it out of the target; nothing was changed."
        )


class LinksRefused(UsageError):
    """The file system has no hard links: path, reason."""

    def __str__(self) -> str:
        return (
            f"files cannot have a second name beside {self.args[0]!r} ({self.args[1]}), which a "
            "compaction needs for those that it leaves as they are. Nothing was changed."
        )


class RowsMissing(EpochgateError):
    """A merged file does not have the rows of those that it stands for: path, expected, found."""

    def __str__(self) -> str:
        path, expected, found = self.args
        return (
            f"{path!r} came to {found} rows instead of {expected}. Nothing was changed in the "
            "target; its files, or the disk, are damaged."
        )


class CompactionFailed(EpochgateError):
    """A step could not be done: target, reason."""

    def __str__(self) -> str:
        return (
            f"compacting {self.args[0]!r} failed: {self.args[1]}. Nothing is lost: readers see all "
            "of the compaction or nothing of it, and each row once. Mend the cause and run it "
            "again; it removes what is left."
        )


class CompactionReplaced(EpochgateError):
    """A later compaction has begun: URL."""

    def __str__(self) -> str:
        return (
            f"another compaction of {self.args[0]!r} has begun since, so this one may not exchange "
            "files any more. Let it end; nothing was changed."
        )


class CompactionOvertaken(EpochgateError):
    """The target had changed each time that the merged files were to take their place: path."""

    def __str__(self) -> str:
        return (
            f"{self.args[0]!r} has changed each time before the merged files were in their place: "
            "its job went back behind what was being merged, or another compaction was faster. "
            "Nothing was changed; try again."
        )
