"""The readers of the file source: each split batch by batch, with the position behind each batch.

A split carries the layout of the source with it, so that a reader can begin at once. The reader's
own state is what it has told since the last completed checkpoint: the bad files that it has met,
and the splits that it has read to their end. It tells that once more when it is restored, since the
coordinator's part of that checkpoint may not hold the first report, and that of each later one
does. Runs in the task.
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
    SourceLayout,
    SplitPosition,
    SplitReader,
)
from epochgate.spark.files.access import FileAccess
from epochgate.spark.files.content import OnChangedFile
from epochgate.spark.files.reader import OnBadFile
from epochgate.spark.files.rejected import OnBadRow
from epochgate.spark.files.taken import EndedSplit
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
        last_snapshot: Callable[[], int] | None = None,
    ) -> None:
        self._make_reader, self._batch_rows = make_reader, batch_rows
        self._report, self._declared = report, declared
        self._last_snapshot = last_snapshot
        self._told: list[list[Any]] = []
        """Bad files, and splits that were read to their end."""
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
        bad = reader.take_skipped()
        for skipped in bad:
            self._tell(skipped.to_list())
        if self._last_snapshot is not None:
            rows, rejected = (0, 0) if at is None else (at.rows, at.rejected)
            ended = EndedSplit(whole, rows, rejected, bool(bad))
            self._tell(ended.to_list(), self._last_snapshot())

    def snapshot_state(self) -> Any:
        """The words since the last completed checkpoint."""
        self._in_snapshot = len(self._told)
        return list(self._told) or None

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The coordinator has heard of what the snapshot has: that was said before it arrived."""
        del self._told[: self._in_snapshot]
        self._in_snapshot = 0

    def restore_state(self, state: Any) -> None:
        """Tell it again; the next checkpoint of this attempt is the first that holds it."""
        for values in state:
            self._tell(values)

    def _tell(self, values: list[Any], last_snapshot: int = 0) -> None:
        self._told.append(values)
        self._report([*values, last_snapshot] if is_ended(values) else values)


def is_ended(values: list[Any]) -> bool:
    """Return whether this tells of a split that was read to its end, and not of a bad file."""
    return not isinstance(values[0], str)


class FileSource(Source):
    """The source as a task needs it; `epochgate.spark.ingest.file_enumerator` has the driver's.

    tells_ends: whether readers tell which splits they have read to their end, and of which
    checkpoint they took their snapshot last. declared: the columns as which files are read,
    whatever was known when their splits were made; none for those of the splits. is_inferred:
    whether no user has declared them. batch_rows: of a batch at most; readers follow a change of
    it.
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
        tells_ends: bool = False,
        declared: pa.Schema | None = None,
        is_inferred: bool = False,
        open_objects: Callable[[str], ObjectStore] = open_url,
    ) -> None:
        self._declared = (
            None
            if declared is None
            else partial(SourceLayout.as_declared, columns=declared, is_inferred=is_inferred)
        )
        self.batch_rows, self._tells_ends = batch_rows, tells_ends
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
        """One reader tells what all have told."""
        return [[told for state in states for told in state]] if states else []

    def create_reader(self, context: ReaderContext) -> FileReader:
        """Make the reader of one attempt."""
        return FileReader(
            self._make_reader,
            lambda: self.batch_rows,
            context.send_source_event,
            self._declared,
            context.last_snapshot if self._tells_ends else None,
        )
