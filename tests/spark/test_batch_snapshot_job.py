"""A coordinator's snapshot in a real Spark job that takes no checkpoints, and a job from it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import msgpack
import pytest

from epochgate.runtime import (
    BATCH_CHECKPOINT,
    BatchSnapshotRefused,
    CoordinatorContext,
    JobOver,
    OperatorCoordinator,
    UnknownOperator,
)
from epochgate.runtime.store import InMemoryCheckpointStore
from epochgate.spark.job import JobHandle, run_job
from tests.spark import contract_programs, numbers_program
from tests.spark.contract_programs import LateProgram
from tests.spark.numbers_program import (
    NumberCoordinator,
    NumberProvider,
    RangeCommitter,
    number_configuration,
)
from tests.spark.running import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]

ANSWER_S = 30.0
END_S = 60.0
ENDLESS = 1_000_000
AT_ONCE = 200
MORE = 50


class BatchCoordinator(NumberCoordinator):
    """Takes a snapshot without a checkpoint right after it has sent many numbers."""

    def __init__(self, context: CoordinatorContext, last: int, is_held: threading.Event) -> None:
        super().__init__(context, last, is_held)
        self.handled: dict[int, int] = {}
        self.resets: list[tuple[int, bytes | None]] = []

    def supports_batch_snapshot(self) -> bool:
        return True

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        if checkpoint_id == BATCH_CHECKPOINT:
            for subtask, gateway in self.gateways.items():
                sent = self.sent.get(subtask, 0)
                self.sent[subtask] = sent + AT_ONCE
                for number in range(sent + 1, sent + AT_ONCE + 1):
                    gateway.send_event(number)
        super().checkpoint(checkpoint_id, result)

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        self.resets.append((checkpoint_id, state))
        super().reset_to_checkpoint(checkpoint_id, state)

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        self.handled[subtask] = event

    def has_handled(self, numbers: Mapping[int, int]) -> bool:
        """Whether each subtask has come to its number."""
        return all(self.handled.get(subtask, 0) >= n for subtask, n in numbers.items())


class BatchProvider(NumberProvider):
    coordinator: BatchCoordinator

    def create(self, context: CoordinatorContext) -> OperatorCoordinator:
        self.coordinator = BatchCoordinator(context, self.last, self.is_held)
        return self.coordinator


def batch_job(
    spark: Any, provider: BatchProvider, committer: RangeCommitter, **settings: Any
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
    first = BatchProvider(ENDLESS)
    with batch_job(spark, first, RangeCommitter()) as job:
        wait_for(lambda: first.coordinator.has_handled({0: 1, 1: 1}), "numbers")
        state = job.request_batch_snapshot("numbers").result(ANSWER_S)
        handled = dict(first.coordinator.handled)
        sent = msgpack.unpackb(state, strict_map_key=False)
        assert all(handled[subtask] >= sent[subtask] > AT_ONCE for subtask in (0, 1)), sent
        beyond = {subtask: number + 1 for subtask, number in sent.items()}
        wait_for(lambda: first.coordinator.has_handled(beyond), "numbers after the snapshot")
        with pytest.raises(UnknownOperator, match="those that do are: 'numbers'"):
            job.request_batch_snapshot("letters").result(ANSWER_S)
        job.cancel()
        result = job.wait(END_S)
    assert (result.state, result.report.checkpoints) == ("canceled", [])
    with pytest.raises(JobOver):
        job.request_batch_snapshot("numbers").result(ANSWER_S)

    second, committer = BatchProvider(max(sent.values()) + MORE), RangeCommitter()
    second.is_held.set()
    with batch_job(spark, second, committer, batch_states={"numbers": state}) as job:
        wait_for(lambda: second.coordinator.has_handled(beyond), "numbers")
        assert second.coordinator.resets == [(BATCH_CHECKPOINT, state)]
        second.coordinator.context.fail_job("the source was rewritten")
        wait_for(lambda: len(second.coordinator.resets) == 2, "everything went back")
        second.is_held.clear()
        result = job.wait(END_S)
    assert result.state == "finished", result.reason
    assert result.report.global_restarts == 1
    assert second.coordinator.resets == [(BATCH_CHECKPOINT, state)] * 2
    assert list(committer.committed.values()) == [
        {subtask: [[beyond[subtask], second.last]] for subtask in (0, 1)}
    ]


def test_a_job_that_takes_checkpoints_refuses_a_snapshot_without_one(spark: Any) -> None:
    provider = BatchProvider(ENDLESS)
    with (
        batch_job(spark, provider, RangeCommitter(), checkpoint_interval_s=0.1) as job,
        pytest.raises(BatchSnapshotRefused, match=r"takes a checkpoint every 0\.1 s"),
    ):
        job.request_batch_snapshot("numbers").result(ANSWER_S)
