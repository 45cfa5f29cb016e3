"""Each record is mapped once and written once, however long the sink is not ready."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import epochgate
from epochgate.pipeline import FunctionSource, MapOperator, Pipeline, Setting
from epochgate.runtime import Committables, Committer, OperatorContext, Sink, SinkStart, SinkWriter
from epochgate.runtime.testing.simulation import SimulatedJob
from epochgate.spark.parquet_sink import ParquetSink

ROWS = 40


class Gate(SinkWriter):
    """Is ready when the test says so."""

    is_open = False

    def __init__(self) -> None:
        self.rows: list[Any] = []

    def may_write(self, batch: Any) -> bool:
        return Gate.is_open

    def write(self, batch: Any) -> None:
        is_table = isinstance(batch, pa.RecordBatch)
        self.rows += [list(row.values()) for row in batch.to_pylist()] if is_table else batch

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        rows, self.rows = self.rows, []
        return rows


class Kept(Committer):
    def __init__(self, pages: dict[int, list[Any]]) -> None:
        self._pages = pages

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        self._pages[checkpoint_id] = [row for rows in committables.values() for row in rows]


class GatedSink(Sink):
    def __init__(self) -> None:
        self.pages: dict[int, list[Any]] = {}

    @property
    def written(self) -> list[Any]:
        return sorted(row for rows in self.pages.values() for row in rows)

    def create_writer(self, context: OperatorContext, state: bytes | None) -> SinkWriter:
        return Gate()

    def create_committer(self, start: SinkStart) -> Committer:
        return Kept(self.pages)


class Numbering(MapOperator):
    """Numbers the rows of its subtask; its state is how many it has mapped."""

    count = 0

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        self.count = int(state or 0)

    def snapshot(self, checkpoint_id: int) -> bytes:
        return str(self.count).encode()

    def map(self, batch: Any) -> Any:
        return [[self.next(), number] for number in batch]

    def next(self) -> int:
        self.count += 1
        return self.count - 1


class InTables(Numbering):
    def map(self, batch: Any) -> Any:
        rows = super().map(batch)
        return pa.record_batch(
            {"number": [number for number, _ in rows], "n": [n for _, n in rows]}
        )


class InPieces(Numbering):
    def map(self, batch: Any) -> Iterator[Any]:
        for number in batch:
            yield pa.record_batch({"number": [self.next()], "n": [number]})


class Unstorable(Numbering):
    def map(self, batch: Any) -> Any:
        return [object() for _ in batch]


def numbers(rows: int = ROWS) -> FunctionSource:
    return FunctionSource(
        range(0, rows, 10), lambda first: range(first, first + 10), batch_records=10
    )


@pytest.fixture
def sink() -> Iterator[GatedSink]:
    Gate.is_open = False
    yield GatedSink()
    Gate.is_open = False


def simulated(sink: Any, map: Any, **settings: Any) -> SimulatedJob:
    coordinators = settings.pop("coordinators", ())
    pipeline = Pipeline(source=numbers(), map=map, sink=sink, coordinators=coordinators)
    return SimulatedJob.of(pipeline, checkpoint_interval_s=None, **settings)


def checkpointed(job: SimulatedJob) -> int:
    wanted = job.master.request_checkpoint()
    job.flow()
    return wanted.result(timeout=0)


def finished(job: SimulatedJob) -> None:
    Gate.is_open = True
    job.settle(until=lambda: job.is_over)
    assert job.result.state == "finished", job.result.reason


def test_a_map_operator_maps_each_row_once_although_parquet_waits_for_the_schema(
    tmp_path: Path,
) -> None:
    job = simulated(ParquetSink(str(tmp_path / "out")), InTables)
    job.settle(until=lambda: job.is_over)
    table = epochgate.read(str(tmp_path / "out"))
    assert sorted(table.column("number").to_pylist()) == list(range(ROWS))


@pytest.mark.parametrize("map", [Numbering, InPieces])
@pytest.mark.parametrize("failure", ["none", "process", "driver"])
def test_a_checkpoint_while_the_sink_is_not_ready_holds_the_batch_that_was_mapped(
    sink: GatedSink, map: type[Numbering], failure: str
) -> None:
    job = simulated(sink, map)
    job.settle()
    checkpointed(job)
    checkpointed(job)
    if failure == "process":
        job.transport.kill(max(job.transport.processes))
    elif failure == "driver":
        job.crash_driver()
    job.settle()
    finished(job)
    assert sink.written == [[n, n] for n in range(ROWS)]


def test_a_start_with_another_parallelism_writes_the_batches_that_wait(sink: GatedSink) -> None:
    pipeline = Pipeline(source=numbers(), map=Numbering, sink=sink)
    job = SimulatedJob.of(
        pipeline,
        parallelism=lambda start: 1 if start else 3,
        checkpoint_interval_s=None,
        redistribute={"map": lambda states, parallelism: {0: b"1000"}},
    )
    job.settle()
    checkpointed(job)
    job.crash_driver()
    job.settle()
    finished(job)
    assert sorted(n for _, n in sink.written) == list(range(ROWS))


def test_a_mapped_batch_that_no_checkpoint_can_hold_fails_the_job_by_name(
    sink: GatedSink,
) -> None:
    job = simulated(sink, Unstorable)
    job.settle()
    job.master.request_checkpoint()
    job.settle(until=lambda: job.is_over)
    assert job.result.state == "failed"
    assert "Unstorable" in str(job.result.reason)
    assert "pyarrow.RecordBatch" in str(job.result.reason)


def test_a_function_is_called_once_for_a_batch_that_waits_and_again_for_another_setting(
    sink: GatedSink,
) -> None:
    calls: list[Any] = []

    def with_limit(batch: Any, limit: int) -> list[Any]:
        calls.append((batch[0], limit))
        return [[n, limit] for n in batch]

    limit = Setting("limit", 1)
    job = simulated(sink, with_limit, coordinators=[limit])
    job.settle()
    checkpointed(job)
    assert calls == [(0, 1)]
    limit.set(job.master, 2)
    job.settle()
    assert calls == [(0, 1), (0, 2)]
    finished(job)
    assert sink.written == [[n, 2] for n in range(ROWS)]
