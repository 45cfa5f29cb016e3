"""The parts of a pipeline, each of which comes to the doors of a test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from epochgate.pipeline import MapOperator
from epochgate.runtime import Committables, Committer, OperatorContext, Sink, SinkStart, SinkWriter
from epochgate.runtime.source import (
    Fetched,
    ReaderContext,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
    SplitEnumeratorContext,
    SplitQueueEnumerator,
)
from tests.runtime.at_door import Door

SPLITS, NUMBERS = 4, 5


class Reader(SourceReader):
    """Talks to its enumerator, and has a state of its own."""

    def __init__(self, context: ReaderContext) -> None:
        self._context = context

    def open_split(self, split: SourceSplit, position: Any) -> Iterator[Fetched | None]:
        self._context.send_source_event("opened")
        for number in range(split.value if position is None else position, split.value + NUMBERS):
            yield Fetched([number], number + 1)

    def handle_source_event(self, event: Any) -> None: ...

    def snapshot_state(self) -> Any:
        return "read"

    def restore_state(self, state: Any) -> None:
        assert state == "read"


class Enumerator(SplitQueueEnumerator):
    def __init__(self, context: SplitEnumeratorContext, state: Any, door: Door) -> None:
        super().__init__(context, state, door.function(look, "look"))
        self._own = context

    def handle_source_event(self, subtask: int, event: Any) -> None:
        self._own.send_event_to_source_reader(subtask, "heard")


def look() -> list[SourceSplit]:
    return [SourceSplit(f"split-{n}", n * NUMBERS) for n in range(SPLITS)]


class Ranges(Source):
    def __init__(self, door: Door) -> None:
        self._door = door

    def create_enumerator(self, context: SplitEnumeratorContext, state: Any) -> SplitEnumerator:
        return self._door.of(Enumerator, "enumerator")(context, state, self._door)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return self._door.of(Reader, "reader")(context)


class Doubling(MapOperator):
    def map(self, batch: Any) -> Any:
        return [[2 * number] for number in batch]


class Writer(SinkWriter):
    def __init__(self) -> None:
        self._rows: list[Any] = []

    def write(self, batch: Any) -> None:
        self._rows.extend(batch)

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        rows, self._rows = self._rows, []
        return rows


class Table(Committer):
    def __init__(self) -> None:
        self.rows: dict[int, list[Any]] = {}

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        self.rows[checkpoint_id] = [row for rows in committables.values() for row in rows]

    def has_all(self) -> bool:
        """Return whether each number is there once, doubled."""
        rows = sorted(row[0] for rows in self.rows.values() for row in rows)
        return rows == list(range(0, 2 * SPLITS * NUMBERS, 2))


class ToTable(Sink):
    def __init__(self, door: Door, table: Table) -> None:
        self._door, self._table = door, table

    def create_writer(self, context: OperatorContext, state: bytes | None) -> SinkWriter:
        return self._door.of(Writer, "writer")()

    def create_committer(self, start: SinkStart) -> Committer:
        return self._table
