"""The Parquet sink's operator: stages what it is given, and hands the files over at each barrier.

Its files are named by run, subtask and attempt, so a zombie can never write over another's. What it has handed over for a
checkpoint that was then aborted it hands over again for the next: the rows are consumed and must not be lost. It has no
state: what is not handed over is read again by the attempt that goes back. Runs in the task.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from epochgate.runtime import Operator, OperatorContext
from epochgate.spark.parquet_sink import Committable, StagingWriter


class ParquetSinkOperator(Operator):
    """Writes record batches below the target's working directory."""

    def __init__(self, working_directory: str, schema: bytes | None) -> None:
        self._working_directory = working_directory
        self._schema = None if schema is None else pa.ipc.read_schema(pa.py_buffer(schema))
        self._writer: StagingWriter | None = None
        self._handed_over: list[Committable] = []
        self.rows_written = 0

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        """Begin files of this attempt's own."""
        super().open(context, state)
        self._writer = StagingWriter(
            self._working_directory,
            context.run_id,
            context.subtask,
            context.attempt,
            schema=self._schema,
        )

    def write(self, batch: pa.RecordBatch) -> None:
        """Stage one batch; OutputSchemaChanged or DiskFull end the attempt."""
        assert self._writer is not None
        self._writer.write(batch)
        self.rows_written += batch.num_rows

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        """Finish the files, and hand over all that no completed checkpoint holds."""
        assert self._writer is not None
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
