"""A job whose outcome shows each fault of a source: ranges of numbers are read, and come out
committed.

The sink's operator hands over the numbers since the last completed checkpoint; the committer keeps
them, and says which are missing or there twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgpack

from epochgate.runtime import Committables, Committer, Operator, OperatorContext, Program, Work
from epochgate.runtime.source import (
    Fetched,
    ReaderContext,
    Source,
    SourceOperator,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
    SplitEnumeratorContext,
    SplitQueueEnumerator,
)

SOURCE, SINK = "ranges", "sink"


class RangeSource(Source):
    """Splits are ranges of `numbers` numbers; `looks` of them appear one after the other when it is
    followed. `rest_after` numbers a split has nothing, once.
    """

    def __init__(
        self,
        splits: int,
        numbers: int = 10,
        *,
        every_s: float | None = None,
        looks: int = 1,
        rest_after: int | None = None,
    ) -> None:
        self.splits, self.numbers, self.every_s, self.looks = splits, numbers, every_s, looks
        self.rest_after = rest_after
        self.looked = 0

    def look(self) -> list[SourceSplit]:
        """Return what is there; a part of it appears with each look."""
        self.looked += 1
        visible = min(self.splits, -(-self.splits * self.looked // self.looks))
        return [
            SourceSplit(f"split-{n}", [n * self.numbers, (n + 1) * self.numbers])
            for n in range(visible)
        ]

    def create_enumerator(self, context: SplitEnumeratorContext, state: Any) -> SplitEnumerator:
        return SplitQueueEnumerator(context, state, self.look, every_s=self.every_s)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return RangeReader(self.rest_after)


class RangeReader(SourceReader):
    def __init__(self, rest_after: int | None) -> None:
        self._rest_after = rest_after

    def open_split(self, split: SourceSplit, position: Any) -> Iterator[Fetched | None]:
        first, end = split.value
        for number in range(first if position is None else position, end):
            if number - first == self._rest_after:
                yield None
            yield Fetched([number], number + 1, watermark=number - first)


class CollectingOperator(Operator):
    """Hands over what came since the last completed checkpoint."""

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        self.numbers: list[int] = []
        self._offered: dict[int, int] = {}

    def write(self, numbers: Sequence[Any]) -> None:
        self.numbers.extend(numbers)

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        self._offered[checkpoint_id] = len(self.numbers)
        return list(self.numbers)

    def snapshot(self, checkpoint_id: int) -> bytes:
        return b""

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        del self.numbers[: self._offered[checkpoint_id]]
        self._offered.clear()


class RangeProgram(Program):
    """From source to sink; `is_held` keeps it from reading, for a test that wants to wait."""

    def __init__(self, source: Source, is_held: Callable[[], bool] = lambda: False) -> None:
        self.source, self.sink = SourceOperator(source), CollectingOperator()
        self._is_held = is_held

    @property
    def operators(self) -> Mapping[str, Operator]:
        return {SOURCE: self.source, SINK: self.sink}

    def work(self) -> Work:
        return Work.IDLE if self._is_held() else self.source.step(self.sink.write)

    def metrics(self) -> dict[str, int | float]:
        return {"records_read": self.source.records_read}


class NumberCommitter(Committer):
    """Keeps the numbers of each checkpoint; committing one again changes nothing."""

    def __init__(self) -> None:
        self.committed: dict[int, list[int]] = {}

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        numbers = [number for subtask in sorted(committables) for number in committables[subtask]]
        again = self.committed.setdefault(checkpoint_id, numbers)
        assert again == numbers, f"checkpoint {checkpoint_id} was committed with other numbers"

    def numbers(self) -> list[int]:
        """Everything that was committed."""
        return [number for numbers in self.committed.values() for number in numbers]

    def problems(self, count: int) -> list[str]:
        """Return what is not exactly once, of the numbers from 0 to `count`."""
        times = Counter(self.numbers())
        return [f"{n}: {times[n]} times" for n in sorted({*range(count), *times}) if times[n] != 1]


def state_of(splits: dict[str, Any]) -> bytes:
    """The state of a source's operator that is in these splits at these positions."""
    packed: bytes = msgpack.packb([1, [[name, None, at] for name, at in splits.items()]])
    return packed
