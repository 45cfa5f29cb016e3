"""On real Spark, while workers are killed: rows reach the driver once, and filtering leaves out."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from epochgate.runtime import JobConfiguration
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.collect import CollectSinkProvider, RowsIncomplete
from epochgate.runtime.store import InMemoryCheckpointStore
from epochgate.spark.handle import JobHandle
from epochgate.spark.job import run_job
from tests.runtime.collect import counting
from tests.runtime.collect.counting import CountingProgram, follows
from tests.runtime.filtering import joining
from tests.runtime.filtering.joining import (
    KEYS,
    SOURCE,
    JoinProgram,
    KeyedSource,
    join_configuration,
    numbers_of,
)
from tests.runtime.source import ranges
from tests.runtime.source.ranges import NumberCommitter
from tests.spark.running import send_signal, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.extended, pytest.mark.slow]


def counting_job(spark: Any, last: int) -> JobHandle:
    configuration = JobConfiguration(
        "counting",
        2,
        (CollectSinkProvider(window_rows=50),),
        checkpoint_interval_s=0.2,
        restart_strategy=FixedDelay(100, 0.0),
    )
    store = InMemoryCheckpointStore(job_id="counting")
    return run_job(
        spark,
        configuration,
        lambda subtask: CountingProgram(last, rows_at_once=7, buffer_rows_max=200),
        store=store,
        by_value=[counting],
    )


def kill_a_worker(job: JobHandle, subtask: int) -> None:
    pid = job.status().tasks[subtask].pid
    if pid is not None:
        send_signal(pid, signal.SIGKILL)


def test_rows_reach_the_driver_once_and_in_order_while_workers_are_killed(spark: Any) -> None:
    seen: dict[int, list[list[int]]] = {0: [], 1: []}
    with counting_job(spark, 1000) as job, job.collect() as rows:
        for count, row in enumerate(rows):
            seen[row[0]].append(row)
            if count in (300, 1100):
                kill_a_worker(job, count % 2)
        result = job.wait(60)
    assert result.state == "finished", result.reason
    assert result.report.regional_restarts >= 2
    for of_subtask in seen.values():
        assert [row[1] for row in of_subtask] == list(range(1, 1001))
        chain = 0
        for row in of_subtask:
            assert follows(row, chain), "made by an attempt that was thrown away"
            chain = row[3]


def test_the_iteration_raises_what_ended_the_job(spark: Any) -> None:
    with counting_job(spark, 10**6) as job:
        rows = job.collect()
        assert next(rows)[1] == 1
        job.cancel("enough")
        with pytest.raises(RowsIncomplete, match=r"has been canceled .* enough"):
            list(rows)


def test_a_source_reads_only_what_the_build_side_has_collected(spark: Any) -> None:
    keys, table = {0: [3, 7, 3], 1: [7, 2]}, NumberCommitter()
    job = run_job(
        spark,
        join_configuration(KeyedSource),
        lambda subtask: JoinProgram(keys[subtask], KeyedSource(), pause_s=0.1),
        store=InMemoryCheckpointStore(job_id="join"),
        committer=table,
        by_value=[joining, ranges],
    )
    with job:
        wait_for(lambda: job.status().last_checkpoint_id > 0, "a checkpoint")
        kill_a_worker(job, 0)
        result = job.wait(60)
    assert result.state == "finished", result.reason
    assert result.report.regional_restarts == 1
    assert sorted(table.numbers()) == numbers_of({2, 3, 7})
    assert result.report.coordinator_metrics[SOURCE]["splits_left_out"] == KEYS - 3
