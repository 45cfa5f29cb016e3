"""Receipts over the wire of a real Spark job, while a worker is killed."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from epochgate.runtime import JobConfiguration
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.store import CheckpointShelf, InMemoryCheckpointStore
from epochgate.spark.job import run_job
from tests.runtime import letters
from tests.runtime.letters import WritingProgram, archive, letters_filed, letters_with_receipt
from tests.spark.running import send_signal, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.extended, pytest.mark.slow]

LETTERS = 3000


def test_what_has_a_receipt_is_in_the_coordinators_part_of_every_checkpoint(spark: Any) -> None:
    configuration = JobConfiguration(
        "letters",
        2,
        (archive(is_slow=False),),
        checkpoint_interval_s=0.05,
        restart_strategy=FixedDelay(10, 0.1),
    )
    shelf = CheckpointShelf()
    job = run_job(
        spark,
        configuration,
        lambda subtask: WritingProgram(LETTERS, window=1),
        store=InMemoryCheckpointStore(shelf, job_id="letters", retained=1000),
        by_value=[letters],
    )
    with job:
        wait_for(lambda: job.status().last_checkpoint_id >= 2, "two checkpoints")
        pid = job.status().tasks[1].pid
        assert pid is not None
        send_signal(pid, signal.SIGKILL)
        result = job.wait(60)
    assert result.state == "finished", result.reason
    assert result.report.regional_restarts == 1
    store = InMemoryCheckpointStore(shelf, job_id="letters")
    receipted: set[str] = set()
    for checkpoint_id in store.ids():
        found = store.load(checkpoint_id)
        receipted = set().union(*(letters_with_receipt(s) for s in found.subtasks.values()))
        assert receipted <= letters_filed(found)
    assert len(receipted) == 2 * LETTERS
