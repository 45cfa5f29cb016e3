"""The Delta sink: files staged by tasks beside the table's, and shown by one entry of its log.

Puts together what the other modules decide. A writer stages nothing before the sink's coordinator
has told it the schema that all subtasks write. Its files are named by run, subtask and attempt, so
a zombie can never write over another's. Runs in tasks and on the driver.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from epochgate.runtime import (
    Committables,
    Committer,
    CoordinatorProvider,
    OperatorContext,
    SinkStart,
    SinkWriter,
)
from epochgate.runtime.filesystem import FileSystem
from epochgate.spark.counting_sink import CountingCommitter, CountingSink
from epochgate.spark.delta_sink.log import DeltaLog
from epochgate.spark.delta_sink.target import WORKING, DeltaTarget
from epochgate.spark.delta_sink.types import conformed, delta_schema
from epochgate.spark.parquet_sink.committable import Committable, total_rows
from epochgate.spark.parquet_sink.schema_coordinator import SchemaProvider
from epochgate.spark.parquet_sink.staging import ROLL_BYTES, StagingWriter


class DeltaSinkWriter(SinkWriter):
    """Stages record batches below the table's working directory, with the table's types."""

    def __init__(self, path: str, context: OperatorContext, file_bytes: int) -> None:
        self._working_directory, self._context = os.path.join(path, WORKING), context
        self._file_bytes = file_bytes
        self._where = f"subtask {context.subtask}, attempt {context.attempt}"
        self._agreed: pa.Schema | None = None
        self._staging: StagingWriter | None = None
        self._has_asked = False

    def may_write(self, batch: pa.RecordBatch) -> bool:
        """Whether the schema is agreed; if not, ask for that of `batch`: the answer is an event.

        Raises TypeNotInDelta before one is agreed that no table can have.
        """
        if self._staging is None and not self._has_asked:
            wish = delta_schema(batch.schema)
            self._has_asked = True
            self._context.send_to_coordinator(["schema", wish.serialize().to_pybytes()])
        return self._staging is not None

    def handle_event(self, event: Any) -> None:
        """The schema is agreed: begin files of this attempt's own."""
        if self._staging is None:
            self._agreed = pa.ipc.read_schema(pa.py_buffer(event[1]))
            context = self._context
            self._staging = StagingWriter(
                self._working_directory,
                context.run_id,
                context.subtask,
                context.attempt,
                schema=pa.schema([pa.field(field.name, field.type) for field in self._agreed]),
                roll_bytes=self._file_bytes,
            )

    def write(self, batch: pa.RecordBatch) -> None:
        """Stage one batch; OutputSchemaChanged, ValueMissing, ValueDoesNotFit and DiskFull end the
        job.
        """
        assert self._staging is not None, "may_write says when there is a schema"
        assert self._agreed is not None, "it comes with the first event"
        self._staging.write(conformed(batch, self._agreed, self._where))

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        """Finish the files."""
        if self._staging is None:
            return []
        return [c.to_list() for c in self._staging.prepare_commit(checkpoint_id)]

    def close(self) -> None:
        """Remove what was not handed over."""
        if self._staging is not None:
            self._staging.abandon()


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

    def create_writer(self, context: OperatorContext, state: bytes | None) -> DeltaSinkWriter:
        """It has no state: what is not handed over is read again by the attempt that goes back."""
        return DeltaSinkWriter(os.path.abspath(self.path), context, self.file_bytes)

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
