"""The table of rejected rows, beside the target: a second Parquet sink, of one known schema.

Decides when there is one: if bad rows are rejected, or a start before has rejected some and may
have left rows to commit. Both sinks commit the same checkpoints; readers may see the rejected rows
of a checkpoint shortly before or after its other rows. Runs in tasks, and on the driver.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from epochgate.runtime import CommitterOfSinks, OperatorContext, SinkStart
from epochgate.runtime.filesystem import FileSystem
from epochgate.spark.files.rejected import REJECTED_SCHEMA
from epochgate.spark.ingest.options import IngestOptions
from epochgate.spark.parquet_sink import (
    ParquetCommitter,
    ParquetSink,
    ParquetTarget,
    working_directory_of,
)
from epochgate.spark.parquet_sink.sink import ParquetSinkWriter

ROWS: Final = "rows"
REJECTS: Final = "rejects"
"""The label of the sink, and the id of its operator."""


@dataclass(frozen=True)
class RejectSink(ParquetSink):
    """Writes rejected rows to the directory `target`."""

    def create_writer(self, context: OperatorContext, state: bytes | None) -> ParquetSinkWriter:
        """One that needs to ask for no schema."""
        writer = super().create_writer(context, state)
        writer.begin(REJECTED_SCHEMA)
        return writer

    def create_committer(self, start: SinkStart) -> ParquetCommitter:
        """Claim the table, which may be new to a job that goes on; raises as `ParquetSink` does."""
        target = ParquetTarget(self.target, start.job_id, start.run_id, files=self.files)
        target.claim(
            start.restored_checkpoint, withdraw_newer=start.may_withdraw, may_begin_late=True
        )
        try:
            return ParquetCommitter(target)
        except BaseException:
            target.release()
            raise


def reject_sink(options: IngestOptions, files: FileSystem | None) -> RejectSink | None:
    """The sink of the table; none if this start has nothing to do with one."""
    path = options.rejected_path
    if options.on_bad_row == "reject" or os.path.isdir(working_directory_of(path)):
        return RejectSink(path, files)
    return None


class IngestCommitter(CommitterOfSinks):
    """The job's committer: of the rows, and of rejected ones where there is a table of them."""

    def __init__(self, rows: ParquetCommitter, rejects: ParquetCommitter | None) -> None:
        super().__init__({ROWS: rows} if rejects is None else {ROWS: rows, REJECTS: rejects})
        self._rows, self._rejects = rows, rejects

    def metrics(self) -> dict[str, int | float]:
        """The figures of the rows, and how many this run has rejected."""
        rejected = 0 if self._rejects is None else self._rejects.rows_committed
        return {**self._rows.metrics(), "rows_rejected": rejected}
