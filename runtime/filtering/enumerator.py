"""A queue of splits that waits for filtering data, and leaves out what it excludes.

Decides that nothing is given out before the data is there, and that data which comes again is the
same. Its state is the queue's, and the data. Runs on the queue's thread, in the coordinator of a
source with a `listening_id`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Any

from epochgate.runtime.filtering.data import EVENT, FilteringData
from epochgate.runtime.filtering.errors import FilteringDataChanged
from epochgate.runtime.source import SourceSplit, SplitEnumeratorContext, SplitQueueEnumerator


class FilteredQueueEnumerator(SplitQueueEnumerator):
    """`may_match(split, data)` says whether a split can hold a value of the data; the rest as in
    `SplitQueueEnumerator`.
    """

    def __init__(
        self,
        context: SplitEnumeratorContext,
        state: Any,
        look: Callable[[], Iterable[SourceSplit]],
        may_match: Callable[[SourceSplit, FilteringData], bool],
        *,
        every_s: float | None = None,
    ) -> None:
        queue, has_data, plain = (None, False, None) if state is None else state
        super().__init__(context, queue, look, every_s=every_s)
        self._may_match = may_match
        self._data = FilteringData.from_plain(plain) if has_data else None
        self._left_out = context.metrics.counter("splits_left_out")

    def add_found(self, splits: Iterable[SourceSplit]) -> None:
        """Take in the splits of one look that may match."""
        fresh = [split for split in splits if split.split_id not in self._known]
        super().add_found(self._filtered(fresh))
        self._known.update(dict.fromkeys(split.split_id for split in fresh))

    def handle_coordinator_event(self, event: Any) -> None:
        """The data is there, or there again. Raises FilteringDataChanged."""
        if event[0] != EVENT:
            super().handle_coordinator_event(event)
        data = FilteringData.from_plain(event[2])
        if self._data not in (None, data):
            raise FilteringDataChanged(
                f"{event[1]!r} gives {data} after splits were left out by {self._data}"
            )
        if self._data is None:
            self._data = data
            self._splits = deque(self._filtered(self._splits))
            self._assign()

    def snapshot_state(self, checkpoint_id: int) -> Any:
        """The queue's state, and the data."""
        plain = None if self._data is None else self._data.to_plain()
        return [super().snapshot_state(checkpoint_id), self._data is not None, plain]

    def _filtered(self, splits: Collection[SourceSplit]) -> list[SourceSplit]:
        """All of them while there is no data."""
        data = self._data
        kept = [split for split in splits if data is None or self._may_match(split, data)]
        self._left_out.add(len(splits) - len(kept))
        return kept

    def _assign(self) -> None:
        if self._data is not None:
            super()._assign()
