"""A setting's change that was acknowledged survives every failure after it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import msgpack
import pytest

from epochgate.pipeline import FunctionSource, Pipeline, RateLimit, Setting, SettingNotDurable
from epochgate.runtime.pipeline.setting import SET, SettingCoordinator
from epochgate.runtime.testing.simulation import JobHasFailed, SimulatedJob

LIMIT = Setting("limit", 900)


def one_by_one(split: int, position: int | None) -> Iterator[tuple[list[int], int]]:
    for number in range(position or 0, 100):
        yield [number], number + 1


def with_limit(numbers: list[int], limit: int) -> list[list[int]]:
    return [[number, limit] for number in numbers]


def running(**options: Any) -> SimulatedJob:
    """A job of two subtasks that has taken a checkpoint with the initial value."""
    pipeline = Pipeline(
        source=FunctionSource([0], one_by_one),
        map=with_limit,
        sink=lambda checkpoint, records: None,
        coordinators=[LIMIT, RateLimit(20)],
    )
    job = SimulatedJob.of(pipeline, parallelism=2, **{"checkpoint_interval_s": None, **options})
    job.settle()
    checkpointed(job)
    return job


def checkpointed(job: SimulatedJob) -> list[Any]:
    """The values of the setting in a checkpoint, of the coordinator and of each subtask."""
    wanted = job.master.request_checkpoint()
    job.flow()
    found = job.store.load(wanted.result(timeout=0))
    states = [found.coordinators["limit"], *(s["limit"] for s in found.subtasks.values())]
    return [msgpack.unpackb(state) for state in states]


def change(job: SimulatedJob, value: int) -> Future[Any]:
    changed = LIMIT.set(job.master, value)
    job.flow()
    return changed


def in_force(job: SimulatedJob) -> Any:
    now = LIMIT.get(job.master)
    job.flow()
    return now.result(timeout=0)


def fail_globally(job: SimulatedJob) -> None:
    job.master.queue.post(job.master.job.lifecycle.fail_globally, "a failover of all")
    job.settle()


def test_a_change_is_acknowledged_with_the_checkpoint_that_holds_it_and_the_next_start_has_it() -> (
    None
):
    job = running()
    changed = change(job, 500)
    assert in_force(job) == 500
    assert not changed.done()
    assert checkpointed(job) == [500] * 3
    assert changed.result(timeout=0) == 500
    job.crash_driver()
    job.settle()
    assert in_force(job) == 500


def test_a_change_that_no_checkpoint_holds_is_applied_again_after_a_failover() -> None:
    job = running()
    first, second = change(job, 300), change(job, 200)
    fail_globally(job)
    assert in_force(job) == 200
    assert not first.done()
    assert not second.done()
    assert checkpointed(job) == [200] * 3
    assert (first.result(timeout=0), second.result(timeout=0)) == (300, 200)


def test_a_change_that_was_acknowledged_is_restored_by_a_failover() -> None:
    job = running()
    first = change(job, 300)
    checkpointed(job)
    second = change(job, 200)
    fail_globally(job)
    assert first.result(timeout=0) == 300
    assert in_force(job) == 200
    checkpointed(job)
    assert second.result(timeout=0) == 200
    fail_globally(job)
    assert in_force(job) == 200


def test_a_change_while_the_job_restarts_is_in_force_after_it() -> None:
    job = running()
    job.master.queue.post(job.master.job.lifecycle.fail_globally, "a failover of all")
    changed = change(job, 222)
    assert not changed.done()
    job.settle()
    assert in_force(job) == 222
    assert checkpointed(job) == [222] * 3
    assert changed.result(timeout=0) == 222


def test_a_change_after_the_snapshot_waits_for_the_next_checkpoint() -> None:
    job = running()
    first = change(job, 500)
    job.master.request_checkpoint()
    job.drain()  # the coordinator's snapshot is taken, and no task's
    second = change(job, 400)
    assert first.result(timeout=0) == 500
    assert not second.done()
    fail_globally(job)
    assert in_force(job) == 400
    assert checkpointed(job) == [400] * 3
    assert second.result(timeout=0) == 400


def test_a_checkpoint_that_fails_acknowledges_nothing() -> None:
    job = running()
    changed = change(job, 500)
    wanted = job.master.request_checkpoint()
    job.drain()
    job.transport.kill(max(job.transport.processes))
    job.settle()
    assert wanted.exception(timeout=0) is not None
    assert in_force(job) == 500
    assert not changed.done()
    checkpointed(job)
    assert changed.result(timeout=0) == 500


def test_changes_that_tasks_are_too_slow_for_restart_the_job_and_are_kept() -> None:
    job = running(unconfirmed_bytes_max=1000)
    changes = [LIMIT.set(job.master, value) for value in range(100)]
    job.drain()  # no task confirms what it is sent
    job.settle()
    assert job.master.report.global_restarts == 1
    assert checkpointed(job) == [99] * 3
    assert [changed.result(timeout=0) for changed in changes] == list(range(100))


def test_the_last_checkpoint_of_a_job_acknowledges_a_change() -> None:
    job = running()
    changed = change(job, 500)
    job.finish()
    assert changed.result(timeout=0) == 500


def test_a_change_that_no_checkpoint_holds_when_the_job_ends_is_refused() -> None:
    job = running()
    made = change(job, 600)
    checkpointed(job)
    changed = change(job, 500)
    job.master.cancel()
    with pytest.raises(JobHasFailed):
        job.finish()
    assert made.result(timeout=0) == 600
    with pytest.raises(SettingNotDurable, match=r"limit=500 .* no completed checkpoint.*again"):
        changed.result(timeout=0)


class Coordinator:
    """A coordinator by itself."""

    def __init__(self) -> None:
        self.failures: list[BaseException] = []
        self.under = SettingCoordinator(LIMIT, fail_job=self.failures.append)
        self.under.start()

    def set(self, value: int) -> Future[Any]:
        changed = self.under.handle_client_request([SET, value])
        assert isinstance(changed, Future)
        return changed

    def snapshot(self, checkpoint: int) -> bytes:
        result: Future[bytes] = Future()
        self.under.checkpoint(checkpoint, result)
        return result.result(timeout=0)


def test_a_restore_of_the_checkpoint_that_holds_a_change_takes_the_place_of_the_notice() -> None:
    coordinator = Coordinator()
    first = coordinator.set(500)
    state = coordinator.snapshot(1)
    coordinator.under.reset_to_checkpoint(1, state)
    assert first.result(timeout=0) == 500
    assert coordinator.under.value == 500
    second = coordinator.set(400)
    state = coordinator.snapshot(2)
    third = coordinator.set(300)
    coordinator.under.reset_to_checkpoint(2, state)
    assert second.result(timeout=0) == 400
    assert not third.done()
    assert coordinator.under.value == 300


def test_a_restore_of_an_earlier_checkpoint_acknowledges_nothing() -> None:
    coordinator = Coordinator()
    before = coordinator.snapshot(1)
    first = coordinator.set(500)
    coordinator.snapshot(2)
    coordinator.under.reset_to_checkpoint(1, before)
    assert coordinator.under.value == 500
    assert not first.done()
    coordinator.snapshot(3)
    second = coordinator.set(400)
    coordinator.under.reset_to_checkpoint(1, before)
    assert coordinator.under.value == 400
    assert not first.done()
    coordinator.snapshot(4)
    coordinator.under.notify_checkpoint_complete(4)
    assert (first.result(timeout=0), second.result(timeout=0)) == (500, 400)


def test_a_late_notice_of_an_earlier_checkpoint_acknowledges_nothing() -> None:
    coordinator = Coordinator()
    coordinator.snapshot(1)
    first = coordinator.set(500)
    coordinator.snapshot(2)
    coordinator.under.notify_checkpoint_complete(1)
    assert not first.done()
    second = coordinator.set(400)
    coordinator.under.notify_checkpoint_complete(1)
    assert not first.done()
    coordinator.under.notify_checkpoint_complete(2)
    assert first.result(timeout=0) == 500
    assert not second.done()


def test_a_coordinator_that_is_made_again_refuses_the_changes_that_it_owes() -> None:
    coordinator = Coordinator()
    changed = coordinator.set(500)
    coordinator.under.close()
    with pytest.raises(SettingNotDurable, match="call set again"):
        changed.result(timeout=0)


def test_a_client_that_waits_no_longer_is_no_error() -> None:
    coordinator = Coordinator()
    changed = coordinator.set(500)
    assert changed.cancel()
    coordinator.snapshot(1)
    coordinator.under.notify_checkpoint_complete(1)
    coordinator.under.close()


class Optioned(Setting):
    is_of_options = True


def coordinator_of(value: int) -> SettingCoordinator:
    def fail(error: BaseException) -> None:
        raise error

    return SettingCoordinator(Optioned("limit", value), fail)


def test_a_start_with_other_options_has_their_value_and_one_with_the_same_the_checkpoints() -> None:
    first = coordinator_of(900)
    first.reset_to_checkpoint(-1, None)
    assert first.handle_client_request(["get"]) == 900
    changed = first.handle_client_request([SET, 300])
    stored = Future[bytes]()
    first.checkpoint(1, stored)
    first.notify_checkpoint_complete(1)
    assert changed.result(timeout=0) == 300
    for options, expected in ((900, 300), (700, 700), (300, 300)):
        again = coordinator_of(options)
        again.reset_to_checkpoint(1, stored.result(timeout=0))
        assert again.handle_client_request(["get"]) == expected
    pending = again.handle_client_request([SET, 500])
    again.reset_to_checkpoint(1, stored.result(timeout=0))
    assert again.handle_client_request(["get"]) == 500, "a change of this driver is applied again"
    assert not pending.done()
