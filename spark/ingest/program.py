"""What one subtask of an ingestion runs: source, the user's transform, sink."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from epochgate.runtime import Operator, Program, Work
from epochgate.spark.files import BatchTransform, TransformFunction
from epochgate.spark.files.reader import OnBadFile
from epochgate.spark.ingest.sink_operator import ParquetSinkOperator
from epochgate.spark.ingest.source_operator import FileSourceOperator

SOURCE, SINK = "source", "sink"


class IngestProgram(Program):
    """One record batch from source to sink at a time."""

    def __init__(
        self,
        source: FileSourceOperator,
        transform: BatchTransform,
        sink: ParquetSinkOperator,
    ) -> None:
        self._source, self._transform, self._sink = source, transform, sink

    @property
    def operators(self) -> Mapping[str, Operator]:
        """Source first: its position and the sink's files are of the same moment."""
        return {SOURCE: self._source, SINK: self._sink}

    def work(self) -> Work:
        """Read, transform and stage one batch."""
        read = self._source.next_batch()
        if read is None:
            return Work.ENDED if self._source.has_ended else Work.IDLE
        for batch in self._transform.apply(read):
            self._sink.write(batch)
        return Work.DONE

    def metrics(self) -> dict[str, int | float]:
        """Rows of this attempt."""
        return {"rows_read": self._source.rows_read, "rows_written": self._sink.rows_written}


@dataclass(frozen=True)
class IngestProgramFactory:
    """Makes the program of a subtask; travels to the tasks with the Spark job."""

    working_directory: str
    schema: bytes | None
    transform: TransformFunction | None
    batch_rows: int
    on_bad_file: OnBadFile

    def __call__(self, subtask: int) -> IngestProgram:
        """The program of one attempt."""
        return IngestProgram(
            FileSourceOperator(batch_rows=self.batch_rows, on_bad_file=self.on_bad_file),
            BatchTransform(self.transform),
            ParquetSinkOperator(self.working_directory, self.schema),
        )
