"""The Parquet sink: files staged by tasks, of one schema, and shown per checkpoint in one step.

Puts together what the other modules decide. A writer stages nothing before the sink's coordinator
has told it the schema that all subtasks write. Its files are named by run, subtask and attempt, so
a zombie can never write over another's. Runs in tasks and on the driver.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from epochgate.runtime import (
    Committer,
    CoordinatorProvider,
    OperatorContext,
    Sink,
    SinkStart,
    SinkWriter,
)
from epochgate.runtime.filesystem import FileSystem
from epochgate.runtime.objects.client import ObjectStore, is_url, open_url
from epochgate.runtime.objects.files import ObjectFiles
from epochgate.spark.parquet_sink.committable import require_free_columns
from epochgate.spark.parquet_sink.committer import ParquetCommitter
from epochgate.spark.parquet_sink.object_target import ObjectTarget
from epochgate.spark.parquet_sink.ownership import working_directory_of
from epochgate.spark.parquet_sink.partitions import PartitioningChanged, require_partitionable
from epochgate.spark.parquet_sink.schema_coordinator import SchemaProvider
from epochgate.spark.parquet_sink.staging import ROLL_BYTES, ROW_GROUP_BYTES, StagingWriter
from epochgate.spark.parquet_sink.target import ParquetTarget


class ParquetSinkWriter(SinkWriter):
    """Stages record batches below the target's working directory, all of one agreed schema."""

    def __init__(
        self,
        make_staging: Callable[[pa.Schema], StagingWriter],
        partition_by: tuple[str, ...],
        context: OperatorContext,
    ) -> None:
        self._make_staging, self._context = make_staging, context
        self._partition_by = partition_by
        self._staging: StagingWriter | None = None
        self._has_asked = False

    def may_write(self, batch: pa.RecordBatch) -> bool:
        """Whether the schema is agreed; if not, ask for that of `batch`: the answer is an event.

        Raises ReservedColumn or PartitionUnusable before one is agreed that no target can hold.
        """
        if self._staging is None and not self._has_asked:
            require_free_columns(batch.schema)
            require_partitionable(batch.schema, self._partition_by)
            self._has_asked = True
            schema = pa.schema([pa.field(field.name, field.type) for field in batch.schema])
            self._context.send_to_coordinator(["schema", schema.serialize().to_pybytes()])
        return self._staging is not None

    def handle_event(self, event: Any) -> None:
        """The schema is agreed: begin files of this attempt's own."""
        if self._staging is None:
            self._staging = self._make_staging(pa.ipc.read_schema(pa.py_buffer(event[1])))

    def write(self, batch: pa.RecordBatch) -> None:
        """Stage one batch; OutputSchemaChanged or DiskFull end the job."""
        assert self._staging is not None, "may_write says when there is a schema"
        self._staging.write(batch)

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        """Finish the files."""
        if self._staging is None:
            return []
        return [c.to_list() for c in self._staging.prepare_commit(checkpoint_id)]

    def close(self) -> None:
        """Remove what was not handed over."""
        if self._staging is not None:
            self._staging.abandon()


@dataclass(frozen=True)
class ParquetSink(Sink):
    """Writes to `target`, a directory or the URL of a place in an object store.

    partition_by: columns whose values are in the names of directories below each checkpoint.
    file_bytes: a file ends once it is as large, or with its checkpoint. `files` and
    `open_objects`: with what, for tests.
    """

    target: str
    partition_by: tuple[str, ...] = ()
    file_bytes: int = ROLL_BYTES
    files: FileSystem | None = None
    open_objects: Callable[[str], ObjectStore] = open_url

    def create_writer(self, context: OperatorContext, state: bytes | None) -> ParquetSinkWriter:
        """It has no state: what is not handed over is read again by the attempt that goes back."""
        is_object = is_url(self.target)

        def make_staging(schema: pa.Schema) -> StagingWriter:
            return StagingWriter(
                "" if is_object else working_directory_of(self.target),
                context.run_id,
                context.subtask,
                context.attempt,
                schema=schema,
                files=ObjectFiles(self.open_objects(self.target)) if is_object else self.files,
                roll_bytes=self.file_bytes,
                row_group_bytes=min(ROW_GROUP_BYTES, self.file_bytes),
                in_place=is_object,
                partition_by=self.partition_by,
            )

        return ParquetSinkWriter(make_staging, self.partition_by, context)

    def create_committer(self, start: SinkStart) -> ParquetCommitter:
        """Claim the target; raises what `ParquetTarget.claim` or `ObjectTarget.claim` raises,
        PartitioningChanged or CommittableDamaged.
        """
        target: ParquetTarget | ObjectTarget
        if is_url(self.target):
            target = ObjectTarget(self.open_objects(self.target), start.job_id, start.run_id)
        else:
            target = ParquetTarget(self.target, start.job_id, start.run_id, files=self.files)
        target.claim(
            start.restored_checkpoint, withdraw_newer=start.may_withdraw, epoch=start.epoch
        )
        try:
            columns = target.partition_columns()
            if columns is not None and columns != list(self.partition_by):
                raise PartitioningChanged(target.path, columns, self.partition_by)
            return ParquetCommitter(target)
        except BaseException:
            target.release()
            raise

    def create_coordinator(self, operator_id: str, committer: Committer) -> CoordinatorProvider:
        """Of the schema: that of the target's files, or else of the first batch.

        Raises TypeError for a committer of another sink.
        """
        if not isinstance(committer, ParquetCommitter):
            raise TypeError(f"a ParquetSink has no {type(committer).__name__}")
        schema = committer.target.schema()
        visible = None if schema is None else schema.serialize().to_pybytes()
        return SchemaProvider(operator_id, visible)
