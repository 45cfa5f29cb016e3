"""The Parquet sink's global committer: one atomic step for each completed checkpoint.

Leaves every rule of the commit to the target. Runs on the job's commit thread.
"""

from __future__ import annotations

from epochgate.runtime import Committables, RetryLater
from epochgate.spark.counting_sink import CountingCommitter
from epochgate.spark.parquet_sink.committable import parsed
from epochgate.spark.parquet_sink.errors import DiskFull, TargetUnreachable
from epochgate.spark.parquet_sink.gathered import all_files, gathered_in
from epochgate.spark.parquet_sink.object_target import ObjectTarget
from epochgate.spark.parquet_sink.target import ParquetTarget


class ParquetCommitter(CountingCommitter):
    """Commits to a target that was claimed before; counts what is visible, and what it added."""

    def __init__(self, target: ParquetTarget | ObjectTarget) -> None:
        self.target = target
        visible = target.committed()
        self.rows_visible = sum(result.rows for result in visible)
        self.files_visible = sum(result.files for result in visible)

    def open(self, run_id: str, restored: dict[int, Committables]) -> None:
        """Remove what dead attempts have staged and no checkpoint refers to."""
        kept = [c for committables in restored.values() for c in all_files(committables)]
        self.target.remove_orphans(kept)

    def check(self, committables: Committables) -> None:
        """Refuse what is no committable before its checkpoint is stored."""
        parsed(committables)

    def commit(self, checkpoint_id: int, committables: Committables) -> bool:
        """Show the checkpoint's files, all at once; False if that was done. Raises RetryLater, and
        what the target's `commit` raises.
        """
        gathered = gathered_in(committables)
        files = [] if gathered else all_files(committables)
        try:
            result = self.target.commit(checkpoint_id, files, gathered)
        except (DiskFull, TargetUnreachable) as error:
            raise RetryLater(str(error)) from error
        if not result.already_committed:
            self.count(result.rows, result.files)
        return not result.already_committed

    def close(self) -> None:
        """Let the next run have the target."""
        self.target.release()
