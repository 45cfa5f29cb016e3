"""A job whose Spark goes away under it fails, with the reason, and soon."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from epochgate.spark.session import local_session
from tests.spark.running import is_gone, number_job, send_signal, wait_for

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.spark, pytest.mark.kills, pytest.mark.timeout(300)]


def test_a_killed_driver_jvm_fails_the_job_and_leaves_no_process() -> None:
    before = set(psutil.Process().children(recursive=True))
    with local_session("local[2]") as spark, number_job(spark, 100, parallelism=2) as job:
        job.wait_until_running()
        job.wait_for_progress()
        send_signal(jvm_pid(spark), signal.SIGKILL)
        result = job.handle.wait(60)
        assert result.state == "failed"
        assert "JVM of the Spark driver has ended" in str(result.reason)
        assert result.last_checkpoint_id >= 2
    wait_for(lambda: new_children(before) == [], "every process is gone", 20)


@pytest.mark.deep
def test_a_session_stopped_under_the_job_fails_it() -> None:
    with local_session("local[2]") as spark, number_job(spark, 100, parallelism=2) as job:
        job.wait_until_running()
        spark.stop()
        result = job.handle.wait(60)
        assert result.state == "failed"
        assert "session was stopped" in str(result.reason)


def test_a_killed_driver_leaves_no_process(tmp_path: Path) -> None:
    script = (
        "from epochgate.spark.session import local_session\n"
        "from tests.spark.running import number_job\n"
        "with local_session('local[2]') as spark, number_job(spark, 99, parallelism=2) as job:\n"
        "    job.wait_until_running()\n"
        "    print('running', flush=True)\n"
        "    job.handle.wait()\n"
    )
    environment = dict(os.environ, PYTHONPATH=str(ROOT), TMPDIR=str(tmp_path))
    driver = psutil.Popen(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    )
    with driver.stdout:
        assert driver.stdout.readline() == "running\n"
        family = driver.children(recursive=True)
        assert len(family) >= 4
        driver.kill()
        driver.wait(60)
    wait_for(lambda: all(is_gone(process.pid) for process in family), "every process is gone", 20)


def jvm_pid(spark: Any) -> int:
    return int(spark.sparkContext._gateway.proc.pid)


def new_children(before: set[Any]) -> list[Any]:
    children = psutil.Process().children(recursive=True)
    return [c for c in children if c not in before and c.status() != psutil.STATUS_ZOMBIE]
