"""A job whose wire is private, on real Spark."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from tests.spark.running import number_job, send_signal

pytestmark = [pytest.mark.spark, pytest.mark.extended, pytest.mark.timeout(300)]


def test_a_killed_worker_is_replaced_on_a_private_wire(spark: Any) -> None:
    with number_job(spark, 100, parallelism=2, wire="private") as job:
        job.wait_until_running()
        pid = job.pid(0)
        send_signal(pid, signal.SIGKILL)
        job.wait_for_replacement(0, pid)
        result = job.finish()
    assert result.report.warnings == []
