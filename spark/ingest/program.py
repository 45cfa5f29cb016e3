"""The program that one subtask of an ingestion runs: source, the user's transform, sink, table of
rejects.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from epochgate.runtime import Operator, Sink, SinkOperator
from epochgate.runtime.objects.client import ObjectStore, open_url
from epochgate.runtime.pipeline.program import SINK, SOURCE, PipelineProgram
from epochgate.runtime.source import SourceOperator
from epochgate.spark.files import BatchTransform, ReadBatch, TransformFunction
from epochgate.spark.files.content import OnChangedFile
from epochgate.spark.files.frames import Takes
from epochgate.spark.files.reader import OnBadFile
from epochgate.spark.files.rejected import OnBadRow, rejected_batch
from epochgate.spark.files.split import FileSplit
from epochgate.spark.ingest.file_source import FileSource, to_file_split, to_position
from epochgate.spark.ingest.rate import RATE, IngestRate
from epochgate.spark.ingest.rejects import REJECTS
from epochgate.spark.values.errors import RowsUnfit

__all__ = ["SINK", "SOURCE", "IngestProgram", "IngestProgramFactory"]
SLICES_PER_S = 20


class IngestProgram(PipelineProgram):
    """A pipeline whose source fetches one batch of a file at a time, with the rows that it rejects;
    `rejects` takes these, none where no row is rejected. `rate`: the first of the job.
    """

    def __init__(
        self,
        files: FileSource,
        transform: BatchTransform,
        sink: SinkOperator,
        rejects: SinkOperator | None,
        rate: IngestRate,
    ) -> None:
        self._files, self._batch_rows = files, files.batch_rows
        beside: dict[str, Operator] = {RATE: rate.create_operator()}
        if rejects is not None:
            beside[REJECTS] = rejects
        source = SourceOperator(files, in_turns=False)
        super().__init__(source, _mapping(transform), sink, beside=beside, rate_limits=[RATE])
        self._rejects, self._rows_rejected = rejects, 0
        self._is_transformed = transform.is_given

    def taken(self, records: Sequence[ReadBatch]) -> None:
        """Write the rejected rows of the same moment."""
        for read in records:
            if read.rejected:
                assert self._rejects is not None, (
                    "rows are rejected where there is a table for them"
                )
                self._rejects.write(rejected_batch(read.rejected))
                self._rows_rejected += len(read.rejected)

    def pace_changed(self, rows_per_s: float | None) -> None:
        """Read batches that take a part of a second at the rate."""
        most = self._batch_rows
        if rows_per_s is not None:
            most = max(1, min(most, int(rows_per_s / SLICES_PER_S)))
        self._files.batch_rows = most

    def ask(self) -> None:
        """Name the file of rows that the sink cannot hold."""
        with self._named():
            super().ask()

    def write(self) -> None:
        """Name the file of rows that the sink cannot hold."""
        with self._named():
            super().write()

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except RowsUnfit as unfit:
            raise unfit.of(self._place(unfit.row)) from unfit.__cause__

    def _place(self, row: int | None) -> str:
        """The file and the rows of the batch that was shown last, of which the sink has all."""
        (read,) = self._records
        first, last = read.rows.start + 1, read.rows.stop
        if row is not None and not self._is_transformed:
            first = last = first + row
        rows = f"row {first}" if first == last else f"a row of {first} to {last}"
        return f"{rows} of {read.split.split_id}{', transformed' * self._is_transformed}"

    def rows_in(self, records: Sequence[ReadBatch]) -> int:
        """Rows of the file."""
        return sum(read.batch.num_rows for read in records)

    def metrics(self) -> dict[str, int | float]:
        """Rows of this attempt, and what it has to read of the splits that it has."""
        left = [to_file_split(split) for split, _ in self._source.splits]
        positions = [to_position(position) for _, position in self._source.splits]
        figures = {
            "rows_rejected": self._rows_rejected,
            "files_open": float(sum(split.share for split in left)),
            "bytes_open": sum(map(FileSplit.bytes_left, left, positions)),
        }
        return {**super().metrics(), **figures}


@dataclass(frozen=True)
class IngestProgramFactory:
    """Makes the program of a subtask; travels to the tasks with the Spark job.

    `rejects`: where rejected rows go, none if no row is. `takes`: what the transform is given.
    `rate`: of the whole job. `open_objects`: opens the buckets of the source.
    """

    sink: Sink
    rejects: Sink | None
    transform: TransformFunction | None
    takes: Takes
    batch_rows: int
    on_bad_file: OnBadFile
    on_bad_row: OnBadRow
    on_changed_file: OnChangedFile
    encoding: str
    rate: IngestRate = field(default_factory=lambda: IngestRate(None))
    open_objects: Callable[[str], ObjectStore] = open_url

    def __call__(self, subtask: int) -> IngestProgram:
        """The program of one attempt."""
        return IngestProgram(
            FileSource(
                batch_rows=self.batch_rows,
                on_bad_file=self.on_bad_file,
                on_bad_row=self.on_bad_row,
                on_changed_file=self.on_changed_file,
                encoding=self.encoding,
                tells_ends=True,
                open_objects=self.open_objects,
            ),
            BatchTransform(self.transform, self.takes),
            SinkOperator(self.sink),
            None if self.rejects is None else SinkOperator(self.rejects, label=REJECTS),
            self.rate,
        )


def _mapping(
    transform: BatchTransform,
) -> Callable[[Sequence[ReadBatch]], Iterator[pa.RecordBatch]]:
    return lambda records: iter(
        [batch for read in records if read.batch.num_rows for batch in transform.apply(read)]
    )
