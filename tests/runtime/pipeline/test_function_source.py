"""The state that a source of functions keeps, and which functions it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from epochgate.pipeline import FunctionSource, Pipeline, RateLimit
from epochgate.runtime.pipeline.function_source import FunctionSourceUnusable
from epochgate.runtime.testing.simulation import SimulatedJob

Committed = dict[int, list[Any]]


def ten(first: int) -> Iterator[int]:
    yield from range(first, first + 10)


def job_over(source: FunctionSource, committed: Committed) -> SimulatedJob:
    pipeline = Pipeline(source=source, sink=committed.__setitem__, coordinators=[RateLimit(20)])
    return SimulatedJob.of(pipeline, parallelism=2, checkpoint_interval_s=0.5)


def restart_after_a_checkpoint(job: SimulatedJob) -> None:
    job.settle()
    job.wait(2.2)
    job.master.request_checkpoint()
    job.flow()
    assert job.master.report.completed()
    for process in sorted(job.transport.processes):
        job.transport.kill(process)


def numbers(committed: Committed) -> list[int]:
    return sorted(number for records in committed.values() for number in records)


@given(batch=st.integers(1, 12), waits=st.lists(st.integers(1, 30), max_size=4))
@settings(max_examples=25)
def test_records_without_a_position_are_written_once_whatever_dies(
    batch: int, waits: list[int]
) -> None:
    committed: Committed = {}
    job = job_over(FunctionSource(range(0, 100, 10), ten, batch_records=batch), committed)
    for wait in waits:
        job.settle()
        job.wait(wait / 10)
        if job.is_over:
            break
        if wait % 3:
            job.transport.kill(max(job.transport.processes))
        else:
            job.crash_driver()
    job.settle(until=lambda: job.is_over)
    assert job.result.state == "finished"
    assert numbers(committed) == list(range(100))


def test_a_restored_reader_passes_over_what_was_taken() -> None:
    committed: Committed = {}
    calls: list[int] = []

    def counted(first: int) -> range:
        calls.append(first)
        return range(first, first + 100)

    job = job_over(FunctionSource([0], counted, batch_records=10), committed)
    restart_after_a_checkpoint(job)
    job.settle(until=lambda: job.is_over)
    assert numbers(committed) == list(range(100))
    assert calls == [0, 0]


def test_a_split_that_has_fewer_records_than_were_taken_ends_the_job() -> None:
    lengths = iter([100, *[3] * 100])
    source = FunctionSource([0], lambda first: range(next(lengths)), batch_records=10)
    job = job_over(source, {})
    restart_after_a_checkpoint(job)
    job.settle(until=lambda: job.is_over)
    assert job.result.state == "failed"
    assert "returned 3 records, and" in str(job.result.reason)
    assert "read(split, position)" in str(job.result.reason)


@pytest.mark.parametrize(
    ("read", "told"),
    [
        (lambda split: None, "returned None for the split 0; return the records, [] if"),
        (lambda split, position: 7, "returned 7 for the split 0; yield pairs of records and"),
    ],
)
def test_what_is_not_to_be_iterated_over_ends_the_job_with_the_function_and_the_split(
    read: Callable[..., Any], told: str
) -> None:
    job = job_over(FunctionSource([0], read), {})
    job.settle(until=lambda: job.is_over)
    assert job.result.state == "failed"
    assert told in str(job.result.reason)


def with_position(split: Any, position: Any) -> Any:
    """Not called."""


def with_default(split: Any, position: Any = None) -> Any:
    """Not called."""


def without_split() -> Any:
    """Not called."""


@pytest.mark.parametrize(
    ("read", "has_position"),
    [(ten, False), (range, False), (with_position, True), (with_default, True)],
)
def test_a_function_gets_the_position_if_it_takes_one(
    read: Callable[..., Any], has_position: bool
) -> None:
    reader = FunctionSource([0], read).create_reader(None)  # type: ignore[arg-type]  # not used
    assert ("Counting" not in type(reader).__name__) == has_position


def test_functions_that_cannot_be_called_are_refused_where_they_are_given() -> None:
    with pytest.raises(FunctionSourceUnusable, match=r"without_split\(\) .*must take \(split\)"):
        FunctionSource([0], without_split)  # type: ignore[arg-type]  # that is the point
    with pytest.raises(FunctionSourceUnusable, match="batch_records=0"):
        FunctionSource([0], ten, batch_records=0)
    with pytest.raises(FunctionSourceUnusable, match="needs a function that returns the splits"):
        FunctionSource([0], ten, every_s=1.0)
