"""Files as a DataFrame: `spark.read.format("epochgate")`, by the code that streams read by.

Decides that a frame has the files that are there when it is planned, each time it is. Spark makes
the reader in a process beside the driver, asks it for partitions, and sends it to the tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource

from epochgate.runtime.source import ReaderContext
from epochgate.spark.streaming.source_messages import told_at_this_door
from epochgate.spark.streaming.source_options import FRAMES, SourceOptions
from epochgate.spark.streaming.source_rows import (
    SplitsPartition,
    columns_of,
    is_inferred,
    rows_of,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class FrameReader(datasource.DataSourceReader):
    """The files of one frame; its splits, in tasks."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options, self._columns = options, columns_of(schema)
        self._is_inferred = is_inferred(schema)
        options.expect_columns(self._columns, is_inferred=self._is_inferred)

    def partitions(self) -> Sequence[SplitsPartition]:
        """The splits of the files, in a task each or in as many as the option says. Raises
        SourceFailed, and what looking at the files raises.
        """
        with told_at_this_door():
            splits = self._options.planned(self._columns, is_inferred=self._is_inferred)
        tasks = min(len(splits), self._options.partitions or len(splits))
        shares = (splits[task::tasks] for task in range(tasks))
        return [SplitsPartition([(split, None) for split in share], FRAMES) for share in shares]

    def read(self, partition: datasource.InputPartition) -> Iterator[Any]:
        """In a task: the rows of its splits. Raises SourceFailed, and what reading raises."""
        assert isinstance(partition, SplitsPartition)
        context = ReaderContext("source", 0, 0, 1, self._options.events(FRAMES))
        with told_at_this_door():
            reader = self._options.read(self._columns, self._is_inferred).create_reader(context)
            try:
                for split, _ in partition.splits:
                    yield from rows_of(reader, split, self._columns)
            finally:
                reader.close()
