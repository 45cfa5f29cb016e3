"""A job on `local-cluster[2,2,1024]`: executors are processes, and die on their own."""

from __future__ import annotations

import importlib.util
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from epochgate.spark.session import local_session
from tests.spark.running import (
    Chaos,
    executor_of,
    executors,
    is_gone,
    number_job,
    send_signal,
    wait_for,
)
from tests.spark.shared import executor_settings

pytestmark = [pytest.mark.spark, pytest.mark.kills, pytest.mark.slow, pytest.mark.timeout(300)]

# A frozen executor is to be noticed within the time of a test.
QUICK_LOSS = {
    "spark.network.timeout": "8s",
    "spark.network.timeoutInterval": "2s",
    "spark.executor.heartbeatInterval": "1s",
}


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    settings = {**QUICK_LOSS, **executor_settings()}
    with local_session("local-cluster[2,2,1024]", settings=settings) as session:
        yield session
    assert executors() == []


@pytest.mark.deep
@pytest.mark.parametrize("seed", [11, 12])
@pytest.mark.versions
def test_workers_and_executors_killed_at_random_moments_lose_and_repeat_nothing(
    spark: Any, seed: int
) -> None:
    with number_job(spark, 500) as job:
        job.wait_until_running()
        chaos = Chaos(job, seed, workers=5, executors=2)
        chaos.run()
        job.wait_until_running()
        result = job.finish()
    assert len(chaos.kills) >= 5
    assert result.report.regional_restarts >= 5


def test_a_killed_executor_restarts_its_own_subtasks_only(spark: Any) -> None:
    with number_job(spark, 300) as job:
        job.wait_until_running()
        job.wait_for_progress()
        before = [job.pid(subtask) for subtask in range(4)]
        homes = [executor_of(pid) for pid in before]
        send_signal(homes[0], signal.SIGKILL)
        for subtask in range(4):
            if homes[subtask] == homes[0]:
                job.wait_for_replacement(subtask, before[subtask])
            else:
                assert job.pid(subtask) == before[subtask]
        job.finish()


def test_a_frozen_executor_is_replaced_and_its_workers_cannot_come_back(spark: Any) -> None:
    with number_job(spark, 400, heartbeat_interval_s=0.3, heartbeat_timeout_s=1.5) as job:
        job.wait_until_running()
        job.wait_for_progress()
        before = [job.pid(subtask) for subtask in range(4)]
        frozen = executor_of(before[0])
        send_signal(frozen, signal.SIGSTOP)
        send_signal(before[0], signal.SIGSTOP)
        job.wait_for_replacement(0, before[0])
        # Spark holds the replacement for the only one; the old worker wakes up again.
        send_signal(before[0], signal.SIGCONT)
        job.wait_for_progress()
        send_signal(frozen, signal.SIGCONT)
        job.wait_for_progress()
        wait_for(lambda: is_gone(before[0]), "the zombie leaves", 20)
        job.finish()


def test_executors_leave_nothing_in_the_python_environment(spark: Any) -> None:
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    work = Path(spec.origin).parent / "work"
    own = (
        {name for name in work.iterdir() if spark.sparkContext.applicationId in name.name}
        if (work.exists())
        else set()
    )
    assert own == set()
