"""The committer in a task of a sink into a table of files: gives each file its name in the table.

A file that the table's log does not name is not read. So a task of a driver that was replaced may
move files too, of whatever checkpoint, and nothing takes effect: the log's entry is the driver's,
and is fenced as in a job that commits there. Runs on the task's only thread.
"""

from __future__ import annotations

from collections.abc import Sequence

from epochgate.runtime import CommitRequest, RetryLater, TaskCommitter
from epochgate.runtime.objects.client import is_url
from epochgate.spark.parquet_sink.errors import DiskFull, translating
from epochgate.spark.tables.staged import Staged


class TableTaskCommitter(TaskCommitter):
    """Of the table in the directory or at the URL `table`."""

    def __init__(self, table: str, staged: Staged) -> None:
        self._table, self._staged = table, staged

    def commit(self, requests: Sequence[CommitRequest]) -> None:
        """Look at each file, and move it. Raises RetryLater where the disk is full or the object
        store does not answer, CommittableDamaged or TargetNotWritable.
        """
        try:
            with translating(self._table, self._table):
                self._staged.move_from_task(requests)
        except DiskFull as error:
            raise RetryLater(str(error)) from error
        except OSError as error:
            if not is_url(self._table):
                raise
            raise RetryLater(f"the object store at {self._table}: {error}") from error
