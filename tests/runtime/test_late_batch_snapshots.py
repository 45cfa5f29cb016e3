"""The leavings of an earlier snapshot without a checkpoint concern no later one."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from epochgate.runtime import BATCH_CHECKPOINT, BatchSnapshotFailed
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime.scripted import Script
from tests.runtime.test_batch_snapshots import asked, batch


def given_up(script: Script, job: SimulatedJob) -> Future[bytes]:
    """The future of a snapshot that the coordinator holds, and that is over."""
    first = asked(job)
    future: Future[bytes] = script.coordinator.results[BATCH_CHECKPOINT]
    script.coordinator.context.fail_job("count is off")
    job.settle()
    with pytest.raises(BatchSnapshotFailed, match="it has failed the job"):
        first.result(timeout=0)
    return future


LATE = {
    "completes": lambda future: future.set_result(b"of the past"),
    "fails": lambda future: future.set_exception(OSError("no space")),
    "is cancelled": lambda future: future.cancel(),
}


@pytest.mark.parametrize("how", LATE)
def test_a_late_future_makes_no_difference_to_the_next_snapshot(how: str) -> None:
    script = Script(is_completing=False)
    job = batch(script)
    old = given_up(script, job)
    script.coordinator.send(0, "in flight")
    second = asked(job)
    LATE[how](old)
    job.drain()
    assert not second.done()
    script.coordinator.results[BATCH_CHECKPOINT].set_result(b"of now")
    job.settle()
    assert second.result(timeout=0) == b"of now"
    assert job.master.report.global_restarts == 1


@pytest.mark.parametrize("how", LATE)
@pytest.mark.parametrize("has_next", [False, True])
def test_a_late_future_makes_no_difference_when_none_is_asked_for(how: str, has_next: bool) -> None:
    script = Script(is_completing=False)
    job = batch(script)
    old = given_up(script, job)
    if has_next:
        script.coordinator.send(0, "in flight")
        asked(job)
        script.coordinator.results[BATCH_CHECKPOINT].set_result(b"of now")
        job.drain()
    LATE[how](old)
    job.settle()
    assert job.master.report.global_restarts == 1


class TwoTasks:
    """A snapshot that has failed because subtask 1 has lost its event; that of 0 is in flight."""

    def __init__(self) -> None:
        self.script = Script()
        self.job = batch(self.script, subtasks=2)
        self.script.coordinator.send(0, "first")
        self.script.coordinator.send(1, "lost")
        first = asked(self.job)
        self.job.drain()
        assert not first.done()
        self.job.transport.kill(2)
        self.job.flow(("tell",))
        assert first.exception(0) is not None

    def tell_one(self) -> None:
        """Let the oldest event arrive at subtask 0, and its confirmation come back."""
        self.job.step(("tell", 1))
        self.job.flow(("tell",))

    def failures(self) -> list[str]:
        return [failure.reason for failure in self.job.master.report.failures]


def test_a_send_that_an_earlier_snapshot_awaited_counts_once() -> None:
    tasks = TwoTasks()
    tasks.script.coordinator.send(0, "second")
    wanted = asked(tasks.job)
    tasks.job.drain()
    tasks.tell_one()
    assert not wanted.done()
    tasks.tell_one()
    assert wanted.result(timeout=0) == b"state"
    assert len(tasks.failures()) == 1


@pytest.mark.parametrize("end", ["handled", "lost"])
@pytest.mark.parametrize("is_asked", [False, True])
def test_a_send_that_ends_late_fails_nothing_else(end: str, is_asked: bool) -> None:
    tasks = TwoTasks()
    wanted: Any = asked(tasks.job) if is_asked else None
    if end == "handled":
        tasks.tell_one()
    else:
        tasks.job.transport.kill(1)
        tasks.job.flow(("tell",))
    assert not is_asked or (wanted.exception(0) is None) == (end == "handled")
    tasks.job.settle()
    assert len(tasks.failures()) == (1 if end == "handled" else 2)
    assert tasks.job.master.report.global_restarts == 0


def test_a_late_failure_of_an_earlier_one_is_not_why_the_next_one_has_failed() -> None:
    script = Script(is_completing=False)
    job = batch(script)
    old = given_up(script, job)
    script.coordinator.send(0, "in flight")
    second = asked(job)
    script.coordinator.results[BATCH_CHECKPOINT].set_result(b"of now")
    old.set_exception(OSError("no space"))
    job.drain()
    job.transport.kill(max(job.transport.processes))
    job.flow(("tell",))
    with pytest.raises(BatchSnapshotFailed, match="an event sent before it was lost"):
        second.result(timeout=0)
