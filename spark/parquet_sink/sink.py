"""The Parquet sink: files staged by tasks, of one schema, and shown per checkpoint by one rename.

Puts together what the other modules decide. A writer stages nothing before the sink's coordinator
has told it the schema that all subtasks write. Its files are named by run, subtask and attempt, so
a zombie can never write over another's. Runs in tasks and on the driver.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from epochgate.runtime import (
    Committer,
    CoordinatorProvider,
    OperatorContext,
    SinkStart,
    SinkWriter,
)
from epochgate.runtime.filesystem import FileSystem
from epochgate.spark.counting_sink import CountingSink
from epochgate.spark.parquet_sink.committable import require_free_columns
from epochgate.spark.parquet_sink.committer import ParquetCommitter
from epochgate.spark.parquet_sink.ownership import working_directory_of
from epochgate.spark.parquet_sink.schema_coordinator import SchemaProvider
from epochgate.spark.parquet_sink.staging import StagingWriter
from epochgate.spark.parquet_sink.target import ParquetTarget


class ParquetSinkWriter(SinkWriter):
    """Stages record batches below the target's working directory, all of one agreed schema."""

    def __init__(
        self, working_directory: str, context: OperatorContext, files: FileSystem | None
    ) -> None:
        self._working_directory, self._context, self._files = working_directory, context, files
        self._staging: StagingWriter | None = None
        self._has_asked = False

    def may_write(self, batch: pa.RecordBatch) -> bool:
        """Whether the schema is agreed; if not, ask for that of `batch`: the answer is an event.

        Raises ReservedColumn before one is agreed that no target can hold.
        """
        if self._staging is None and not self._has_asked:
            require_free_columns(batch.schema)
            self._has_asked = True
            schema = pa.schema([pa.field(field.name, field.type) for field in batch.schema])
            self._context.send_to_coordinator(["schema", schema.serialize().to_pybytes()])
        return self._staging is not None

    def handle_event(self, event: Any) -> None:
        """The schema is agreed: begin files of this attempt's own."""
        if self._staging is None:
            self._staging = StagingWriter(
                self._working_directory,
                self._context.run_id,
                self._context.subtask,
                self._context.attempt,
                schema=pa.ipc.read_schema(pa.py_buffer(event[1])),
                files=self._files,
            )

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
class ParquetSink(CountingSink):
    """Writes to the directory `target`; `files`: with what, for tests."""

    target: str
    files: FileSystem | None = None

    def create_writer(self, context: OperatorContext, state: bytes | None) -> ParquetSinkWriter:
        """It has no state: what is not handed over is read again by the attempt that goes back."""
        return ParquetSinkWriter(working_directory_of(self.target), context, self.files)

    def create_committer(self, start: SinkStart) -> ParquetCommitter:
        """Claim the target; raises what `ParquetTarget.claim` raises, or CommittableDamaged."""
        target = ParquetTarget(self.target, start.job_id, start.run_id, files=self.files)
        target.claim(start.restored_checkpoint, withdraw_newer=start.may_withdraw)
        try:
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
