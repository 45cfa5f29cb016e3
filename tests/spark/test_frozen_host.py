"""Processes that are stopped are replaced at once, on a standalone cluster of two workers.

Spark notices nothing of Python workers that are stopped beside a living executor, and of a stopped
executor after its own time limit. The workers' hosts are addresses of the loopback interface; each
has two slots, and the job takes two of the four.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from epochgate.spark.slots import executors
from epochgate.spark.wire import Detection
from tests.spark.running import EXECUTOR, NumberJob, command, number_job, send_signal, wait_for
from tests.spark.standalone import Cluster, session_on, standalone_cluster
from tests.spark.test_cut_off_host import told, worker_of, workers

pytestmark = [pytest.mark.spark, pytest.mark.kills, pytest.mark.slow, pytest.mark.timeout(300)]
PYTHON = "pyspark.daemon"
SOON = {"heartbeat_timeout_s": 120.0, "detection": Detection(pause_s=1.5)}
"""The fixed limit is longer than what these tests wait."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    hosts = ("127.0.0.2", "127.0.0.3")
    with standalone_cluster(tmp_path_factory.mktemp("cluster"), hosts) as cluster:
        yield cluster


@pytest.fixture
def spark(cluster: Cluster) -> Iterator[Any]:
    with session_on(cluster, {"spark.network.timeout": "120s"}) as session:
        yield session


@contextlib.contextmanager
def stopped(worker: str, *names: str) -> Iterator[list[int]]:
    """Stop the processes of this worker whose command has one of the names in it; their ids."""
    below = psutil.Process().children(recursive=True)
    found = [one.pid for one in below if any(name in command(one) for name in names)]
    struck = [pid for pid in found if is_below(pid, worker)]
    assert struck
    for pid in struck:
        send_signal(pid, signal.SIGSTOP)
    try:
        yield struck
    finally:
        for pid in struck:
            send_signal(pid, signal.SIGCONT)


def is_below(pid: int, worker: str) -> bool:
    try:
        return worker_of(pid) == worker
    except (OSError, StopIteration):
        return False


@contextlib.contextmanager
def job_with_victim(spark: Any) -> Iterator[tuple[NumberJob, str]]:
    """A job that runs, and the worker of its first subtask."""
    with number_job(spark, 400, parallelism=2, **SOON) as job:
        job.wait_until_running()
        job.wait_for_progress()
        yield job, worker_of(job.pid(0))


def test_stopped_python_workers_are_replaced_while_they_are_stopped(spark: Any) -> None:
    """On the other worker, or by one that the executor, which lives, has started in their place."""
    with job_with_victim(spark) as (job, victim):
        pid = job.pid(0)
        stopped_s = time.monotonic()
        with stopped(victim, PYTHON) as struck:
            job.wait_for_replacement(0, pid)
            assert time.monotonic() - stopped_s < 60.0
            job.wait_until_running()
            assert not {job.pid(0), job.pid(1)} & set(struck)
            job.wait_for_progress()
            assert "is given up" not in told(job)
        result = job.finish()
    assert result.report.global_restarts == 0


def test_an_executor_that_is_stopped_with_its_workers_is_given_up_before_spark_notices(
    spark: Any,
) -> None:
    with job_with_victim(spark) as (job, victim):
        pid = job.pid(0)
        stopped_s = time.monotonic()
        with stopped(victim, PYTHON, EXECUTOR):
            job.wait_for_replacement(0, pid)
            assert time.monotonic() - stopped_s < 60.0
            job.wait_until_running()
            assert victim not in workers(job)
            job.wait_for_progress()
            assert "is given up" in told(job)
            wait_for(lambda: len(executors_of(spark)) > 2, "another executor in its place", 60.0)
        job.finish()


def executors_of(spark: Any) -> set[str]:
    """The ids of those that have registered with the application, the lost ones included."""
    return (executors(spark.sparkContext) or {}).keys() - {"driver"}
