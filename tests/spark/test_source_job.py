"""A source of a user's own on real Spark: every record once, though a worker dies in the middle."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest

from epochgate.runtime import JobConfiguration
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.source import SourceProvider, SourceSplit, WatermarkAlignment
from epochgate.runtime.store import CheckpointShelf, InMemoryCheckpointStore
from epochgate.spark.job import run_job
from tests.runtime.source import ranges
from tests.runtime.source.ranges import SOURCE, NumberCommitter, RangeProgram, RangeSource
from tests.spark.running import WAIT_S, send_signal, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.extended, pytest.mark.timeout(300)]

SPLITS, NUMBERS = 6, 2000


class GatedSource(RangeSource):
    """A followed source of which the last third appears when the gate is opened."""

    def __init__(self) -> None:
        super().__init__(SPLITS, NUMBERS, every_s=0.3)
        self.gate = threading.Event()

    def look(self) -> list[SourceSplit]:
        splits = super().look()
        return splits if self.gate.is_set() else splits[: SPLITS * 2 // 3]


def test_a_followed_source_is_read_once_although_a_worker_is_killed(spark: Any) -> None:
    source = GatedSource()
    alignment = WatermarkAlignment("ranges", drift=1000, every_s=0.1)
    committer = NumberCommitter()
    configuration = JobConfiguration(
        "ranges",
        2,
        (SourceProvider(SOURCE, source, alignment=alignment),),
        checkpoint_interval_s=0.1,
        restart_strategy=FixedDelay(100, 0.0),
    )
    with run_job(
        spark,
        configuration,
        lambda subtask: RangeProgram(RangeSource(SPLITS, NUMBERS)),
        store=InMemoryCheckpointStore(CheckpointShelf(), job_id="ranges"),
        committer=committer,
        by_value=[ranges],
    ) as handle:
        wait_for(lambda: committer.numbers() != [], "a commit of some numbers")
        pid = handle.status().tasks[0].pid
        assert pid is not None
        send_signal(pid, signal.SIGKILL)
        source.gate.set()
        wait_for(lambda: len(committer.numbers()) >= SPLITS * NUMBERS, "all numbers")
        handle.stop()
        result = handle.wait(WAIT_S)
    assert result.state == "finished", result.reason
    assert committer.problems(SPLITS * NUMBERS) == []
    assert (result.report.regional_restarts, result.report.global_restarts) == (1, 0)
    figures = result.report.coordinator_metrics[SOURCE]
    assert figures["splits_assigned"] == SPLITS + figures["splits_taken_back"]
