"""Rows of a running job reach the client exactly once, in order, as fast as it takes them."""

from __future__ import annotations

import threading
from typing import Any

import msgpack
import pytest

from epochgate.runtime import OperatorContext
from epochgate.runtime.api.plain_values import ValueNotPlain
from epochgate.runtime.collect import (
    AlreadyCollected,
    BufferFull,
    CollectedRows,
    CollectMisconfigured,
    CollectSinkOperator,
    CollectSinkProvider,
    NothingToCollect,
    RowsIncomplete,
    RowTooLarge,
    StateUnreadable,
    collect,
)
from tests.runtime.collect.counting import CountingJob, follows
from tests.runtime.happenings import let_anything_happen

SMALL: dict[str, Any] = {"sink": {"window_rows": 3}, "program": {"buffer_rows_max": 8}}


@pytest.mark.parametrize("seed", range(90))
def test_no_row_is_lost_or_shown_twice_whatever_fails(seed: int) -> None:
    job = CountingJob(40, checkpoint_interval_s=0.5 if seed % 3 else None, **SMALL)
    let_anything_happen(job, seed, 3000, job.take, job.take_one)
    assert job.problems() == []
    job.finish()
    assert job.complete_problems() == []


@pytest.mark.parametrize("seed", range(10))
def test_a_wide_window_and_pieces_of_several_rows_make_no_difference(seed: int) -> None:
    program = {"rows_at_once": 7, "buffer_rows_max": 50, "buffer_bytes_max": 400}
    sink = {"window_rows": 20, "window_bytes": 100}
    job = CountingJob(300, checkpoint_interval_s=0.5, sink=sink, program=program)
    let_anything_happen(job, seed, 2500, job.take, job.take_one)
    assert job.problems() == []
    job.finish()
    assert job.complete_problems() == []


@pytest.mark.parametrize("seed", range(15))
def test_uncheckpointed_rows_come_at_least_once(seed: int) -> None:
    sink = {"window_rows": 3, "uncheckpointed": True}
    job = CountingJob(40, checkpoint_interval_s=0.5, sink=sink, program={"buffer_rows_max": 8})
    let_anything_happen(job, seed, 2500, job.take, job.take_one)
    job.finish()
    last = job.store.load(job.result.last_checkpoint_id)
    for subtask in range(2):
        chains = {0}
        for number in range(1, 41):
            rows = [row for row in job.seen if row[:2] == [subtask, number]]
            chains = {row[3] for row in rows for chain in chains if follows(row, chain)}
        assert msgpack.unpackb(last.subtasks[subtask]["counter"])[1] in chains


def test_a_row_is_handed_over_once_its_checkpoint_is_complete() -> None:
    job = CountingJob(5, checkpoint_interval_s=None)
    while not job.is_over:
        job.flow(held=("blocking",))
        job.take()
        assert len(job.seen) == (10 if job.master.report.completed() else 0)
        job.run_blocking()
        job.drain()
    assert job.complete_problems() == []


def test_an_uncheckpointed_row_is_handed_over_at_once() -> None:
    sink = {"uncheckpointed": True}
    job = CountingJob(5, checkpoint_interval_s=None, subtasks=1, sink=sink)
    while len(job.seen) < 5:
        job.drain()
        job.step(job.steps()[0])
        job.take()
    assert job.master.report.completed() == []
    assert [row[1] for row in job.seen] == [1, 2, 3, 4, 5]


def test_no_subtask_makes_more_rows_than_the_client_takes() -> None:
    job = CountingJob(1000, checkpoint_interval_s=0.5, **SMALL)
    for _ in range(20):
        job.flow()
        job.advance()
    assert len(job.master.report.completed()) > 5
    assert [program.counter.number for program in job.programs] == [8, 8]
    assert [len(part.rows) for part in job.rows._subtasks.values()] == [3, 3]
    job.seen.append(next(job.rows))
    assert job.seen[0][1] == 1
    job.settle()
    assert sorted(program.counter.number for program in job.programs) == [8, 11]


def test_the_bytes_on_their_way_are_bounded_too() -> None:
    sink = {"window_rows": 100, "window_bytes": 60}
    job = CountingJob(1000, checkpoint_interval_s=0.5, sink=sink)
    job.settle()
    held = [sum(map(len, part.rows)) for part in job.rows._subtasks.values()]
    assert all(40 < size_bytes <= 60 for size_bytes in held)
    big = CountingJob(3, checkpoint_interval_s=0.5, sink={"window_bytes": 1})
    big.finish()
    assert big.complete_problems() == []


def test_a_full_buffer_asks_for_a_checkpoint_where_none_are_taken() -> None:
    job = CountingJob(100, checkpoint_interval_s=None, **SMALL)
    job.finish()
    assert job.complete_problems() == []
    assert 100 / 8 <= len(job.master.report.completed()) <= 110


def test_a_full_buffer_asks_again_when_its_checkpoint_was_aborted() -> None:
    job = CountingJob(100, checkpoint_interval_s=None, **SMALL)
    job.faults.doom("acknowledge", "declined")
    job.flow()
    job.finish()
    assert not job.master.report.checkpoints[0].is_completed
    assert job.complete_problems() == []


def test_a_full_buffer_asks_once_what_others_have_made_is_consumed() -> None:
    job = CountingJob(100, checkpoint_interval_s=None, lasts={1: 8}, **SMALL)
    job.flow()
    while job.rows.has_ready:
        job.seen.append(next(job.rows))
        job.flow()
    job.finish()
    assert job.complete_problems() == []


