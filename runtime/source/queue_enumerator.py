"""An enumerator for most sources: a queue of splits, filled by looking, emptied by who asks.

Decides who gets a split (the reader that waits longest), and that a split found twice is given out
once. Leaves to its `look` what splits there are. Its state is the queue and the ids of all splits
that were ever found; an enumerator looks itself before it says that there are no more, whatever
another has found before. Runs on the queue's thread; `look` elsewhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from epochgate.runtime.source.enumerator import SplitEnumerator, SplitEnumeratorContext
from epochgate.runtime.source.split import SourceSplit


class SplitQueueEnumerator(SplitEnumerator):
    """Gives each reader that asks the next split, and no more than one at a time.

    `look` returns the splits that are there, those known included; it may block. `every_s`: look
    again `every_s` seconds after each look, for ever; none: look once, at each start of the job and
    each reset of it, and end when all is read. `state` is what `snapshot_state` returned.
    """

    def __init__(
        self,
        context: SplitEnumeratorContext,
        state: Any,
        look: Callable[[], Iterable[SourceSplit]],
        *,
        every_s: float | None = None,
    ) -> None:
        self._context, self._look, self._every_s = context, look, every_s
        # A third item, of earlier releases, tells that one of them has looked.
        splits, known, *_ = ([], []) if state is None else state
        self._has_looked = False
        self._splits = deque(SourceSplit(*plain) for plain in splits)
        self._known = dict.fromkeys(known)
        self._waiting: dict[int, None] = {}
        context.metrics.gauge("splits_unassigned", lambda: len(self._splits))

    def start(self) -> None:
        """Look for splits."""
        self._context.call_async(lambda: list(self._look()), self.add_found, every_s=self._every_s)

    def add_found(self, splits: Iterable[SourceSplit]) -> None:
        """Take in the splits of one look; those that are known already change nothing."""
        self._has_looked = True
        for split in splits:
            if split.split_id not in self._known:
                self._known[split.split_id] = None
                self._splits.append(split)
        self._assign()

    def handle_split_request(self, subtask: int) -> None:
        """Give it the next split, or let it wait for one."""
        self._waiting[subtask] = None
        self._assign()

    def add_splits_back(self, splits: list[SourceSplit], subtask: int) -> None:
        """Give them out before others, in their order."""
        self._splits.extendleft(reversed(splits))
        self._assign()

    def add_reader(self, subtask: int) -> None:
        """Nothing to do: it asks. What the attempt before asked for is void."""
        self._waiting.pop(subtask, None)

    def snapshot_state(self, checkpoint_id: int) -> Any:
        """The queue and all known ids."""
        return [[[split.split_id, split.value] for split in self._splits], list(self._known)]

    def _assign(self) -> None:
        is_all = self._has_looked and self._every_s is None
        for subtask in [one for one in self._waiting if one in self._context.registered_readers]:
            if self._splits:
                self._context.assign_split(self._splits.popleft(), subtask)
            elif is_all:
                self._context.signal_no_more_splits(subtask)
            else:
                break
            del self._waiting[subtask]
