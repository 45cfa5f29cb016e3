"""What one subtask of an ingestion runs: source, the user's transform, sink."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from epochgate.runtime import Operator, Program, Sink, SinkOperator, Work
from epochgate.runtime.source import SourceOperator
from epochgate.spark.files import BatchTransform, ReadBatch, TransformFunction
from epochgate.spark.files.content import OnChangedFile
from epochgate.spark.files.reader import OnBadFile
from epochgate.spark.ingest.file_source import FileSource, to_file_split
from epochgate.spark.ingest.pace import Pace

SOURCE, SINK = "source", "sink"
SLICES_PER_S = 20


class IngestProgram(Program):
    """One record batch from source to sink at a time."""

    def __init__(
        self,
        source: SourceOperator,
        transform: BatchTransform,
        sink: SinkOperator,
        pace: Pace,
    ) -> None:
        self._source, self._transform, self._sink, self._pace = source, transform, sink, pace
        self._transformed: list[pa.RecordBatch] | None = None
        self._rows_read = self._rows_written = 0

    @property
    def operators(self) -> Mapping[str, Operator]:
        """Source first: its position and the sink's files are of the same moment."""
        return {SOURCE: self._source, SINK: self._sink}

    def work(self) -> Work:
        """Read, transform and stage one batch; or pause a little, if that is the pace."""
        if (pause_s := self._pace.pause_s()) > 0:
            time.sleep(pause_s)
            return Work.DONE
        fetched = self._source.peek()
        if fetched is None:
            return Work.ENDED if self._source.has_ended else Work.IDLE
        read: ReadBatch = fetched.records[0]
        if self._transformed is None:
            self._transformed = self._transform.apply(read)
        if self._transformed and not self._sink.may_write(self._transformed[0]):
            return Work.IDLE
        self._source.take()
        for batch in self._transformed:
            self._sink.write(batch)
            self._rows_written += batch.num_rows
        self._transformed = None
        self._rows_read += read.batch.num_rows
        self._pace.note(read.batch.num_rows)
        return Work.DONE

    def metrics(self) -> dict[str, int | float]:
        """Rows of this attempt, and of how many files it has splits."""
        return {
            "rows_read": self._rows_read,
            "rows_written": self._rows_written,
            "files_open": len({to_file_split(split).path for split in self._source.splits}),
        }


@dataclass(frozen=True)
class IngestProgramFactory:
    """Makes the program of a subtask; travels to the tasks with the Spark job.

    `rows_per_s`: of one subtask.
    """

    sink: Sink
    transform: TransformFunction | None
    batch_rows: int
    on_bad_file: OnBadFile
    on_changed_file: OnChangedFile
    encoding: str
    rows_per_s: float | None = None

    def __call__(self, subtask: int) -> IngestProgram:
        """The program of one attempt."""
        batch_rows = self.batch_rows
        if self.rows_per_s is not None:
            batch_rows = max(1, min(batch_rows, int(self.rows_per_s / SLICES_PER_S)))
        return IngestProgram(
            SourceOperator(
                FileSource(
                    batch_rows=batch_rows,
                    on_bad_file=self.on_bad_file,
                    on_changed_file=self.on_changed_file,
                    encoding=self.encoding,
                ),
                in_turns=False,
            ),
            BatchTransform(self.transform),
            SinkOperator(self.sink),
            Pace(self.rows_per_s),
        )