def test_what_an_attempt_begins_with_is_final_even_without_a_notice() -> None:
    rows = CollectedRows(1, uncheckpointed=False)
    rows.begin(0, 0, 0)
    rows.receive(0, 0, [b"\x07", b"\x08", b"\x09"])
    assert rows.take() == []
    rows.begin(0, 0, 2)
    assert rows.take() == [7, 8]


def test_a_client_that_leaves_does_not_hold_up_the_job() -> None:
    job = CountingJob(100, checkpoint_interval_s=0.5, **SMALL)
    with job.rows as rows:
        job.settle(lambda: len(job.master.report.completed()) == 2)
        job.settle()
        assert next(rows)[1] == 1
    assert list(rows) == []
    job.transport.kill(1)
    job.finish()
    assert job.seen == []


@pytest.mark.parametrize(
    ("ending", "state"), [("fail", "failed"), ("cancel", "been canceled")], ids=["fail", "cancel"]
)
def test_the_iteration_raises_what_ended_the_job_after_the_last_final_row(
    ending: str, state: str
) -> None:
    job = CountingJob(100, checkpoint_interval_s=0.5, **SMALL)
    job.settle(lambda: len(job.master.report.completed()) == 2)
    getattr(job.master, ending)("disk full")
    job.settle(lambda: job.is_over)
    with pytest.raises(RowsIncomplete, match=f"the job has {state} .*: disk full") as caught:
        job.seen.extend(job.rows)
    assert caught.value.result is job.result
    assert len(job.seen) > 2
    assert job.problems() == []
    with pytest.raises(RowsIncomplete):
        job.take()


def test_the_iteration_of_a_stopped_job_ends_and_the_next_start_has_the_rest() -> None:
    job = CountingJob(100, checkpoint_interval_s=0.5, **SMALL)
    job.settle(lambda: len(job.master.report.completed()) == 2)
    job.take()
    job.master.stop()
    job.settle(lambda: job.is_over)
    job.seen.extend(job.rows)
    assert job.problems() == []
    assert len(job.seen) < 200
    job.start_again()
    job.finish()
    assert job.numbers() == [set(range(1, 101))] * 2


def test_a_client_on_a_thread_of_its_own_waits_for_rows() -> None:
    job = CountingJob(200, checkpoint_interval_s=0.5, **SMALL)
    client = threading.Thread(target=lambda: job.seen.extend(job.rows))
    client.start()
    job.settle(lambda: job.is_over, rounds_max=100_000)
    client.join(60)
    assert not client.is_alive()
    assert job.complete_problems() == []


def test_a_killed_driver_loses_no_row_that_the_client_has_not_seen() -> None:
    job = CountingJob(60, checkpoint_interval_s=0.5, **SMALL)
    for _ in range(3):
        job.settle(lambda: len(job.master.report.completed()) == 3)
        job.take()
        job.start_again()
    job.finish()
    assert job.numbers() == [set(range(1, 61))] * 2


def opened(**buffer: int) -> CollectSinkOperator:
    operator = CollectSinkOperator(**buffer)
    operator.open(OperatorContext("results", 0, 0, 1, "run", lambda event: None), None)
    return operator


def test_a_program_that_does_not_ask_for_room_is_stopped() -> None:
    operator = opened(buffer_rows_max=2)
    for row in range(2):
        operator.collect(row)
    assert not operator.has_room()
    with pytest.raises(BufferFull, match="holds 2 rows that are not consumed"):
        operator.collect(2)


def test_room_for_several_rows_or_many_bytes_is_asked_for() -> None:
    operator = opened(buffer_rows_max=5, buffer_bytes_max=100)
    assert operator.has_room(5)
    operator.collect("x" * 99)
    assert (operator.has_room(4), operator.has_room(5)) == (False, False)
    with pytest.raises(CollectMisconfigured, match=r"makes 6 rows, and the buffer .* than 5"):
        operator.has_room(6)


def test_a_row_that_cannot_travel_is_refused() -> None:
    operator = opened()
    with pytest.raises(ValueNotPlain, match=r"a collected row is not plain: .* is a set"):
        operator.collect([{1, 2}])
    with pytest.raises(RowTooLarge, match="has 8388613 bytes, and at most 8388608"):
        operator.collect(b"x" * (8 * 1024 * 1024))


def test_rows_of_another_version_are_refused() -> None:
    with pytest.raises(StateUnreadable, match="have format 99, and this version reads 1"):
        CollectSinkOperator().open(
            OperatorContext("results", 0, 0, 1, "run", lambda event: None),
            msgpack.packb([99, 0, []]),
        )


def test_limits_that_cannot_be_meant_are_refused() -> None:
    for buffer in ({"buffer_rows_max": 0}, {"buffer_bytes_max": 0}, {"buffer_bytes_max": 2**30}):
        with pytest.raises(CollectMisconfigured, match="it holds at least one row"):
            CollectSinkOperator(**buffer)
    with pytest.raises(CollectMisconfigured, match="no row would ever arrive"):
        CollectSinkProvider(window_rows=0)


def test_rows_of_concurrent_attempts_cannot_be_collected() -> None:
    with pytest.raises(CollectMisconfigured, match="concurrent_attempts_max=1"):
        CountingJob(1, checkpoint_interval_s=None, concurrent_attempts_max=2)


def test_rows_are_collected_by_name_and_once() -> None:
    job = CountingJob(1)
    with pytest.raises(NothingToCollect, match=r"no collect sink 'resutls'; it has \['results'\]"):
        collect(job.master, "resutls")
    with pytest.raises(AlreadyCollected, match="share what the first call"):
        collect(job.master)
