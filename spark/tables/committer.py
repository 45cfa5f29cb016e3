"""The driver's side of a sink into a table: one commit for each completed checkpoint.

Leaves every rule of the commit to the table's target. Runs on the job's commit thread.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Generic, Protocol, TypeVar

from epochgate.runtime import Committables
from epochgate.spark.counting_sink import CountingCommitter, read_committables
from epochgate.spark.parquet_sink.committable import Committable, parsed, total_rows
from epochgate.spark.parquet_sink.gathered import all_files, gathered_in
from epochgate.spark.tables.merging_writer import to_be_merged


class TableTarget(Protocol):
    """A table that was claimed by this run."""

    def rows(self) -> int:
        """Return the rows that are visible."""

    def remove_orphans(self, keep: Iterable[Committable]) -> list[str]:
        """Remove staged files that no checkpoint refers to; return their paths."""

    def require_one_schema(self, committables: Sequence[Committable]) -> None:
        """Raise OutputSchemaChanged for files that could not be committed together."""

    def commit(self, checkpoint: int, committables: Sequence[Committable]) -> bool:
        """Show the files, all at once; return False if that was done. Raises RetryLater."""

    def discard(self, files: Iterable[Committable]) -> None:
        """Remove staged files to which the table does not refer. Raises OSError."""

    def release(self) -> None:
        """Let go of the table."""


Target = TypeVar("Target", bound=TableTarget)


class TableCommitter(CountingCommitter, Generic[Target]):
    """Commits to a table that was claimed before."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.rows_visible = target.rows()

    def open(self, run_id: str, restored: dict[int, Committables]) -> None:
        """Remove what dead attempts have staged and no checkpoint refers to."""
        kept = [one for part in restored.values() for one in self.files_of(part)]
        self.target.remove_orphans(kept)

    def files_of(self, committables: Committables) -> list[Committable]:
        """Read the files that were handed over. Raises CommittableUnreadable."""
        return all_files(committables)

    def check(self, committables: Committables) -> None:
        """Refuse files whose columns cannot be in one table before their checkpoint is stored."""
        self.target.require_one_schema(parsed(committables))

    def commit(self, checkpoint_id: int, committables: Committables) -> bool:
        """Show the checkpoint's files, all at once; False if that was done. Raises RetryLater."""
        files = self.files_of(committables)
        is_new = self.show(checkpoint_id, files, are_moved=bool(gathered_in(committables)))
        if is_new:
            self.count(total_rows(files), len(files))
        return is_new

    def show(self, checkpoint_id: int, files: Sequence[Committable], *, are_moved: bool) -> bool:
        """Show the files; `are_moved`: tasks have given them their names in the table."""
        return self.target.commit(checkpoint_id, files)

    def close(self) -> None:
        """Let the next run have the table."""
        self.target.release()


class MergingCommitter(TableCommitter[Target]):
    """Merges rows into a table that was claimed before."""

    def files_of(self, committables: Committables) -> list[Committable]:
        """Read the files that were staged to be merged. Raises CommittableUnreadable."""
        return read_committables(committables, to_be_merged)

    def check(self, committables: Committables) -> None:
        """In addition, refuse rows of a key of which none is the last."""
        self.target.require_one_schema(self.files_of(committables))

    def commit(self, checkpoint_id: int, committables: Committables) -> bool:
        """Merge the checkpoint's rows, all at once; False if that was done. Raises RetryLater."""
        files = self.files_of(committables)
        is_new = self.show(checkpoint_id, files, are_moved=False)
        if is_new:
            self.count(total_rows(files), added=self.target.rows() - self.rows_visible)
        # What stays where this fails is removed by a later start.
        with contextlib.suppress(OSError):
            self.target.discard(files)
        return is_new
