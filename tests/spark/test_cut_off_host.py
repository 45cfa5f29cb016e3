"""A host whose tasks cannot reach the driver is avoided, on a standalone cluster of two workers.

The workers' hosts are addresses of the loopback interface. A host is cut off from the driver's port
by a file: while it is there, tasks on that host are given another port, where no program listens.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from epochgate.spark import transport
from epochgate.spark.bootstrap import Work, task_function
from epochgate.spark.task_settings import ShippedSettings
from tests.spark.running import NumberJob, number_job, send_signal, wait_for
from tests.spark.standalone import Cluster, session_on, standalone_cluster

pytestmark = [pytest.mark.spark, pytest.mark.kills, pytest.mark.slow, pytest.mark.timeout(300)]
DISCARD_PORT = 9
HOSTS = ("127.0.0.2", "127.0.0.3")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster"), HOSTS) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def spark(cluster: Cluster) -> Iterator[Any]:
    with session_on(cluster) as session:
        yield session


@pytest.fixture
def switch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that cuts off the host whose worker's folder it names."""
    path = tmp_path / "cut-off"
    monkeypatch.setattr(transport, "task_function", lambda settings: behind(settings, str(path)))
    return path


def behind(settings: ShippedSettings, switch: str) -> Work:
    """The resident task on a host that may be cut off; a nested function, which goes by value."""
    astray = settings.copy()
    astray["port"] = DISCARD_PORT
    reaching, cut = task_function(settings), task_function(astray)

    def run(partition: int, rows: Iterator[Any]) -> Iterator[Any]:
        import os
        from pathlib import Path

        is_cut = os.path.exists(switch) and Path(switch).read_text() in os.getcwd()
        return (cut if is_cut else reaching)(partition, rows)

    return run


def worker_of(pid: int) -> str:
    """The folder of the worker below which a process runs."""
    path = os.readlink(f"/proc/{pid}/cwd")
    return next(part for part in path.split("/") if part.startswith("work-"))


def workers(job: NumberJob) -> list[str]:
    return [worker_of(job.pid(subtask)) for subtask in range(job.parallelism)]


@pytest.mark.deep
def test_a_job_begins_on_the_hosts_that_reach_the_driver(spark: Any, switch: Path) -> None:
    switch.write_text("work-0")
    with number_job(spark, 100, parallelism=2) as job:
        job.wait_until_running()
        assert workers(job) == ["work-1", "work-1"]
        result = job.finish()
    assert result.report.failures == []


def test_a_host_that_loses_the_driver_while_the_job_runs_is_avoided(
    spark: Any, switch: Path
) -> None:
    with number_job(spark, 200, parallelism=2) as job:
        job.wait_until_running()
        job.wait_for_progress()
        pid = job.pid(0)
        lost = worker_of(pid)
        switch.write_text(lost)
        for subtask, worker in enumerate(workers(job)):
            if worker == lost:
                send_signal(job.pid(subtask), signal.SIGKILL)
        job.wait_for_replacement(0, pid)
        job.wait_until_running()
        assert lost not in workers(job)
        result = job.finish()
    assert result.report.global_restarts == 0


@pytest.mark.deep
def test_a_job_without_other_slots_waits_with_a_warning_until_the_host_is_back(
    spark: Any, switch: Path
) -> None:
    with number_job(spark, 200, parallelism=4) as job:
        job.wait_until_running()
        job.wait_for_progress()
        pid = job.pid(0)
        switch.write_text(worker_of(pid))
        send_signal(pid, signal.SIGKILL)
        wait_for(lambda: "the only free slots are on hosts" in told(job), "the warning")
        assert not job.handle.is_over
        switch.unlink()
        job.wait_for_replacement(0, pid)
        job.finish()


def told(job: NumberJob) -> str:
    return "\n".join(job.handle.report.warnings)
