"""Whatever the parts of a pipeline raise, the job goes on or ends, with type, file and line, and no
row is lost or doubled.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from epochgate.pipeline import FunctionSource, MapOperator, Pipeline, RateLimit
from epochgate.runtime import Committables, Committer, OperatorContext, Sink, SinkStart, SinkWriter
from epochgate.runtime.api.restart_strategies import FixedDelay
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
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime import doors
from tests.runtime.at_door import Door

SPLITS, NUMBERS = 4, 5
FILE = 'at_door.py", line '


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


class ToTable(Sink):
    def __init__(self, door: Door, table: Table) -> None:
        self._door, self._table = door, table

    def create_writer(self, context: OperatorContext, state: bytes | None) -> SinkWriter:
        return self._door.of(Writer, "writer")()

    def create_committer(self, start: SinkStart) -> Committer:
        return self._table


class Run:
    """A pipeline of all its parts, of which one raises once at a door."""

    def __init__(self, door: Door) -> None:
        self.door, self.table, self.worked = door, Table(), set[int]()
        self.job = SimulatedJob.of(
            Pipeline(
                coordinators=[RateLimit(10)],
                after_commit=door.function(self._work, "after_commit"),
                **self.parts(),
            ),
            checkpoint_interval_s=None,
            restart_strategy=FixedDelay(20, 0.1),
        )
        self._go_through()

    def parts(self) -> dict[str, Any]:
        """Source, map and sink."""
        return {
            "source": self.door.of(Ranges, "source")(self.door),
            "map": self.door.of(Doubling, "map"),
            "sink": self.door.of(ToTable, "sink")(self.door, self.table),
        }

    def _work(self, checkpoint_id: int, committables: Committables) -> None:
        self.worked.add(checkpoint_id)

    def _go_through(self) -> None:
        """Read a little, take checkpoints, lose a process, go back as a whole, read to the end."""
        job = self.job
        for turn in range(3):
            job.rest()
            job.wait(0.4)
            if turn and not job.is_over:
                job.master.request_checkpoint()
            job.flow()
            job.wait(0.2)
            if turn == 0 and job.transport.processes:
                job.transport.kill(max(job.transport.processes))
            elif turn == 1 and not job.is_over:
                job.master.job.lifecycle.fail_globally("everything goes back")
        job.rest(until=lambda: job.is_over)

    def has_all(self) -> bool:
        """Whether the job has finished, with each row once, and has worked after each commit."""
        rows = sorted(row[0] for rows in self.table.rows.values() for row in rows)
        return (
            self.job.result.state == "finished"
            and rows == list(range(0, 2 * SPLITS * NUMBERS, 2))
            and self.worked == set(self.table.rows)
        )

    @property
    def told(self) -> list[str]:
        report = self.job.master.report
        told = [f.reason for f in report.failures] + [c.reason or "" for c in report.checkpoints]
        return [*told, *report.warnings, report.failure_reason or ""]


class RunOfFunctions(Run):
    """A pipeline of functions."""

    def parts(self) -> dict[str, Any]:
        """Source, map and sink."""
        at = self.door.function
        return {
            "source": FunctionSource(
                at(first_numbers, "functions.look"), at(read, "functions.read")
            ),
            "map": at(doubled, "functions.map"),
            "sink": at(self._write, "functions.write"),
        }

    def _write(self, checkpoint_id: int, rows: list[Any]) -> None:
        self.table.rows[checkpoint_id] = rows

    def has_all(self) -> bool:
        """Whether the job has finished, with each row once."""
        self.worked = set(self.table.rows)
        return super().has_all()


def first_numbers() -> list[int]:
    return [n * NUMBERS for n in range(SPLITS)]


def read(first: int, position: int | None) -> Iterator[tuple[list[int], int]]:
    for number in range(first if position is None else position, first + NUMBERS):
        yield [number], number + 1


def doubled(batch: list[int]) -> list[list[int]]:
    return [[2 * number] for number in batch]


@pytest.mark.parametrize("raised", doors.RAISED, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("door", doors.FUNCTION)
def test_what_a_function_of_a_pipeline_raises_is_told_with_type_file_and_line(
    door: str, raised: type[BaseException]
) -> None:
    run = RunOfFunctions(Door(door, raised))
    assert run.door.has_raised
    assert any(raised.__name__ in text and FILE in text for text in run.told), run.told
    if door == "functions.write":  # a commit that fails ends the job
        assert run.job.result.state == "failed"
    else:
        assert run.has_all(), run.told


def test_without_a_fault_all_is_read_once() -> None:
    run = Run(Door("", ValueError))
    assert run.has_all(), run.told


@pytest.mark.parametrize("raised", doors.RAISED, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("door", doors.PIPELINE)
def test_what_a_part_raises_is_told_with_type_file_and_line_and_no_row_is_lost(
    door: str, raised: type[BaseException]
) -> None:
    run = Run(Door(door, raised))
    assert run.door.has_raised
    assert run.has_all(), run.told
    assert any(raised.__name__ in text and FILE in text for text in run.told), run.told


@pytest.mark.parametrize("raised", doors.RAISED, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("door", doors.PIPELINE_CLOSING)
def test_what_a_part_raises_when_it_is_closed_changes_nothing(
    door: str, raised: type[BaseException]
) -> None:
    run = Run(Door(door, raised))
    assert run.door.has_raised
    assert run.has_all(), run.told
