"""A source of numbers, and the drivers that plan its batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from epochgate.runtime.entries.stores import Entries
from epochgate.runtime.source import (
    ReaderContext,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
    SplitEnumeratorContext,
    SplitQueueEnumerator,
)
from epochgate.runtime.source.batches.enumerating import BatchEnumerator
from epochgate.runtime.source.batches.planned import SplitFilter
from epochgate.runtime.source.batches.planning import Planning, no_filter

STREAM = "stream-1"


class Numbers(Source):
    """Its splits are numbers, in the order in which they come; `there` grows."""

    def __init__(self, there: int) -> None:
        self.there = there
        self.fails = False

    def look(self) -> list[SourceSplit]:
        if self.fails:
            raise RuntimeError("the catalogue does not answer")
        return [SourceSplit(str(number), number) for number in range(self.there)]

    def create_enumerator(self, context: SplitEnumeratorContext, state: Any) -> SplitEnumerator:
        return SplitQueueEnumerator(context, state, self.look, every_s=0.0)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        raise NotImplementedError


def at_most(splits: int) -> Any:
    def is_full(taken: Sequence[SourceSplit]) -> bool:
        return len(taken) >= splits

    return is_full


def driver(
    entries: Entries,
    source: Source,
    *,
    most: int = 2,
    newest: Callable[[], SplitFilter | None] = no_filter,
    judge: Callable[[Sequence[SourceSplit], SplitFilter], list[bool]] | None = None,
) -> Planning:
    """A process that plans the batches of the stream, without those splits that the newest filter
    prunes.
    """

    def make(begun: tuple[int, Any] | None) -> BatchEnumerator:
        return BatchEnumerator(source, begun, at_most(most), judge or are_at_least)

    return Planning(entries, "the place", STREAM, make, None, newest)


def are_at_least(splits: Sequence[SourceSplit], by: SplitFilter) -> list[bool]:
    """Of each number whether the filter leaves it."""
    return [split.value >= by.values["least"] for split in splits]


def numbers(planning: Planning, batch: int) -> list[int]:
    return [split.value for one in planning.batches(batch - 1, batch) for split in one.splits]
