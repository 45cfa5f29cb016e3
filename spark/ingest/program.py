"""What one subtask of an ingestion runs: source, the user's transform, sink."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from epochgate.runtime import Sink, SinkOperator
from epochgate.runtime.pipeline import SINK, SOURCE, Pace, PipelineProgram
from epochgate.runtime.source import SourceOperator
from epochgate.spark.files import BatchTransform, ReadBatch, TransformFunction
from epochgate.spark.files.content import OnChangedFile
from epochgate.spark.files.reader import OnBadFile
from epochgate.spark.ingest.file_source import FileSource, to_file_split

__all__ = ["SINK", "SOURCE", "IngestProgram", "IngestProgramFactory"]
SLICES_PER_S = 20


class IngestProgram(PipelineProgram):
    """A pipeline whose source fetches one batch of a file at a time."""

    def rows_in(self, records: Sequence[ReadBatch]) -> int:
        """Rows of the file."""
        return sum(read.batch.num_rows for read in records)

    def metrics(self) -> dict[str, int | float]:
        """Rows of this attempt, and of how many files it has splits."""
        files = {to_file_split(split).path for split in self._source.splits}
        return {**super().metrics(), "files_open": len(files)}


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
            _mapping(BatchTransform(self.transform)),
            SinkOperator(self.sink),
            pace=Pace(self.rows_per_s),
        )


def _mapping(
    transform: BatchTransform,
) -> Callable[[Sequence[ReadBatch]], Iterator[pa.RecordBatch]]:
    return lambda records: iter([batch for read in records for batch in transform.apply(read)])
