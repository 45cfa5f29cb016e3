"""The file source's operator: reads the splits it is given, batch by batch, and knows where it is.

Decides when to ask for the next split: one ahead of the one being read, so that no round trip is
waited for. Its state is the split being read with the position in it, and the one ahead. Whether
more will come is not part of it: a later run may find new files, so a restored reader asks again.
Runs in the task.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import msgpack

from epochgate.runtime import Operator, OperatorContext
from epochgate.spark.files import (
    FileSplit,
    IncompatibleState,
    ReadBatch,
    SkippedFile,
    SourceLayout,
    SplitPosition,
    SplitReader,
)
from epochgate.spark.files.reader import OnBadFile

STATE_VERSION = 1
SPLITS_AHEAD = 1


class FileSourceOperator(Operator):
    """Shows the next batch with `peek` and goes on with `take`, until `has_ended`."""

    def __init__(self, *, batch_rows: int, on_bad_file: OnBadFile) -> None:
        self._batch_rows, self._on_bad_file = batch_rows, on_bad_file
        self._reader: SplitReader | None = None
        self._splits: deque[tuple[FileSplit, SplitPosition | None]] = deque()
        self._batches: Iterator[ReadBatch] | None = None
        self._next: ReadBatch | None = None
        self._has_asked = False
        self._is_last = False
        self._skipped: list[SkippedFile] = []
        self.rows_read = 0

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        """Continue with the splits of the state."""
        super().open(context, state)
        if state is not None:
            version, *values = msgpack.unpackb(state)
            if version != STATE_VERSION:
                raise IncompatibleState("file source operator", version, STATE_VERSION)
            splits, skipped = values
            for split, position in splits:
                at = None if position is None else SplitPosition.from_list(position)
                self._splits.append((FileSplit.from_list(split), at))
            for value in skipped:
                self._report_skipped(SkippedFile.from_list(value))

    def handle_event(self, event: Any) -> None:
        """The layout, a split, or the news that there are no more."""
        if event[0] == "layout":
            layout = SourceLayout.from_bytes(event[1])
            self._reader = SplitReader(
                layout, batch_rows=self._batch_rows, on_bad_file=self._on_bad_file
            )
        elif event[0] == "split":
            self._has_asked = False
            self._splits.append((FileSplit.from_list(event[1]), None))
        else:
            self._has_asked = False
            self._is_last = True

    def snapshot(self, checkpoint_id: int) -> bytes:
        """The splits at hand with the position in the first, and bad files met."""
        splits = [
            [split.to_list(), None if position is None else position.to_list()]
            for split, position in self._splits
        ]
        skipped = [value.to_list() for value in self._skipped]
        packed: bytes = msgpack.packb([STATE_VERSION, splits, skipped])
        return packed

    @property
    def has_ended(self) -> bool:
        """Whether everything is read, and nothing more will be given."""
        return self._is_last and not self._splits

    def peek(self) -> ReadBatch | None:
        """The next batch, the same until it is taken; None when there is none at the moment."""
        self._ask_ahead()
        while self._next is None and self._splits and self._reader is not None:
            if self._batches is None:
                self._batches = self._reader.read(*self._splits[0])
            self._next = next(self._batches, None)
            if self._next is None:
                self._batches = None
                self._splits.popleft()
                for value in self._reader.take_skipped():
                    self._report_skipped(value)
                self._ask_ahead()
        return self._next

    def take(self) -> None:
        """The batch that `peek` has shown is processed: a checkpoint from now on is after it."""
        assert self._next is not None
        self._splits[0] = (self._next.split, self._next.position)
        self.rows_read += self._next.batch.num_rows
        self._next = None

    def _ask_ahead(self) -> None:
        if not self._has_asked and not self._is_last and len(self._splits) <= SPLITS_AHEAD:
            self._has_asked = True
            self.context.send_to_coordinator(["request"])

    def _report_skipped(self, skipped: SkippedFile) -> None:
        self._skipped.append(skipped)
        self.context.send_to_coordinator(["skipped", skipped.to_list()])
