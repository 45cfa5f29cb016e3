"""A task of a real Spark job that waits for time leaves its processor and its thread alone."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

import msgpack
import pytest

from epochgate.runtime import JobConfiguration, Operator, OperatorContext, Program, Work
from epochgate.runtime.store import InMemoryCheckpointStore
from epochgate.spark.job import run_job
from tests.spark.running import is_idle, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.extended]

TICKS, EVERY_S = 20, 0.05
LONG_S = 3600.0


class Ticking(Program, Operator):
    """Ticks twenty times within a second, then waits for an hour."""

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        self.begun_s = self.due_s = context.now_s()
        self.ticks = self.works = 0
        self.took_s = 0.0

    @property
    def operators(self) -> Mapping[str, Operator]:
        return {"ticking": self}

    def work(self) -> Work:
        self.works += 1
        now_s = self.context.now_s()
        if now_s >= self.due_s:
            self.ticks += 1
            self.took_s = now_s - self.begun_s
            self.due_s = now_s + (EVERY_S if self.ticks < TICKS else LONG_S)
        self.context.wake_after(self.due_s - now_s)
        return Work.IDLE

    def snapshot(self, checkpoint_id: int) -> bytes:
        return bytes(msgpack.packb([self.ticks, self.works, self.took_s]))


@pytest.mark.versions
def test_a_task_that_waits_for_time_is_idle_and_answers_barriers(spark: Any) -> None:
    store = InMemoryCheckpointStore(job_id="ticks", retained=1000)
    job = run_job(
        spark,
        JobConfiguration("ticks", 1, checkpoint_interval_s=None),
        lambda subtask: Ticking(),
        store=store,
        by_value=[sys.modules[__name__]],
    )

    def looked_at() -> list[Any]:
        found = store.load(job.request_checkpoint().result(30))
        return list(msgpack.unpackb(found.subtasks[0]["ticking"]))

    with job:
        wait_for(lambda: looked_at()[0] == TICKS, "twenty ticks")
        pid = job.status().tasks[0].pid
        assert pid is not None
        wait_for(lambda: is_idle(pid), "a task that waits")
        ticks, works, took_s = looked_at()
        before_s = time.monotonic()
        wait_for(lambda: time.monotonic() - before_s > 1, "a second to pass")
        again = looked_at()
    # By the second at which a task looks for messages it would have taken 19 s.
    assert took_s < 12
    assert again[0] == ticks == TICKS
    assert again[1] - works <= 8
