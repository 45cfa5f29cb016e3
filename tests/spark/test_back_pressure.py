"""A sender that is faster than its receiver, both ways: memory stays within the stated bounds."""

from __future__ import annotations

import logging
import os
import time
from typing import Any

import psutil
import pytest

from epochgate.runtime import JobConfiguration
from epochgate.runtime.store import CheckpointShelf, InMemoryCheckpointStore
from epochgate.spark.job import run_job
from tests.spark import flood_program
from tests.spark.flood_program import FloodProgram, FloodProvider
from tests.spark.running import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.extended, pytest.mark.slow]

SUBTASKS = 2
UNCONFIRMED_BYTES_MAX = 16_000_000
FOR_S = float(os.environ.get("EPOCHGATE_BACK_PRESSURE_S", "10"))
MEGABYTE = 1_000_000
DRIVER_BYTES = SUBTASKS * (3 * UNCONFIRMED_BYTES_MAX + 20 * MEGABYTE) + 100 * MEGABYTE
"""More than at rest: events, as objects and packed, and what has arrived; and what a checkpoint and
the interpreter take by themselves.
"""
READ_BYTES_MAX = 16 * 1024 * 1024
"""Which a task reads between two calls of `work`."""
TASK_BYTES = 3 * READ_BYTES_MAX + 30 * MEGABYTE
"""More than at rest: what was read, as objects and packed, and what the interpreter takes."""

DOWN = (FloodProvider(sends=True, listens_s=0.0), {"sends": False, "work_s": 0.5})
UP = (FloodProvider(sends=False, listens_s=0.05), {"sends": True, "work_s": 0.0})


@pytest.mark.parametrize(("provider", "program"), [DOWN, UP], ids=["down", "up"])
def test_a_flood_is_held_up_while_checkpoints_complete_and_a_cancel_is_quick(
    spark: Any, provider: FloodProvider, program: dict[str, Any]
) -> None:
    me = psutil.Process()
    job = run_job(
        spark,
        JobConfiguration(
            "flood",
            SUBTASKS,
            (provider,),
            checkpoint_interval_s=0.5,
            unconfirmed_bytes_max=UNCONFIRMED_BYTES_MAX,
        ),
        lambda subtask: FloodProgram(**program),
        store=InMemoryCheckpointStore(CheckpointShelf(), job_id="flood"),
        by_value=[flood_program],
    )
    with job:
        wait_for(lambda: all(t.state == "running" for t in job.status().tasks), "running")
        at_rest_bytes = peak_bytes = me.memory_info().rss
        started_s, completed = time.monotonic(), [0]
        while time.monotonic() - started_s < FOR_S:
            peak_bytes = max(peak_bytes, me.memory_info().rss)
            completed.append(job.status().last_checkpoint_id)
            time.sleep(0.05)  # between two looks at the memory
        report = job.report
        canceled_s = time.monotonic()
        job.cancel("the flood is over")
        assert job.wait(30).state == "canceled"
        took_s = time.monotonic() - canceled_s
    figures = dict(report.coordinator_metrics["flood"])
    tasks_mb = [m["grown_kb"] // 1000 for m in report.metrics.values()]
    logging.getLogger(__name__).info(
        "%g s: driver +%d MB, tasks +%s MB, %d checkpoints, %s, canceled in %.1f s",
        FOR_S,
        (peak_bytes - at_rest_bytes) // MEGABYTE,
        tasks_mb,
        completed[-1],
        figures,
        took_s,
    )
    assert peak_bytes - at_rest_bytes < DRIVER_BYTES
    assert max(tasks_mb) * MEGABYTE < TASK_BYTES
    assert completed[-1] >= FOR_S / 5
    assert took_s < 5.0
    assert figures["refused"] + figures["heard"] > 0
    assert (report.regional_restarts, report.global_restarts) == (0, 0)
