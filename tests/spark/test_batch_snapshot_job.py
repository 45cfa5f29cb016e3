"""A coordinator's snapshot in a real Spark job that takes no checkpoints, and a job from it."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import msgpack
import pytest

from epochgate.runtime import (
    BATCH_CHECKPOINT,
    BatchSnapshotRefused,
    JobOver,
    UnknownOperator,
)
from epochgate.runtime.store import InMemoryCheckpointStore
from epochgate.spark.handle import JobHandle
from epochgate.spark.job import run_job
from epochgate.testing import Script
from tests.spark import contract_programs, numbers_program
from tests.spark.contract_programs import LateProgram
from tests.spark.numbers_program import (
    NumberCoordinator,
    NumberProvider,
    RangeCommitter,
    number_configuration,
)
from tests.spark.running import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.extended, pytest.mark.timeout(300)]

ANSWER_S = 30.0
END_S = 60.0
ENDLESS = 1_000_000
AT_ONCE = 200
MORE = 50


class BatchCoordinator(NumberCoordinator):
    """Takes a snapshot without a checkpoint right after it has sent many numbers."""

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        if checkpoint_id == BATCH_CHECKPOINT:
            for subtask in self.gateways:
                first = len(self.sent[subtask]) + 1
                for number in range(first, first + AT_ONCE):
                    self.send(subtask, number)
        super().checkpoint(checkpoint_id, result)


def batch_provider(last: int) -> NumberProvider:
    return NumberProvider(last, Script(has_batch_snapshots=True), BatchCoordinator)


def handled(provider: NumberProvider) -> list[int]:
    """The number to which each subtask has come."""
    return [numbers[-1] if numbers else 0 for numbers in provider.script.coordinator.heard]


def wait_until_handled(provider: NumberProvider, least: list[int]) -> None:
    def is_handled() -> bool:
        return all(n >= due for n, due in zip(handled(provider), least, strict=True))

    wait_for(is_handled, f"the numbers {least}")


def batch_job(
    spark: Any, provider: NumberProvider, committer: RangeCommitter, **settings: Any
) -> JobHandle:
    last, interval_s = provider.last, settings.pop("checkpoint_interval_s", None)
    return run_job(
        spark,
        number_configuration(provider, 2, checkpoint_interval_s=interval_s),
        lambda subtask: LateProgram(last),
        store=InMemoryCheckpointStore(job_id="numbers"),
        committer=committer,
        by_value=[numbers_program, contract_programs],
        **settings,
    )


def test_a_job_begins_from_a_snapshot_of_an_earlier_one_and_goes_back_to_it(spark: Any) -> None:
    first = batch_provider(ENDLESS)
    with batch_job(spark, first, RangeCommitter()) as job:
        wait_until_handled(first, [1, 1])
        state = job.request_batch_snapshot("numbers").result(ANSWER_S)
        handled_by_then = handled(first)
        sent = [len(numbers) for numbers in msgpack.unpackb(state)[0]]
        assert all(handled_by_then[subtask] >= sent[subtask] > AT_ONCE for subtask in (0, 1)), sent
        beyond = [number + 1 for number in sent]
        wait_until_handled(first, beyond)
        with pytest.raises(UnknownOperator, match="those that do are: 'numbers'"):
            job.request_batch_snapshot("letters").result(ANSWER_S)
        job.cancel()
        result = job.wait(END_S)
    assert (result.state, result.report.checkpoints) == ("canceled", [])
    with pytest.raises(JobOver):
        job.request_batch_snapshot("numbers").result(ANSWER_S)

    second, committer = batch_provider(max(sent) + MORE), RangeCommitter()
    told = second.script.told
    second.is_held.set()
    with batch_job(spark, second, committer, batch_states={"numbers": state}) as job:
        wait_until_handled(second, beyond)
        assert told("numbers.reset_to_checkpoint") == [(BATCH_CHECKPOINT, state)]
        second.script.coordinator.context.fail_job("the source was rewritten")
        wait_for(lambda: len(told("numbers.reset_to_checkpoint")) == 2, "everything went back")
        second.is_held.clear()
        result = job.wait(END_S)
    assert result.state == "finished", result.reason
    assert result.report.global_restarts == 1
    assert told("numbers.reset_to_checkpoint") == [(BATCH_CHECKPOINT, state)] * 2
    assert list(committer.committed.values()) == [
        {subtask: [[beyond[subtask], second.last]] for subtask in (0, 1)}
    ]


def test_a_job_that_takes_checkpoints_refuses_a_snapshot_without_one(spark: Any) -> None:
    provider = batch_provider(ENDLESS)
    with (
        batch_job(spark, provider, RangeCommitter(), checkpoint_interval_s=0.1) as job,
        pytest.raises(BatchSnapshotRefused, match=r"takes a checkpoint every 0\.1 s"),
    ):
        job.request_batch_snapshot("numbers").result(ANSWER_S)
