"""A job with a build side, and a source of which only those splits are read that it names."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgpack

from epochgate.runtime import JobConfiguration, Operator, OperatorContext, Program, Work
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.filtering import (
    DynamicFilteringProvider,
    FilteredQueueEnumerator,
    FilteringData,
    FilteringDataOperator,
)
from epochgate.runtime.source import (
    Fetched,
    ReaderContext,
    Source,
    SourceOperator,
    SourceProvider,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from tests.runtime.source.ranges import CollectingOperator

BUILD, SOURCE, SINK = "build", "source", "sink"
LISTENING_ID = "listens for what to read"
KEYS, NUMBERS = 10, 5
"""Split k holds the numbers from 5 k to 5 k + 4."""


class KeyedSource(Source):
    def __init__(self) -> None:
        self.opened: set[int] = set()
        """The keys of splits that a reader has opened, where source and test share a process."""

    def look(self) -> list[SourceSplit]:
        return [SourceSplit(f"split-{key}", key) for key in range(KEYS)]

    def create_enumerator(self, context: SplitEnumeratorContext, state: Any) -> SplitEnumerator:
        return FilteredQueueEnumerator(context, state, self.look, may_match)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return KeyedReader(self.opened)


def may_match(split: SourceSplit, data: FilteringData) -> bool:
    return data.allows(split.value)


class KeyedReader(SourceReader):
    def __init__(self, opened: set[int]) -> None:
        self._opened = opened

    def open_split(self, split: SourceSplit, position: Any) -> Iterator[Fetched | None]:
        self._opened.add(split.value)
        for number in range(position or 0, NUMBERS):
            yield Fetched([split.value * NUMBERS + number], number + 1)


class BuildInput(Operator):
    """The build side's input: its state is how many keys were read."""

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        self.read = 0 if state is None else msgpack.unpackb(state)

    def snapshot(self, checkpoint_id: int) -> bytes:
        return bytes(msgpack.packb(self.read))


class JoinProgram(Program):
    """Reads all keys of the build side first; `keys` are this subtask's."""

    def __init__(
        self, keys: list[int], source: Source, values_max: int = 100, *, pause_s: float = 0.0
    ) -> None:
        self.keys, self.input, self.pause_s = keys, BuildInput(), pause_s
        self.filtering = FilteringDataOperator(values_max=values_max)
        self.source, self.sink = SourceOperator(source), CollectingOperator()

    @property
    def operators(self) -> Mapping[str, Operator]:
        return {"input": self.input, BUILD: self.filtering, SOURCE: self.source, SINK: self.sink}

    def work(self) -> Work:
        time.sleep(self.pause_s)
        if self.input.read < len(self.keys):
            self.filtering.add(self.keys[self.input.read])
            self.input.read += 1
            return Work.DONE
        self.filtering.report()
        return self.source.step(self.sink.write)


def join_configuration(
    source: Callable[[], Source], is_source_first: bool = True, **changes: Any
) -> JobConfiguration:
    providers = [
        SourceProvider(SOURCE, source(), listening_id=LISTENING_ID),
        DynamicFilteringProvider(BUILD, [LISTENING_ID]),
    ]
    settings = {"checkpoint_interval_s": 0.3, "restart_strategy": FixedDelay(1000, 0.05), **changes}
    ordered = providers if is_source_first else providers[::-1]
    return JobConfiguration("join", 2, tuple(ordered), **settings)


def numbers_of(keys: set[int]) -> list[int]:
    return [key * NUMBERS + number for key in sorted(keys) for number in range(NUMBERS)]
