"""The committer in a task of a sink into a table of files: gives each file its name in the table.

A file that the table's log does not name is not read. So a task of a driver that was replaced may
move files too, of whatever checkpoint, and nothing takes effect: the log's entry is the driver's,
and is fenced as in a job that commits there. Runs on the task's only thread.
"""

from __future__ import annotations

from collections.abc import Sequence

from epochgate.runtime import CommitRequest, RetryLater, TaskCommitter
from epochgate.runtime.filesystem import FileSystem
from epochgate.spark.parquet_sink.errors import DiskFull, translating
from epochgate.spark.tables.staged import StagedFiles


class TableTaskCommitter(TaskCommitter):
    """Of the table whose directory is `table`."""

    def __init__(self, table: str, files: FileSystem) -> None:
        self._table, self._staged = table, StagedFiles(files, table, table)

    def commit(self, requests: Sequence[CommitRequest]) -> None:
        """Look at each file, and move it. Raises RetryLater where the disk is full,
        CommittableDamaged or TargetNotWritable.
        """
        try:
            with translating(self._table, self._table):
                self._staged.move_from_task(requests)
        except DiskFull as error:
            raise RetryLater(str(error)) from error
