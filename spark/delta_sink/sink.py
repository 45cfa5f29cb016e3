"""The Delta sink: files staged by tasks beside the table's, and shown by one entry of its log.

Puts together what the other modules decide. Runs in tasks and on the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

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
from epochgate.spark.delta_sink.features import NOT_WIDENED, PARTITIONED
from epochgate.spark.delta_sink.log import DeltaLog
from epochgate.spark.delta_sink.merging import MergingDeltaTarget
from epochgate.spark.delta_sink.place import place_of
from epochgate.spark.delta_sink.target import DeltaTarget
from epochgate.spark.files.evolution import SchemaEvolution
from epochgate.spark.parquet_sink.committable import Committable
from epochgate.spark.parquet_sink.gathered import CommitIn, Gathering
from epochgate.spark.parquet_sink.partitions import require_partitionable
from epochgate.spark.parquet_sink.schema_coordinator import SchemaProvider
from epochgate.spark.parquet_sink.staging import ROLL_BYTES
from epochgate.spark.tables.committer import MergingCommitter, TableCommitter
from epochgate.spark.tables.merge import Merge
from epochgate.spark.tables.merging_writer import MergingWriter
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


class MergingDeltaCommitter(MergingCommitter[DeltaTarget], DeltaCommitter):
    """Merges into a table that was claimed before."""


@dataclass(frozen=True)
class DeltaSink(CountingSink):
    """Writes to the Delta table in the directory or at the URL `path`, which may be there already.

    file_bytes: a file ends once it is as large, or with its checkpoint. `log`, `files` and
    `open_objects`: with what it writes, for tests. commit_in: "tasks" to have each task look at its
    files and give them their names in the table, in parallel; the driver writes the entry of the
    log. partition_by: the columns of a new table's partitions; those of one that is there if none
    are given. evolution: "add" lets new columns become columns of the table. merge: rows replace
    those of the same key; committed by the driver, into columns that stay.
    """

    path: str
    file_bytes: int = ROLL_BYTES
    log: Callable[[str], DeltaLog] = DeltaLog
    files: FileSystem | None = None
    commit_in: CommitIn = "driver"
    open_objects: Callable[[str], ObjectStore] = open_url
    partition_by: tuple[str, ...] = ()
    evolution: SchemaEvolution = "none"
    merge: Merge | None = None

    def __post_init__(self) -> None:
        """Raises UsageError."""
        if self.evolution == "widen":
            raise UsageError(NOT_WIDENED)
        if self.merge is not None:
            self.merge.require_possible(self.commit_in, self.evolution)

    def create_writer(self, context: OperatorContext, state: bytes | None) -> TableSinkWriter:
        """It has no state: what is not handed over is read again by the attempt that goes back."""
        if self.merge is not None:
            opening = self.open_objects
            return MergingWriter(DELTA, context, self.file_bytes, self.merge, open_objects=opening)
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
        target = self._target(start)
        target.claim(start.restored_checkpoint, start=start)
        try:
            return DeltaCommitter(target) if self.merge is None else MergingDeltaCommitter(target)
        except BaseException:
            target.release()
            raise

    def _target(self, start: SinkStart) -> DeltaTarget:
        given: dict[str, Any] = {
            "log": self.log,
            "files": self.files,
            "open_objects": self.open_objects,
            "partition_by": self.partition_by,
        }
        if self.merge is not None:
            of = (self.path, start.job_id, start.run_id)
            return MergingDeltaTarget(*of, merge=self.merge, **given)
        may_grow = self.evolution != "none"
        return DeltaTarget(self.path, start.job_id, start.run_id, may_grow=may_grow, **given)

    def accepts(self, schema: pa.Schema) -> None:
        """Raises TypeNotInTable, ColumnNeverFits, PartitionUnusable, what the log raises, and what
        `Merge.accepts` raises.
        """
        DELTA.accepts(schema)
        if self.merge is not None:
            self.merge.accepts(schema)
            self.merge.require_comparable(DELTA.schema(schema))
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
