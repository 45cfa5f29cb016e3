"""A batch job on a cluster of two hosts whose slow task Spark's own speculation overtakes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from epochgate.runtime import Committables, Committer, JobConfiguration, JobResult
from epochgate.runtime.store import CheckpointShelf, InMemoryCheckpointStore
from epochgate.spark.errors import SettingBreaksGuarantees
from epochgate.spark.job import run_job
from epochgate.spark.session import local_session
from tests.spark import overtaken_program
from tests.spark.overtaken_program import ROWS, Overtaken, Provider
from tests.spark.standalone import standalone_cluster

pytestmark = [pytest.mark.spark, pytest.mark.deep, pytest.mark.timeout(300)]

SUBTASKS = 2


@dataclass
class Results(Committer):
    given: list[tuple[int, list[int]]] = field(default_factory=list)

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        self.given += [(s, rows) for s, parts in committables.items() for _, rows in parts]


def test_sparks_speculation_overtakes_a_stuck_task_and_each_result_is_given_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider, results = Provider(), Results()
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with standalone_cluster(tmp_path, hosts=("127.0.0.1", "127.0.0.2")) as cluster:
        settings = {
            "spark.pyspark.python": str(cluster.python),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.executor.cores": "2",
            "spark.speculation": "true",
            "spark.speculation.interval": "100ms",
            "spark.speculation.task.duration.threshold": "1s",
        }
        with local_session(cluster.master, settings=settings) as spark:
            with pytest.raises(SettingBreaksGuarantees, match="concurrent_attempts_max=2"):
                run(spark, Provider(), Results(), concurrent_attempts_max=1)
            result = run(spark, provider, results, concurrent_attempts_max=2)
    assert result.state == "finished", result.reason
    assert sorted(results.given) == [(subtask, ROWS) for subtask in range(SUBTASKS)]
    told = [call for call in provider.coordinator.calls if call[1] == 0]
    assert told[:3] == [("ready", 0, 0), ("ready", 0, 1), ("failed", 0, 0)]
    assert not any(call[0] == "reset" for call in told)


def run(
    spark: Any, provider: Provider, results: Results, *, concurrent_attempts_max: int
) -> JobResult:
    configuration = JobConfiguration(
        "overtaken",
        SUBTASKS,
        (provider,),
        checkpoint_interval_s=None,
        concurrent_attempts_max=concurrent_attempts_max,
    )
    store = InMemoryCheckpointStore(CheckpointShelf(), job_id="overtaken")
    handle = run_job(
        spark,
        configuration,
        Overtaken,
        store=store,
        committer=results,
        by_value=[overtaken_program],
    )
    try:
        return handle.wait(45.0)
    except TimeoutError as error:
        raise AssertionError(f"{handle.status()}; told: {provider.coordinator.calls}") from error
