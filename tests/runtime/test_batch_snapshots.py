"""A coordinator's snapshot in a job that takes no checkpoints, and a job that begins from one."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from epochgate.fsm import VirtualClock
from epochgate.fsm.inside import machines_behind
from epochgate.runtime import (
    BATCH_CHECKPOINT,
    NO_CHECKPOINT,
    BatchSnapshotFailed,
    BatchSnapshotRefused,
    CoordinatorUnavailable,
    JobConfiguration,
    JobMaster,
    JobMisconfigured,
    JobOver,
    UnknownOperator,
)
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.store import InMemoryCheckpointStore
from epochgate.runtime.testing.scripted import ScriptedProvider
from epochgate.runtime.testing.simulated_work import SimulatedWork
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime.scripted import Script, simulated
from tests.runtime.test_loop import OneTask


def batch(script: Script, *, is_up: bool = True, **settings: Any) -> SimulatedJob:
    """A job whose coordinator gives snapshots without checkpoints, always the same."""
    script.has_batch_snapshots, script.state = True, b"state"
    job = simulated(script, **settings)
    if is_up:
        job.settle()
    return job


def asked(job: SimulatedJob) -> Future[bytes]:
    wanted = job.master.request_batch_snapshot("op")
    job.drain()
    return wanted


def test_the_ids_of_no_checkpoint_and_of_a_batch_snapshot_differ_and_are_no_checkpoints() -> None:
    ids = [NO_CHECKPOINT, BATCH_CHECKPOINT]
    assert len({*ids}) == 2
    assert max(ids) < 1


def test_a_snapshot_without_a_checkpoint_has_its_own_id_and_leaves_the_gateways_open() -> None:
    script = Script(is_completing=False)
    job = batch(script)
    wanted = asked(job)
    assert script.told("op.checkpoint") == [(BATCH_CHECKPOINT,)]
    assert job.machines.gateway[0, 0].state == "open"
    script.coordinator.results[BATCH_CHECKPOINT].set_result(b"state")
    job.drain()
    assert wanted.result(timeout=0) == b"state"
    sent = script.coordinator.send(0, "later")
    job.settle()
    sent.result(timeout_s=0)
    assert job.master.report.checkpoints == []


def test_it_waits_for_what_was_sent_before_and_not_for_what_is_sent_after() -> None:
    script = Script()
    job = batch(script)
    gateway = script.coordinator.gateways[0]
    for event in ("one", "two"):
        gateway.send_event(event)
    wanted = asked(job)
    gateway.send_event("three")
    job.drain()
    number = next(step for step in job.steps() if step[0] == "tell")[1]
    job.step(("tell", number))
    job.flow(("tell",))
    assert not wanted.done()
    job.step(("tell", number))
    job.flow(("tell",))
    assert wanted.result(timeout=0) == b"state"


def test_an_event_lost_on_its_way_fails_it() -> None:
    script = Script()
    job = batch(script)
    script.coordinator.send(0, "one")
    wanted = asked(job)
    job.transport.kill(1)
    job.settle()
    with pytest.raises(BatchSnapshotFailed, match=r"'op' has no snapshot: an event .* was lost"):
        wanted.result(timeout=0)
    again = asked(job)
    assert again.result(timeout=0) == b"state"


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (lambda result: result.set_exception(OSError("no space")), "no space"),
        (lambda result: result.cancel(), "cancelled"),
    ],
)
def test_a_future_that_fails_or_is_cancelled_fails_it(end: Any, reason: str) -> None:
    script = Script(is_completing=False)
    job = batch(script)
    wanted = asked(job)
    end(script.coordinator.results[BATCH_CHECKPOINT])
    job.drain()
    with pytest.raises(BatchSnapshotFailed, match=reason):
        wanted.result(timeout=0)


def test_a_dropped_future_fails_it() -> None:
    script = Script(is_completing=False)
    job = batch(script)
    wanted = asked(job)
    script.coordinator.results.clear()
    job.drain()
    with pytest.raises(BatchSnapshotFailed, match="dropped uncompleted"):
        wanted.result(timeout=0)


def test_a_future_that_is_kept_and_never_completed_fails_it_after_the_timeout() -> None:
    script = Script(is_completing=False)
    job = batch(script, checkpoint_timeout_s=30.0)
    wanted = asked(job)
    job.wait(29.0)
    assert not wanted.done()
    job.wait(2.0)
    with pytest.raises(BatchSnapshotFailed, match=r"within 30 s \(checkpoint_timeout_s\)"):
        wanted.result(0)
    again = asked(job)
    script.coordinator.results[BATCH_CHECKPOINT].set_result(b"state")
    job.drain()
    assert again.result(0) == b"state"


def test_a_future_of_the_past_completes_no_later_snapshot() -> None:
    script = Script(is_completing=False)
    job = batch(script)
    first = asked(job)
    old = script.coordinator.results[BATCH_CHECKPOINT]
    script.coordinator.context.fail_job("count is off")
    job.settle()
    with pytest.raises(BatchSnapshotFailed, match="it has failed the job"):
        first.result(timeout=0)
    second = asked(job)
    old.set_result(b"of the past")
    job.drain()
    assert not second.done()
    script.coordinator.results[BATCH_CHECKPOINT].set_result(b"of now")
    job.drain()
    assert second.result(timeout=0) == b"of now"


def test_one_is_taken_at_a_time() -> None:
    job = batch(Script(is_completing=False))
    asked(job)
    with pytest.raises(BatchSnapshotRefused, match="is being taken already"):
        asked(job).result(timeout=0)


def test_a_coordinator_that_raises_takes_the_job_back_and_fails_it() -> None:
    script = Script(errors={"op.checkpoint": [KeyError("split 7")]})
    job = batch(script)
    wanted = asked(job)
    job.settle()
    assert wanted.exception(0) is not None
    assert job.master.report.global_restarts == 1


def test_a_coordinator_that_could_not_start_gives_no_snapshot() -> None:
    script = Script(errors={"op.start": [OSError("no such table")]})
    job = batch(script, is_up=False)
    job.drain()
    assert job.machines.holder[0].state == "broken"
    with pytest.raises(CoordinatorUnavailable, match=r"a snapshot .* 'op' could not start"):
        asked(job).result(timeout=0)
    assert not script.told("op.checkpoint")
    job.settle(lambda: job.machines.holder[0].state == "started")
    assert asked(job).result(timeout=0) == b"state"


@pytest.mark.parametrize("can_start", [True, False])
def test_a_snapshot_asked_for_while_a_coordinator_starts_waits_for_how_that_ends(
    can_start: bool,
) -> None:
    script = Script(errors={} if can_start else {"op.start": [OSError("no such table")]})
    job = batch(script, is_up=False)
    wanted = asked(job)
    assert bool(script.told("op.checkpoint")) is can_start
    if can_start:
        assert wanted.result(timeout=0) == b"state"
    else:
        assert isinstance(wanted.exception(0), CoordinatorUnavailable)


def test_a_coordinator_that_has_failed_the_job_gives_no_snapshot_until_it_is_restored() -> None:
    script = Script(is_completing=False)
    job = batch(script)
    under_way = asked(job)
    script.coordinator.context.fail_job("count is off")
    job.drain()
    with pytest.raises(BatchSnapshotFailed, match="it has failed the job"):
        under_way.result(timeout=0)
    with pytest.raises(CoordinatorUnavailable, match="'op' has failed the job and is not restored"):
        asked(job).result(timeout=0)
    assert script.told("op.checkpoint") == [(BATCH_CHECKPOINT,)]


def test_it_is_refused_where_it_makes_no_sense() -> None:
    job = simulated(Script())
    job.settle()
    with pytest.raises(BatchSnapshotRefused, match="override supports_batch_snapshot"):
        asked(job).result(timeout=0)
    unknown = job.master.request_batch_snapshot("counter")
    job.drain()
    with pytest.raises(UnknownOperator, match="those that do are: 'op'"):
        unknown.result(timeout=0)
    with pytest.raises(BatchSnapshotRefused, match="takes a checkpoint every 3 s"):
        asked(batch(Script(), checkpoint_interval_s=3.0)).result(timeout=0)


def test_the_end_of_the_job_fails_it() -> None:
    job = batch(Script(is_completing=False))
    wanted = asked(job)
    job.master.cancel("enough")
    job.settle(lambda: job.is_over)
    with pytest.raises(BatchSnapshotFailed, match="the job is canceled: enough"):
        wanted.result(timeout=0)
    with pytest.raises(JobOver):
        asked(job).result(timeout=0)


def test_a_job_begins_from_one_and_goes_back_to_it() -> None:
    script, clock = Script(state=b"state"), VirtualClock()
    provider = ScriptedProvider("op", script)
    master = JobMaster(
        JobConfiguration("batch", 1, (provider,), checkpoint_interval_s=None),
        transport=OneTask(),
        store=InMemoryCheckpointStore(job_id="batch"),
        clock=clock,
        blocking=SimulatedWork,
        batch_states={"op": b"state"},
    )
    master.start()
    master.queue.drain()
    reset = f"op.reset_to_checkpoint({BATCH_CHECKPOINT}, b'state')"
    assert script.calls[:3] == ["op.create()", reset, "op.start()"]
    script.coordinator.context.fail_job("count is off")
    master.queue.drain()
    clock.advance(1.0)
    master.queue.post_due()
    master.queue.drain()
    assert script.told("op.reset_to_checkpoint") == [(BATCH_CHECKPOINT, b"state")] * 2
    assert len(script.coordinators) == 1
    master.close()


def test_a_job_with_a_completed_checkpoint_begins_from_that_and_not_from_the_snapshot() -> None:
    first = simulated(Script(state=b"of the checkpoint"))
    first.settle()
    wanted = first.master.request_checkpoint()
    first.settle(wanted.done)
    script = Script()
    master = JobMaster(
        JobConfiguration("batch", 1, (ScriptedProvider("op", script),), checkpoint_interval_s=None),
        transport=OneTask(),
        store=first.store,
        clock=VirtualClock(),
        blocking=SimulatedWork,
        batch_states={"op": b"of the snapshot"},
    )
    master.start()
    master.queue.drain()
    assert script.told("op.reset_to_checkpoint") == [(1, b"of the checkpoint")]
    master.close()


def test_a_coordinator_that_cannot_go_back_to_one_is_rebuilt_and_goes_back_to_it() -> None:
    errors: dict[str, list[BaseException]] = {"op.reset_to_checkpoint": [OSError("no such table")]}
    script, clock = Script(errors, state=b"state"), VirtualClock()
    master = JobMaster(
        JobConfiguration(
            "batch",
            1,
            (ScriptedProvider("op", script),),
            checkpoint_interval_s=None,
            restart_strategy=FixedDelay(5, 1.0),
        ),
        transport=OneTask(),
        store=InMemoryCheckpointStore(job_id="batch"),
        clock=clock,
        blocking=SimulatedWork,
        batch_states={"op": b"state"},
    )
    master.start()
    master.queue.drain()
    assert machines_behind(master.job).holder[0].state == "broken"
    clock.advance(1.0)
    master.queue.post_due()
    master.queue.drain()
    assert len(script.coordinators) == 2
    reset = f"op.reset_to_checkpoint({BATCH_CHECKPOINT}, b'state')"
    assert script.calls[-2:] == [reset, "op.start()"]
    master.close()


def test_a_snapshot_of_an_operator_that_the_job_does_not_have_is_refused() -> None:
    with pytest.raises(JobMisconfigured, match="no operator 'counter'; its operators are 'op'"):
        JobMaster(
            JobConfiguration("batch", 1, (ScriptedProvider("op"),), checkpoint_interval_s=None),
            transport=OneTask(),
            store=InMemoryCheckpointStore(job_id="batch"),
            clock=VirtualClock(),
            blocking=SimulatedWork,
            batch_states={"counter": b"state"},
        )
