"""The Delta sink: files staged by tasks beside the table's, and shown by one entry of its log.

Puts together what the other modules decide. Runs in tasks and on the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from epochgate.errors import UsageError
from epochgate.runtime import (
    CommittableOperator,
    Committer,
    CoordinatorProvider,
    OperatorContext,
    SinkStart,
    TaskCommitter,
)
from epochgate.runtime.filesystem import FileSystem, LocalFileSystem
from epochgate.runtime.objects.client import ObjectStore, is_url, open_url
from epochgate.spark.counting_sink import CountingSink
from epochgate.spark.delta_sink.features import NOT_WIDENED
from epochgate.spark.delta_sink.log import DeltaLog
from epochgate.spark.delta_sink.target import PARTITIONED, DeltaTarget, place_of
from epochgate.spark.files.evolution import SchemaEvolution
from epochgate.spark.parquet_sink.committable import Committable
from epochgate.spark.parquet_sink.gathered import CommitIn, Gathering
from epochgate.spark.parquet_sink.partitions import require_partitionable
from epochgate.spark.parquet_sink.schema_coordinator import SchemaProvider
from epochgate.spark.parquet_sink.staging import ROLL_BYTES
from epochgate.spark.tables.committer import TableCommitter
from epochgate.spark.tables.staged import StagedFiles
from epochgate.spark.tables.staged_objects import StagedObjects
from epochgate.spark.tables.task_committer import TableTaskCommitter
from epochgate.spark.tables.writer import TableSinkWriter
from epochgate.spark.values.fitting import require_held
from epochgate.spark.values.formats import DELTA


class DeltaCommitter(TableCommitter[DeltaTarget]):
    """Commits to a table that was claimed before."""

    def show(self, checkpoint_id: int, files: Sequence[Committable], *, are_moved: bool) -> bool:
        """Show the files; those that tasks have moved are not read again."""
        return self.target.commit(checkpoint_id, files, are_moved=are_moved)


@dataclass(frozen=True)
class DeltaSink(CountingSink):
    """Writes to the Delta table in the directory or at the URL `path`, which may be there already.

    file_bytes: a file ends once it is as large, or with its checkpoint. `log`, `files` and
    `open_objects`: with what it writes, for tests. commit_in: "tasks" to have each task look at its
    files and give them their names in the table, in parallel; the driver writes the entry of the
    log. partition_by: the columns of a new table's partitions; those of one that is there if none
    are given. evolution: "add" lets new columns become columns of the table.
    """

    path: str
    file_bytes: int = ROLL_BYTES
    log: Callable[[str], DeltaLog] = DeltaLog
    files: FileSystem | None = None
    commit_in: CommitIn = "driver"
    open_objects: Callable[[str], ObjectStore] = open_url
    partition_by: tuple[str, ...] = ()
    evolution: SchemaEvolution = "none"

    def __post_init__(self) -> None:
        """Raises UsageError."""
        if self.evolution == "widen":
            raise UsageError(NOT_WIDENED)

    def create_writer(self, context: OperatorContext, state: bytes | None) -> TableSinkWriter:
        """It has no state: what is not handed over is read again by the attempt that goes back."""
        return TableSinkWriter(
            DELTA,
            context,
            self.file_bytes,
            evolution=self.evolution,
            open_objects=self.open_objects,
        )

    @property
    def has_task_committer(self) -> bool:
        """True if `commit_in` is "tasks"."""
        return self.commit_in == "tasks"

    def create_task_committer(self, context: OperatorContext) -> TaskCommitter:
        """Of the files in the table's directory, or of its objects."""
        place = place_of(self.path)
        if is_url(place):
            return TableTaskCommitter(place, StagedObjects(self.open_objects(place)))
        files = LocalFileSystem.of_table(place) if self.files is None else self.files
        return TableTaskCommitter(place, StagedFiles(files, place, place))

    def post_commit_topology(self) -> Sequence[CommittableOperator]:
        """Behind the tasks' committers: one value for all files of a subtask."""
        return (Gathering(),) if self.has_task_committer else ()

    def create_committer(self, start: SinkStart) -> DeltaCommitter:
        """Claim the table; raises what `DeltaTarget.claim` raises, or ExtraMissing."""
        target = DeltaTarget(
            self.path,
            start.job_id,
            start.run_id,
            log=self.log,
            files=self.files,
            open_objects=self.open_objects,
            partition_by=self.partition_by,
            may_grow=self.evolution != "none",
        )
        target.claim(start.restored_checkpoint, start=start)
        try:
            return DeltaCommitter(target)
        except BaseException:
            target.release()
            raise

    def accepts(self, schema: pa.Schema) -> None:
        """Raises TypeNotInTable, ColumnNeverFits, PartitionUnusable, and what the log raises."""
        DELTA.accepts(schema)
        require_partitionable(schema, self.partition_by, PARTITIONED)
        if self.evolution != "none":
            return  # The columns may change until the rows are there.
        log = self.log(place_of(self.path))
        if log.read():
            require_held(log.schema(), schema)

    def create_coordinator(self, operator_id: str, committer: Committer) -> CoordinatorProvider:
        """Of the schema: that of the table, or else of the first batch.

        Raises TypeError for a committer of another sink.
        """
        if not isinstance(committer, DeltaCommitter):
            raise TypeError(f"a DeltaSink has no {type(committer).__name__}")
        target = committer.target
        return SchemaProvider(
            operator_id, target.schema(), self.evolution, target.told(), DELTA.rules
        )
