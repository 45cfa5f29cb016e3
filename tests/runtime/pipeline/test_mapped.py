"""The return value of a map has one meaning, and the rest is refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from epochgate.pipeline import FunctionSource, MapOperator, Pipeline
from epochgate.runtime.pipeline.mapped import batches_of
from epochgate.runtime.testing.simulation import SimulatedJob

TABLE = pa.record_batch({"n": [1, 2]})


def run(map: Any, read: Any = lambda first: [[first, 1]]) -> tuple[SimulatedJob, list[Any]]:
    rows: list[Any] = []
    pipeline = Pipeline(
        source=FunctionSource([0], read), map=map, sink=lambda _, records: rows.extend(records)
    )
    job = SimulatedJob.of(pipeline, checkpoint_interval_s=None)
    job.settle(until=lambda: job.is_over)
    return job, rows


def yields_rows(batch: list[Any]) -> Iterator[Any]:
    yield from batch


def yields_dicts(batch: list[Any]) -> Iterator[Any]:
    for row in batch:
        yield {"n": row[0]}


class Naming(MapOperator):
    def map(self, batch: Any) -> Any:
        return "abc"


@pytest.mark.parametrize(
    ("map", "told"),
    [
        (lambda batch: "abc", "returned 'abc', a str"),
        (lambda batch: b"abc", "returned b'abc', a bytes"),
        (lambda batch: {"n": 1}, "returned {'n': 1}, a dict"),
        (lambda batch: {1}, "returned {1}, a set"),
        (lambda batch: 7, "returned 7, an int"),
        (lambda batch: 0.5, "returned 0.5, a float"),
        (yields_rows, "yielded [0, 1], a list"),
        (yields_dicts, "yielded {'n': 0}, a dict"),
        (lambda batch: iter(["ab"]), "yielded 'ab', a str"),
        (Naming, "the map Naming.map"),
    ],
)
def test_what_is_no_batch_is_refused_with_the_map_its_line_and_the_value(
    map: Any, told: str
) -> None:
    job, rows = run(map)
    assert job.result.state == "failed"
    assert told in str(job.result.reason)
    assert f"{Path(__file__).name}, line " in str(job.result.reason)
    assert "list of" in str(job.result.reason), "what to write instead"
    assert rows == []


def test_records_of_a_source_that_are_no_batch_are_refused_without_a_map_too() -> None:
    def read(split: int, position: Any) -> Iterator[Any]:
        yield "abc", 1

    job, rows = run(None, read)
    assert job.result.state == "failed"
    assert "the source, in a pipeline without a map, returned 'abc'" in str(job.result.reason)
    assert rows == []


@pytest.mark.parametrize(
    ("map", "expected"),
    [
        (lambda batch: None, []),
        (lambda batch: [], []),
        (lambda batch: [{"n": 1}], [{"n": 1}]),
        (lambda batch: (7, 8), [7, 8]),
    ],
)
def test_a_batch_is_its_rows(map: Any, expected: list[Any]) -> None:
    job, rows = run(map)
    assert job.result.state == "finished"
    assert rows == expected


def test_an_iterator_yields_tables() -> None:
    def tables(batch: list[Any]) -> Iterator[Any]:
        yield TABLE
        yield None
        yield TABLE

    assert batches_of(tables([]), "the map") == [TABLE, TABLE]
