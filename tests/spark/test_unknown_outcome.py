"""Checkpoints of unknown outcome in real Spark jobs: what was told is held against what the next
start restores (I8).
"""

from __future__ import annotations

from typing import Any

import pytest

from epochgate.runtime import (
    CoordinatorContext,
    JobResult,
    OperatorCoordinator,
)
from epochgate.runtime.store import (
    CheckpointOutcomeUnknown,
    CheckpointShelf,
    InMemoryCheckpointStore,
)
from epochgate.spark.job import run_job
from tests.spark import numbers_program
from tests.spark.numbers_program import (
    NumberCoordinator,
    NumberProgram,
    NumberProvider,
    RangeCommitter,
    number_configuration,
)

pytestmark = [pytest.mark.spark, pytest.mark.timeout(120)]

ANSWER_S = 30.0
END_S = 60.0
LAST = 30


class TellingProvider(NumberProvider):
    """Its coordinators record what they are told of checkpoints, over all starts of the driver."""

    def __init__(self, told: list[tuple[str, int]]) -> None:
        super().__init__(LAST)
        self.told = told

    def create(self, context: CoordinatorContext) -> OperatorCoordinator:
        told = self.told

        class Told(NumberCoordinator):
            def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
                told.append(("restored", checkpoint_id))
                super().reset_to_checkpoint(checkpoint_id, state)

            def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
                told.append(("completed", checkpoint_id))

            def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
                told.append(("aborted", checkpoint_id))

        self.coordinator = Told(context, self.last, self.is_held)
        return self.coordinator


class Driver:
    """One start after the other on the same shelf."""

    def __init__(self, spark: Any) -> None:
        self.spark, self.shelf = spark, CheckpointShelf()
        self.told: list[tuple[str, int]] = []
        self.committer = RangeCommitter()

    def start(self, is_stored: bool | None = None) -> JobResult:
        """Run the job to its end; unless `is_stored` is None its second save is of unknown outcome,
        with the checkpoint in the store or not.
        """
        provider = TellingProvider(self.told)
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


@pytest.mark.parametrize("is_stored", [True, False], ids=["stored", "not_stored"])
def test_a_checkpoint_in_doubt_is_announced_by_the_next_start_alone(
    spark: Any, is_stored: bool
) -> None:
    driver = Driver(spark)
    result = driver.start(is_stored)
    assert (result.state, result.last_checkpoint_id) == ("failed", 1)
    assert result.reason == "it is unknown whether checkpoint 2 is stored: no word"
    assert driver.told == [("completed", 1)]
    result = driver.start()
    restored = 2 if is_stored else 1
    assert result.state == "finished", result.reason
    assert driver.told[1] == ("restored", restored)
    assert ("completed", restored + 1) in driver.told[2:]
    assert [number for what, number in driver.told if what == "aborted"] == []
    assert driver.committer.problems(2, LAST) == []
