"""A source of ours as the source of a streaming query: `spark.readStream.format("epochgate")`.

Decides what Spark is told, and leaves which splits belong to which batch to the machine
`batch_plan`. An offset names a stream and the number of a batch; the splits of the batch, and what
the enumerator keeps, are in the plan of that number, in the directory that the option `state`
names, with the filter by which splits were pruned and by which rows are left out. Spark keeps the
offsets in its checkpoint location and gives them back.

Spark makes one reader in a process beside the driver, asks it for offsets and partitions, and sends
it to the tasks, where `read` reads the splits of a partition.
"""

from __future__ import annotations

import contextlib
import math
import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource

from epochgate.runtime.entries.stores import open_entries
from epochgate.runtime.limited import limited
from epochgate.runtime.source import ReaderContext, SourceSplit
from epochgate.runtime.source.batches.enumerating import BatchEnumerator
from epochgate.runtime.source.batches.planning import Planning, no_filter
from epochgate.spark.streaming.errors import OptionsWrong
from epochgate.spark.streaming.frame_source import FrameReader
from epochgate.spark.streaming.source_filter import matching_rows
from epochgate.spark.streaming.source_messages import told_at_this_door
from epochgate.spark.streaming.source_options import SourceOptions, is_of_frame, parse_source
from epochgate.spark.streaming.source_rows import (
    SplitsPartition,
    columns_of,
    inferred,
    is_inferred,
    rows_of,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxBytes,
        ReadMaxFiles,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # Spark before 4.2 cannot ask how far a batch may go
    HAS_LIMITS = False
    _Reader: Any = datasource.DataSourceStreamReader
else:
    HAS_LIMITS = True

    class _Reader(  # type: ignore[no-redef]
        datasource.DataSourceStreamReader, SupportsTriggerAvailableNow
    ):
        """The reader that Spark asks for offsets, with limits."""


Offset = dict[str, Any]
STREAM, BATCH = "stream", "batch"


class ReadsStreams:
    """The reading half of the data source."""

    options: Any

    def schema(self) -> StructType:
        """The columns of the files that are there. Raises OptionsWrong where only the user can
        know.
        """
        of_frame = not self.options.get("state") and is_of_frame(self.options)
        with told_at_this_door():
            return inferred(parse_source(self.options, of_frame=of_frame).arrow_schema())

    def reader(self, schema: StructType) -> FrameReader:
        """The reader of one `spark.read`. Raises OptionsWrong."""
        return FrameReader(parse_source(self.options, of_frame=True), schema)

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802  # Spark's name
        """The reader of a query. Raises OptionsWrong."""
        if not HAS_LIMITS:
            raise OptionsWrong(
                "reading by format('epochgate') needs Spark 4.2 or newer, which tells a source "
                "where it goes on after a restart; on an older one use a resident job "
                "(epochgate ingest), or Spark's own file source"
            )
        return StreamReader(parse_source(self.options), schema)


class StreamReader(_Reader):  # type: ignore[misc]  # which base there is depends on Spark
    """Offsets and partitions of one query, beside the driver; its splits, in tasks."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options, self._columns = options, columns_of(schema)
        self._is_inferred = is_inferred(schema)
        options.expect_columns(self._columns, is_inferred=self._is_inferred)
        self._planning: Planning | None = None
        self._stream = ""
        self._looks_again = True
        self._limit: Any = None
        self._newest: Offset | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state that travels to the tasks: no enumerator, and no connection."""
        return {**self.__dict__, "_planning": None, "_limit": None}

    def initialOffset(self) -> Offset:  # noqa: N802  # Spark's name
        """The beginning of a stream of its own."""
        return {STREAM: uuid.uuid4().hex, BATCH: 0}

    def getDefaultReadLimit(self) -> Any:  # noqa: N802  # Spark's name
        """Return how many splits a batch may have."""
        most = self._options.splits_max
        return ReadAllAvailable() if most is None else ReadMaxFiles(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # Spark's name
        """Look for splits once, and give out those."""
        self._looks_again = False

    def latestOffset(self, start: Offset, limit: Any) -> Offset:  # noqa: N802  # Spark's name
        """The next batch, if there is one. Raises PlanOvertaken, PlanNotMade."""
        self._limit = limit
        after = int(start[BATCH])
        self._newest = start
        with told_at_this_door():
            if self._planned(start[STREAM]).has_batch(after + 1):
                self._newest = {STREAM: start[STREAM], BATCH: after + 1}
        return self._newest

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802  # Spark's name
        """The newest batch that is planned, with what of the files that were found waits behind it;
        None where that is not known, as of a source of the user's. Spark shows it as the latest
        offset of the source in each progress.
        """
        figures = {} if self._planning is None else self._planning.figures()
        if self._newest is None or "files_waiting" not in figures:
            return None
        return {
            **self._newest,
            "filesWaiting": math.ceil(figures["files_waiting"]),
            "bytesWaiting": int(figures["bytes_waiting"]),
        }

    def partitions(self, start: Offset, end: Offset) -> Sequence[SplitsPartition]:
        """The splits of the batches behind `start` up to `end`, in a task each or in as many as the
        option says. Raises PlanForgotten, PlanNotMade.
        """
        stream = end[STREAM]
        with told_at_this_door():
            batches = self._planned(stream).batches(int(start[BATCH]), int(end[BATCH]))
        splits = [(split, batch.filter) for batch in batches for split in batch.splits]
        tasks = min(len(splits), self._options.partitions or len(splits))
        return [SplitsPartition(splits[task::tasks], stream) for task in range(tasks)]

    def read(self, partition: SplitsPartition) -> Iterator[Any]:
        """In a task: the rows of its splits, each from the beginning to the end. Raises
        SplitWithoutEnd, RowUnfit, SourceFailed, and what the source raises.
        """
        events = self._options.events(partition.stream)
        context = ReaderContext("source", 0, 0, 1, events)
        with told_at_this_door():
            reader = self._options.read(self._columns, self._is_inferred).create_reader(context)
            try:
                for split, by in partition.splits:
                    yield from rows_of(reader, split, self._columns, matching_rows(by))
            finally:
                reader.close()

    def commit(self, end: Offset) -> None:
        """Nothing: what is behind is forgotten by its number, while batches are planned."""

    def stop(self) -> None:
        """End the enumerator."""
        if self._planning is not None:
            self._planning.close()
            self._planning = None

    def _planned(self, stream: str) -> Planning:
        if self._planning is None or self._stream != stream:
            self.stop()
            options, state, limit = self._options, self._options.state, self._options.waits.store
            left = None
            with contextlib.suppress(OSError):  # what is left there harms nothing
                left = limited(f"listing {state!r}", limit, lambda: options.left(stream))
            entries = limited(f"opening {state!r}", limit, lambda: open_entries(state))
            self._stream = stream
            self._planning = Planning(
                *(entries, state, stream, self._enumerator),
                None if left is None else left.remove,
                no_filter if options.filter is None else options.filter.newest(stream),
                options.waits,
            )
        return self._planning

    def _enumerator(self, begun: tuple[int, Any] | None) -> BatchEnumerator:
        source = self._options.enumerated(
            self._stream, self._columns, is_inferred=self._is_inferred
        )
        pruning = self._options.pruning(source)
        enumerator = BatchEnumerator(source, begun, self._is_full, pruning)
        enumerator.looks = self._looks_again
        return enumerator

    def _is_full(self, taken: Sequence[SourceSplit]) -> bool:
        if not taken:
            return False
        most = self._limit.max_files if isinstance(self._limit, ReadMaxFiles) else None
        size = self._limit.max_bytes if isinstance(self._limit, ReadMaxBytes) else None
        size = size if size is not None else self._options.bytes_max
        is_long = most is not None and len(taken) >= most
        return is_long or (size is not None and self._options.size_of(taken) >= size)
