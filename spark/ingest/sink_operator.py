"""The Parquet sink's operator: stages what it is given, and hands the files over at each barrier.

Its files are named by run, subtask and attempt, so a zombie can never write over another's. What it
has handed over for a checkpoint that was then aborted it hands over again for the next: the rows
are consumed and must not be lost. It has no state: what is not handed over is read again by the
attempt that goes back. Runs in the task.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from epochgate.runtime import Operator
from epochgate.runtime.filesystem import FileSystem
from epochgate.spark.parquet_sink import Committable, StagingWriter
from epochgate.spark.parquet_sink.committable import require_free_columns


class ParquetSinkOperator(Operator):
    """Writes record batches below the target's working directory, all of one agreed schema."""

    def __init__(self, working_directory: str, files: FileSystem | None = None) -> None:
        self._working_directory, self._files = working_directory, files
        self._writer: StagingWriter | None = None
        self._has_asked = False
        self._handed_over: list[Committable] = []
        self.rows_written = 0

    def may_write(self, batch: pa.RecordBatch) -> bool:
        """Whether the schema is agreed; if not, ask for that of `batch`: the answer is an event.

        Raises ReservedColumn before one is agreed that no target can hold.
        """
        if self._writer is None and not self._has_asked:
            require_free_columns(batch.schema)
            self._has_asked = True
            schema = pa.schema([pa.field(field.name, field.type) for field in batch.schema])
            self.context.send_to_coordinator(["schema", schema.serialize().to_pybytes()])
        return self._writer is not None

    def handle_event(self, event: Any) -> None:
        """The schema is agreed: begin files of this attempt's own."""
        if self._writer is None:
            self._writer = StagingWriter(
                self._working_directory,
                self.context.run_id,
                self.context.subtask,
                self.context.attempt,
                schema=pa.ipc.read_schema(pa.py_buffer(event[1])),
                files=self._files,
            )

    def write(self, batch: pa.RecordBatch) -> None:
        """Stage one batch; OutputSchemaChanged or DiskFull end the job."""
        assert self._writer is not None
        self._writer.write(batch)
        self.rows_written += batch.num_rows

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        """Finish the files, and hand over all that no completed checkpoint holds."""
        if self._writer is not None:
            self._handed_over.extend(self._writer.prepare_commit(checkpoint_id))
        return [committable.to_list() for committable in self._handed_over]

    def snapshot(self, checkpoint_id: int) -> bytes:
        """Nothing: everything written so far was handed over."""
        return b""

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """What was handed over is the committer's now; this comes before the next barrier."""
        self._handed_over.clear()

    def close(self) -> None:
        """Remove what was not handed over."""
        if self._writer is not None:
            self._writer.abandon()
