"""The table of rejected rows, beside the target: a second Parquet sink, of one known schema.

Decides when there is one: if bad rows are rejected, or a start before has rejected some and may
have left rows to commit. Both sinks commit the same checkpoints; readers may see the rejected rows
of a checkpoint shortly before or after its other rows. Runs in tasks, and on the driver.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from epochgate.runtime import CommitterOfSinks, SinkStart
from epochgate.runtime.filesystem import FileSystem
from epochgate.runtime.objects.client import ObjectStore, is_url
from epochgate.spark.counting_sink import CountingCommitter, CountingSink
from epochgate.spark.files.rejected import REJECTED_SCHEMA
from epochgate.spark.ingest.options import IngestOptions
from epochgate.spark.parquet_sink import ParquetCommitter, ParquetSink, working_directory_of

ROWS: Final = "rows"
REJECTS: Final = "rejects"
"""The label of the sink, and the id of its operator."""


def reject_sink(
    options: IngestOptions,
    files: FileSystem | None,
    open_objects: Callable[[str], ObjectStore],
) -> ParquetSink | None:
    """The sink of the table; none if this start has nothing to do with one."""
    path = options.rejected_path
    has_begun = not is_url(path) and os.path.isdir(working_directory_of(path))
    if options.on_bad_row == "fail" and not has_begun:
        return None
    return ParquetSink(
        path,
        options.file_bytes,
        files,
        open_objects,
        schema=REJECTED_SCHEMA,
        may_begin_late=True,
        commit_in=options.commit_in,
    )


class IngestCommitter(CommitterOfSinks):
    """The job's committer: of the rows, and of rejected ones where there is a table of them."""

    def __init__(self, rows: CountingCommitter, rejects: ParquetCommitter | None) -> None:
        super().__init__({ROWS: rows} if rejects is None else {ROWS: rows, REJECTS: rejects})
        self.rows, self.rejects = rows, rejects

    def metrics(self) -> dict[str, int | float]:
        """The figures of the rows, and how many this run has rejected."""
        rejected = 0 if self.rejects is None else self.rejects.rows_committed
        return {**self.rows.metrics(), "rows_rejected": rejected}


def claim_both(
    rows: CountingSink, rejects: ParquetSink | None, start: SinkStart
) -> IngestCommitter:
    """Claim the target, and the table if there is one; nothing stays claimed if one is refused."""
    committer = rows.create_committer(start.of_sink(ROWS, is_first=True))
    try:
        return IngestCommitter(
            committer,
            None if rejects is None else rejects.create_committer(start.of_sink(REJECTS)),
        )
    except BaseException:
        committer.close()
        raise
