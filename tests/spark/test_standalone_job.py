"""A job on a standalone cluster whose executors have neither the package nor its dependencies."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spark.running import Chaos, executor_of, number_job, send_signal
from tests.spark.standalone import Cluster, session_on, standalone_cluster

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def spark(cluster: Cluster) -> Iterator[Any]:
    with session_on(cluster) as session:
        yield session


@pytest.mark.programs
@pytest.mark.parametrize("module", ["epochgate", "transitions", "msgpack"])
def test_the_python_of_the_executors_lacks_it(cluster: Cluster, module: str) -> None:
    environment = {"PATH": os.environ["PATH"]}
    command = [str(cluster.python), "-c", f"import {module}"]
    outcome = subprocess.run(command, capture_output=True, cwd="/", env=environment, check=False)
    assert b"ModuleNotFoundError" in outcome.stderr


@pytest.mark.programs
def test_the_package_ships_itself_and_the_job_runs(spark: Any) -> None:
    with number_job(spark, 50) as job:
        job.finish()


@pytest.mark.deep
def test_workers_and_executors_killed_at_random_moments_lose_and_repeat_nothing(
    spark: Any,
) -> None:
    with number_job(spark, 400) as job:
        job.wait_until_running()
        chaos = Chaos(job, 21, workers=4, executors=1)
        chaos.run()
        job.wait_until_running()
        result = job.finish()
    assert len(chaos.kills) >= 4
    assert result.report.regional_restarts >= 4


@pytest.mark.kills
def test_a_killed_executor_is_replaced(spark: Any) -> None:
    with number_job(spark, 200) as job:
        job.wait_until_running()
        pid = job.pid(0)
        send_signal(executor_of(pid), signal.SIGKILL)
        job.wait_for_replacement(0, pid)
        job.finish()


@pytest.mark.programs
def test_a_python_that_does_not_exist_is_named(spark: Any, tmp_path: Path) -> None:
    missing = tmp_path / "python-that-is-not-there"
    context = spark.sparkContext
    before, context.pythonExec = context.pythonExec, str(missing)
    try:
        with number_job(spark, 20, process_timeout_s=30.0) as job:
            result = job.handle.wait(60)
    finally:
        context.pythonExec = before
    assert result.state == "failed"
    assert missing.name in str(result.reason)
