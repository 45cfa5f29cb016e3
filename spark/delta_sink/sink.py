"""The Delta sink: files staged by tasks beside the table's, and shown by one entry of its log.

Puts together what the other modules decide. Runs in tasks and on the driver.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from epochgate.runtime import (
    Committables,
    Committer,
    CoordinatorProvider,
    OperatorContext,
    SinkStart,
)
from epochgate.runtime.filesystem import FileSystem
from epochgate.spark.counting_sink import CountingCommitter, CountingSink
from epochgate.spark.delta_sink.log import DeltaLog
from epochgate.spark.delta_sink.target import DeltaTarget
from epochgate.spark.delta_sink.types import DELTA
from epochgate.spark.parquet_sink.committable import Committable, total_rows
from epochgate.spark.parquet_sink.schema_coordinator import SchemaProvider
from epochgate.spark.parquet_sink.staging import ROLL_BYTES
from epochgate.spark.tables.writer import TableSinkWriter


class DeltaCommitter(CountingCommitter):
    """Commits to a table that was claimed before."""

    def __init__(self, target: DeltaTarget) -> None:
        self.target = target
        self.rows_visible = target.rows()

    def open(self, run_id: str, restored: dict[int, Committables]) -> None:
        """Remove what dead attempts have staged and no checkpoint refers to."""
        self.target.remove_orphans([c for part in restored.values() for c in _parsed(part)])

    def check(self, committables: Committables) -> None:
        """Refuse files of different schemas before their checkpoint is stored."""
        self.target.require_one_schema(_parsed(committables))

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        """Show the checkpoint's files, all at once; an error of the library is tried again."""
        files = _parsed(committables)
        if self.target.commit(checkpoint_id, files):
            self.count(total_rows(files), len(files))

    def close(self) -> None:
        """Let the next run have the table."""
        self.target.release()


@dataclass(frozen=True)
class DeltaSink(CountingSink):
    """Writes to the Delta table in the directory `path`, which may be there already.

    file_bytes: a file ends once it is as large, or with its checkpoint. `log` and `files`: with
    what the driver writes, for tests.
    """

    path: str
    file_bytes: int = ROLL_BYTES
    log: Callable[[str], DeltaLog] = DeltaLog
    files: FileSystem | None = None

    def create_writer(self, context: OperatorContext, state: bytes | None) -> TableSinkWriter:
        """It has no state: what is not handed over is read again by the attempt that goes back."""
        return TableSinkWriter(os.path.abspath(self.path), DELTA, context, self.file_bytes)

    def create_committer(self, start: SinkStart) -> DeltaCommitter:
        """Claim the table; raises what `DeltaTarget.claim` raises, or ExtraMissing."""
        target = DeltaTarget(self.path, start.job_id, start.run_id, log=self.log, files=self.files)
        target.claim(start.restored_checkpoint)
        try:
            return DeltaCommitter(target)
        except BaseException:
            target.release()
            raise

    def create_coordinator(self, operator_id: str, committer: Committer) -> CoordinatorProvider:
        """Of the schema: that of the table, or else of the first batch.

        Raises TypeError for a committer of another sink.
        """
        if not isinstance(committer, DeltaCommitter):
            raise TypeError(f"a DeltaSink has no {type(committer).__name__}")
        schema = committer.target.schema()
        visible = None if schema is None else schema.serialize().to_pybytes()
        return SchemaProvider(operator_id, visible)


def _parsed(committables: Committables) -> list[Committable]:
    return [Committable.from_list(value) for items in committables.values() for value in items]
