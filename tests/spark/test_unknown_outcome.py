"""Checkpoints of unknown outcome in real Spark jobs: what was told is held against what the next
start restores (I8).
"""

from __future__ import annotations

from typing import Any

import pytest

from epochgate.runtime import JobResult
from epochgate.runtime.store import (
    CheckpointOutcomeUnknown,
    CheckpointShelf,
    InMemoryCheckpointStore,
)
from epochgate.spark.job import run_job
from epochgate.testing import Script
from tests.spark import numbers_program
from tests.spark.numbers_program import (
    NumberProgram,
    NumberProvider,
    RangeCommitter,
    number_configuration,
)

pytestmark = [pytest.mark.spark, pytest.mark.extended, pytest.mark.timeout(300)]

ANSWER_S = 30.0
END_S = 60.0
LAST = 30


class Driver:
    """One start after the other on the same shelf; the script is told of checkpoints in all."""

    def __init__(self, spark: Any) -> None:
        self.spark, self.shelf, self.script = spark, CheckpointShelf(), Script()
        self.committer = RangeCommitter()

    def start(self, is_stored: bool | None = None) -> JobResult:
        """Run the job to its end; unless `is_stored` is None its second save is of unknown outcome,
        with the checkpoint in the store or not.
        """
        provider = NumberProvider(LAST, self.script)
        store = InMemoryCheckpointStore(self.shelf, job_id="numbers")
        if is_stored is not None:
            provider.is_held.set()
        with run_job(
            self.spark,
            number_configuration(provider, 2, checkpoint_interval_s=None),
            lambda subtask: NumberProgram(LAST),
            store=store,
            committer=self.committer,
            by_value=[numbers_program],
        ) as job:
            if is_stored is not None:
                assert job.request_checkpoint().result(ANSWER_S) == 1
                store.fail_next_save(CheckpointOutcomeUnknown("no word"), is_stored=is_stored)
                with pytest.raises(CheckpointOutcomeUnknown, match="whether checkpoint 2 is"):
                    job.request_checkpoint().result(ANSWER_S)
            return job.wait(END_S)

    def completed(self) -> list[int]:
        """The checkpoints that coordinators were told are completed."""
        return [number for (number,) in self.script.told("numbers.notify_checkpoint_complete")]


@pytest.mark.parametrize("is_stored", [True, False], ids=["stored", "not_stored"])
def test_a_checkpoint_in_doubt_is_announced_by_the_next_start_alone(
    spark: Any, is_stored: bool
) -> None:
    driver = Driver(spark)
    result = driver.start(is_stored)
    assert (result.state, result.last_checkpoint_id) == ("failed", 1)
    assert result.reason == "it is unknown whether checkpoint 2 is stored: no word"
    assert driver.completed() == [1]
    result = driver.start()
    restored = 2 if is_stored else 1
    assert result.state == "finished", result.reason
    assert [number for number, _ in driver.script.told("numbers.reset_to_checkpoint")] == [restored]
    assert restored + 1 in driver.completed()[1:]
    assert driver.script.told("numbers.notify_checkpoint_aborted") == []
    assert driver.committer.problems(2, LAST) == []
