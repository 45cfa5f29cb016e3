"""The readers of the file source: each split batch by batch, with the position behind each batch.

A split carries the layout of the source with it, so that a reader can begin at once. The reader's
own state is the bad files that it has met since the last completed checkpoint: it reports them once
more when it is restored, since the coordinator's part of that checkpoint may not hold the first
report, and that of each later one does. Runs in the task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any

import pyarrow as pa

from epochgate.runtime.objects.client import ObjectStore, open_url
from epochgate.runtime.source import (
    Fetched,
    ReaderContext,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from epochgate.spark.files import (
    FileSplit,
    SkippedFile,
    SourceLayout,
    SplitPosition,
    SplitReader,
)
from epochgate.spark.files.access import FileAccess
from epochgate.spark.files.content import OnChangedFile
from epochgate.spark.files.reader import OnBadFile
from epochgate.spark.files.rejected import OnBadRow
from epochgate.spark.files.text import UTF_8


def to_source_split(split: FileSplit, layout: SourceLayout) -> SourceSplit:
    """The split as it is assigned: its value is the split and the layout, plain."""
    return SourceSplit(split.split_id, [split.to_list(), layout.to_bytes()])


def to_file_split(split: SourceSplit) -> FileSplit:
    """The file's part of the inverse of `to_source_split`."""
    return FileSplit.from_list(split.value[0])


def to_position(values: Any) -> SplitPosition | None:
    """The position as a `Fetched` has told it; none at the beginning."""
    return None if values is None else SplitPosition.from_list(values)


class FileReader(SourceReader):
    """Reads splits of files; each `Fetched` holds one `ReadBatch`."""

    def __init__(
        self,
        make_reader: Callable[..., SplitReader],
        batch_rows: Callable[[], int],
        report: Callable[[Any], None],
        declared: Callable[[SourceLayout], SourceLayout] | None = None,
    ) -> None:
        self._make_reader, self._batch_rows = make_reader, batch_rows
        self._report, self._declared = report, declared
        self._skipped: list[list[str]] = []
        self._in_snapshot = 0
        """How many of them the last snapshot has."""

    def open_split(self, split: SourceSplit, position: Any) -> Iterator[Fetched | None]:
        """Read the split in batches; where their size changes, begin again behind the last one.
        Raises what `SplitReader.read` raises.
        """
        layout = SourceLayout.from_bytes(split.value[1])
        if self._declared is not None:
            layout = self._declared(layout)
        whole, at = to_file_split(split), to_position(position)
        while True:
            batch_rows = self._batch_rows()
            reader = self._make_reader(layout, batch_rows=batch_rows)
            with closing(reader.read(whole, at)) as reading:
                for read in reading:
                    at = read.position
                    yield Fetched([read], at.to_list())
                    if self._batch_rows() != batch_rows:
                        break
                else:
                    break
        for skipped in reader.take_skipped():
            self._note(skipped)

    def snapshot_state(self) -> Any:
        """The bad files met since the last completed checkpoint."""
        self._in_snapshot = len(self._skipped)
        return list(self._skipped) or None

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The coordinator has heard of what the snapshot has: that was said before it arrived."""
        del self._skipped[: self._in_snapshot]
        self._in_snapshot = 0

    def restore_state(self, state: Any) -> None:
        """Report the bad files again."""
        for values in state:
            self._note(SkippedFile.from_list(values))

    def _note(self, skipped: SkippedFile) -> None:
        self._skipped.append(skipped.to_list())
        self._report(skipped.to_list())


class FileSource(Source):
    """The source as a task needs it; `epochgate.spark.ingest.file_enumerator` has the driver's.

    declared: the columns as which files are read, whatever was known when their splits were
    made; none for those of the splits. is_inferred: whether no user has declared them. batch_rows:
    of a batch at most; readers follow a change of it.
    """

    state_version = 2

    def __init__(
        self,
        *,
        batch_rows: int,
        on_bad_file: OnBadFile,
        on_bad_row: OnBadRow = "fail",
        on_changed_file: OnChangedFile = "fail",
        encoding: str = UTF_8,
        declared: pa.Schema | None = None,
        is_inferred: bool = False,
        open_objects: Callable[[str], ObjectStore] = open_url,
    ) -> None:
        self._declared = (
            None
            if declared is None
            else partial(SourceLayout.as_declared, columns=declared, is_inferred=is_inferred)
        )
        self.batch_rows = batch_rows
        self._make_reader = partial(
            SplitReader,
            on_bad_file=on_bad_file,
            on_bad_row=on_bad_row,
            on_changed_file=on_changed_file,
            encoding=encoding,
            access=FileAccess(open_objects),
        )

    def create_enumerator(self, context: SplitEnumeratorContext, state: Any) -> SplitEnumerator:
        """Raises TypeError: files are enumerated on the driver."""
        raise TypeError(
            f"{type(self).__name__} has no enumerator; give the provider an EnumeratedFileSource"
        )

    def redistribute_reader_states(self, states: list[Any], parallelism: int) -> list[Any]:
        """One reader reports the bad files that all have met."""
        return [[skipped for state in states for skipped in state]] if states else []

    def create_reader(self, context: ReaderContext) -> FileReader:
        """Make the reader of one attempt."""
        return FileReader(
            self._make_reader, lambda: self.batch_rows, context.send_source_event, self._declared
        )
