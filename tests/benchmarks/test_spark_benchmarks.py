"""That the measurements on Spark work, not what they find."""

from __future__ import annotations

import pytest

from epochgate.benchmarks import checker, checker_spark, crash, ingest, recovery, streaming

pytestmark = [pytest.mark.spark, pytest.mark.deep, pytest.mark.timeout(300)]


def test_both_jobs_process_the_same_source() -> None:
    table = ingest.measure(runs=1, rows=50_000, files=4)
    assert len(table.rows) == 6


@pytest.mark.timeout(600)
def test_what_is_killed_halfway_goes_on_and_has_every_row_once() -> None:
    table = crash.measure(rows=200_000, files=8)
    assert len(table.rows) == len(crash.CRASHED)


@pytest.mark.timeout(600)
def test_every_contender_of_a_streaming_query_writes_each_row_once() -> None:
    table = streaming.measure(rounds=1, batches=3, rows=100)
    assert len(table.rows) == len(streaming.CONTENDERS)


def test_what_is_killed_and_what_fails_is_seen_to_come_back() -> None:
    table = recovery.measure(worker_kills=1, executor_kills=1, failures=1)
    assert table.rows[0][0].startswith("from killing a worker")
    assert table.rows[2][0].endswith("with a class archive, s")
    assert table.rows[3][0].startswith("from an operator's raising")


def test_a_search_on_spark_counts_as_one_machine_does() -> None:
    table = checker_spark.measure(runs=1, models=checker.MODELS[:1])
    assert [row[0] for row in table.rows] == ["S1 (2, 2, 2, 1, 1), 120,524 states"] * 5
    assert all(float(row[6]) > 0 for row in table.rows)
