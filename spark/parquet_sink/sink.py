"""The Parquet sink: files staged by tasks, of one schema, and shown per checkpoint in one step.

Puts together what the other modules decide. A writer stages nothing before the sink's coordinator
has told it the schema that all subtasks write. Its files are named by run, subtask and attempt, so
a zombie can never write over another's. Runs in tasks and on the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from epochgate.runtime import (
    CommittableOperator,
    Committer,
    CoordinatorProvider,
    OperatorContext,
    SinkStart,
    SinkWriter,
    TaskCommitter,
)
from epochgate.runtime.filesystem import FileSystem, LocalFileSystem, WrittenOnce
from epochgate.runtime.objects.client import ObjectStore, is_url, open_url
from epochgate.runtime.objects.files import ObjectFiles
from epochgate.spark.counting_sink import CountingSink
from epochgate.spark.files.evolution import SchemaEvolution, can_hold, fitted
from epochgate.spark.parquet_sink.committable import require_readable_columns
from epochgate.spark.parquet_sink.committer import ParquetCommitter
from epochgate.spark.parquet_sink.gathered import CommitIn, Gathering
from epochgate.spark.parquet_sink.object_target import ObjectTarget
from epochgate.spark.parquet_sink.open_file import ROW_GROUP_BYTES
from epochgate.spark.parquet_sink.ownership import working_directory_of
from epochgate.spark.parquet_sink.partitions import (
    PartitioningChanged,
    require_partitionable,
    require_told,
)
from epochgate.spark.parquet_sink.schema_coordinator import SchemaProvider
from epochgate.spark.parquet_sink.staging import ROLL_BYTES, StagingWriter
from epochgate.spark.parquet_sink.target import ParquetTarget
from epochgate.spark.parquet_sink.task_committers import (
    DirectoryTaskCommitter,
    ObjectTaskCommitter,
)
from epochgate.spark.values.fitting import fit
from epochgate.spark.values.formats import PARQUET


class ParquetSinkWriter(SinkWriter):
    """Stages record batches below the target's working directory, all of one agreed schema."""

    def __init__(
        self,
        make_staging: Callable[[pa.Schema], StagingWriter],
        partition_by: tuple[str, ...],
        context: OperatorContext,
        schema: pa.Schema | None,
        evolution: SchemaEvolution,
    ) -> None:
        self._make_staging, self._context = make_staging, context
        self._partition_by, self._evolution = partition_by, evolution
        self._where = f"subtask {context.subtask}, attempt {context.attempt}"
        self._staging = None if schema is None else make_staging(schema)
        self._asked: pa.Schema | None = None
        self._fitting: pa.Schema | None = None
        self._read = self._held = pa.schema([])
        """The schema of the last batch, and that with which it can be in the target."""

    def may_write(self, batch: pa.RecordBatch) -> bool:
        """Return whether a schema is agreed that holds `batch`; if not, ask for one that does: the
        answer is an event.

        Raises ReservedColumn, NameTwice, PartitionUnusable or TypeNotInTable for columns that no
        target can hold.
        """
        if self._staging is not None and self._is_held(self._staging, self._as_held(batch.schema)):
            return True
        if batch.schema != self._asked:
            require_readable_columns(batch.schema)
            require_partitionable(batch.schema, self._partition_by)
            wish = self._as_held(batch.schema)
            self._asked = batch.schema
            self._context.send_to_coordinator(["schema", wish.serialize().to_pybytes()])
        return False

    def _as_held(self, schema: pa.Schema) -> pa.Schema:
        """The schema with the types that the target has for such batches; what files of it have
        already stays. Raises TypeNotInTable or NameTwice.
        """
        if schema != self._read:
            known = {} if self._staging is None else self._staging.types
            fields = [
                pa.field(
                    one.name,
                    one.type
                    if known.get(one.name) == one.type
                    else PARQUET.type(one.name, one.type),
                )
                for one in schema
            ]
            self._held, self._read = pa.schema(fields), schema
        return self._held

    def _is_held(self, staging: StagingWriter, schema: pa.Schema) -> bool:
        """True if batches of this schema can be written as it is agreed; remembers the last."""
        if self._evolution == "none" or schema == self._fitting:
            return True
        assert staging.schema is not None, "it was begun with a schema"
        if can_hold(staging.schema, schema):
            self._fitting = schema
            return True
        return False

    def handle_event(self, event: Any) -> None:
        """The schema is agreed: begin files of this attempt's own, or other ones if it changes."""
        schema = pa.ipc.read_schema(pa.py_buffer(event[1]))
        self._read = pa.schema([])
        if self._staging is None:
            self._staging = self._make_staging(schema)
        elif schema != self._staging.schema:
            self._staging.change_schema(schema)
            self._asked = self._fitting = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Stage one batch; OutputSchemaChanged, ValueDoesNotFit, RowsUnwritable or DiskFull end
        the job.
        """
        assert self._staging is not None, "may_write says when there is a schema"
        held = self._as_held(batch.schema)
        if held.types != batch.schema.types:
            columns = zip(batch.columns, held, strict=True)
            fit_columns = [fit(column, one.name, one.type, self._where) for column, one in columns]
            batch = pa.RecordBatch.from_arrays(fit_columns, schema=held)
        require_told(batch, self._partition_by, self._where)
        if self._evolution != "none":
            assert self._staging.schema is not None, "it was begun with a schema"
            batch = fitted(batch, self._staging.schema)
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
class ParquetSink(CountingSink):
    """Writes to `target`, a directory or the URL of a place in an object store.

    partition_by: columns whose values are in the names of directories below each checkpoint.
    file_bytes: a file ends once it is as large, or with its checkpoint. `files` and
    `open_objects`: with what, for tests. evolution: how the columns may change while there are
    files already. schema: that of all batches, if it is known before. may_begin_late: whether the
    target may be new to a job that goes on from a checkpoint, also because it was removed.
    commit_in: "tasks" to have each task look at its files and move them, in parallel, so that the
    driver takes only the one step that shows them.
    """

    target: str
    file_bytes: int = ROLL_BYTES
    files: FileSystem | None = None
    open_objects: Callable[[str], ObjectStore] = open_url
    evolution: SchemaEvolution = "none"
    schema: pa.Schema | None = None
    may_begin_late: bool = False
    partition_by: tuple[str, ...] = ()
    commit_in: CommitIn = "driver"

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
                files=self._files(),
                roll_bytes=self.file_bytes,
                row_group_bytes=min(ROW_GROUP_BYTES, self.file_bytes),
                in_place=is_object,
                partition_by=self.partition_by,
            )

        return ParquetSinkWriter(
            make_staging, self.partition_by, context, self.schema, self.evolution
        )

    def _files(self) -> WrittenOnce:
        """With what a task stages: files as readable as the target, or objects."""
        if is_url(self.target):
            return ObjectFiles(self.open_objects(self.target))
        return LocalFileSystem.of_table(self.target) if self.files is None else self.files

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
            start.restored_checkpoint,
            withdraw_newer=start.may_withdraw,
            epoch=start.epoch,
            may_begin_late=self.may_begin_late,
            start=start,
        )
        try:
            columns = target.partition_columns()
            if columns is not None and columns != list(self.partition_by):
                raise PartitioningChanged(target.path, columns, self.partition_by)
            return ParquetCommitter(target)
        except BaseException:
            target.release()
            raise

    @property
    def has_task_committer(self) -> bool:
        """True if `commit_in` is "tasks"."""
        return self.commit_in == "tasks"

    def create_task_committer(self, context: OperatorContext) -> TaskCommitter:
        """Of the files in a directory, or of the objects in an object store."""
        if is_url(self.target):
            return ObjectTaskCommitter(self.open_objects(self.target))
        files = LocalFileSystem.of_table(self.target) if self.files is None else self.files
        return DirectoryTaskCommitter(self.target, files)

    def post_commit_topology(self) -> Sequence[CommittableOperator]:
        """Behind the tasks' committers: one value for all files of a subtask."""
        return (Gathering(),) if self.has_task_committer else ()

    def accepts(self, schema: pa.Schema) -> None:
        """Raises TypeNotInTable."""
        PARQUET.accepts(schema)

    def create_coordinator(self, operator_id: str, committer: Committer) -> CoordinatorProvider:
        """Of the schema: that of the target's files, or else of the first batch.

        Raises TypeError for a committer of another sink.
        """
        if not isinstance(committer, ParquetCommitter):
            raise TypeError(f"a ParquetSink has no {type(committer).__name__}")
        return SchemaProvider(operator_id, committer.target.schema(), self.evolution)
