"""The job's answer to user code that raises, futures never completed, and stores that fail."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

from epochgate.runtime import CoordinatorContext, EventLost, FatalTaskError, RetryLater, Work
from epochgate.runtime.api.restart_strategies import NoRestart
from epochgate.runtime.shell.checkpoints import CheckpointAborted
from epochgate.runtime.store import CheckpointOutcomeUnknown
from epochgate.runtime.testing.scripted import ScriptedCoordinator
from epochgate.runtime.testing.simulation import SimulatedJob, Stuck
from tests.runtime.scripted import Script, simulated


def up(script: Script, **settings: Any) -> SimulatedJob:
    job = simulated(script, **settings)
    job.settle()
    return job


def ended(job: SimulatedJob) -> None:
    job.settle(lambda: job.is_over)


def checkpointed(job: SimulatedJob) -> int:
    wanted = job.master.request_checkpoint()
    job.settle(wanted.done)
    return wanted.result(timeout=0)


@pytest.mark.parametrize(
    "place", ["op[0].open", "op[0].handle_event", "op[0].prepare_commit", "op[0].snapshot"]
)
def test_an_operator_that_raises_costs_one_attempt(place: str) -> None:
    script = Script()
    script.raise_at(place, ValueError("a row too long"))
    job = up(script)
    script.coordinator.send(0, "hello")
    job.settle()
    if job.master.report.regional_restarts == 0:
        job.master.request_checkpoint()
        job.settle()
    assert checkpointed(job) > 0
    report = job.master.report
    assert (report.regional_restarts, report.global_restarts) == (1, 0)
    assert "a row too long" in report.failures[0].reason


def test_work_that_raises_costs_one_attempt() -> None:
    script = Script(errors={"program.work": [ValueError("a row too long")]})
    job = up(script)
    assert job.master.report.regional_restarts == 1


@pytest.mark.parametrize("notice", ["notify_checkpoint_complete", "notify_checkpoint_aborted"])
def test_an_operator_that_raises_in_a_notice_costs_one_attempt(notice: str) -> None:
    script = Script(errors={f"op[0].{notice}": [ValueError("no")]})
    job = up(script, subtasks=2, tolerable_checkpoint_failures=3)
    job.faults.doom("acknowledge", "declined")
    job.master.request_checkpoint()
    job.flow()
    job.settle()
    assert checkpointed(job) > 0
    job.settle()
    assert job.master.report.regional_restarts == 1


def test_an_error_that_no_attempt_can_mend_fails_the_job() -> None:
    script = Script(errors={"program.work": [FatalTaskError("the input is of another version")]})
    job = simulated(script)
    ended(job)
    assert job.result.state == "failed"
    assert "the input is of another version" in str(job.result.reason)
    assert job.master.report.regional_restarts == 0


@pytest.mark.parametrize(
    "method",
    [
        "checkpoint",
        "execution_attempt_ready",
        "execution_attempt_failed",
        "handle_event_from_operator",
        "notify_checkpoint_complete",
        "notify_checkpoint_aborted",
    ],
)
def test_a_coordinator_that_raises_takes_the_job_back(method: str) -> None:
    script = Script()
    job = up(script, subtasks=2)
    script.raise_at(f"op.{method}", KeyError("split 7"))
    script.coordinator.send(0, "hello")
    job.settle()
    job.faults.doom("acknowledge", "declined")
    job.master.request_checkpoint()
    job.flow()
    job.settle()
    checkpointed(job)
    job.settle()
    job.transport.kill(max(job.transport.processes))
    job.settle()
    assert script.errors == {}
    assert job.master.report.global_restarts == 1
    assert any("split 7" in failure.reason for failure in job.master.report.failures)
    assert checkpointed(job) > 0


@pytest.mark.parametrize("method", ["subtask_reset", "reset_to_checkpoint"])
def test_a_coordinator_that_raises_in_a_reset_is_reset_again(method: str) -> None:
    script = Script()
    job = up(script)
    checkpointed(job)
    job.settle()
    script.raise_at(f"op.{method}", KeyError("split 7"))
    if method == "subtask_reset":
        job.transport.kill(1)
    else:
        script.coordinator.context.fail_job("count is off")
    job.settle()
    assert script.errors == {}
    assert len(script.told("op.reset_to_checkpoint")) == (1 if method == "subtask_reset" else 2)
    assert checkpointed(job) == 2


def test_a_coordinator_that_cannot_start_is_rebuilt() -> None:
    script = Script(errors={"op.start": [OSError("no such table")]})
    job = up(script)
    assert job.machines.holder[0].state == "started"
    assert len(script.told("op.start")) == 2
    assert len(script.told("op.close")) == 1
    assert len(script.told("op.reset_to_checkpoint")) == 0
    assert job.master.report.global_restarts == 1
    assert checkpointed(job) == 1


def test_a_coordinator_that_fails_the_job_while_it_is_made_is_rebuilt() -> None:
    class Hesitant(ScriptedCoordinator):
        def __init__(self, context: CoordinatorContext, script: Script) -> None:
            super().__init__(context, script)
            if len(script.coordinators) == 1:
                context.fail_job("half of it is missing")

    script = Script()
    job = simulated(script, coordinator=Hesitant)
    job.settle()
    assert len(script.coordinators) == 2
    assert job.master.report.global_restarts == 1
    assert checkpointed(job) == 1


def test_a_coordinator_that_never_starts_fails_the_job_with_its_reason() -> None:
    script = Script(errors={"op.start": [OSError("no such table")] * 100})
    job = simulated(script)
    ended(job)
    assert job.result.state == "failed"
    assert "could not start: OSError('no such table')" in str(job.result.reason)
    assert len(script.told("op.close")) == len(script.told("op.start"))


def test_a_coordinator_that_fails_the_job_while_it_starts_is_rebuilt() -> None:
    class Hesitant(ScriptedCoordinator):
        def start(self) -> None:
            super().start()
            if len(self.script.told("op.start")) == 1:
                self.context.fail_job("half of it is missing")

    script = Script()
    job = simulated(script, coordinator=Hesitant)
    job.settle()
    assert len(script.told("op.start")) == 2
    assert len(script.told("op.close")) == 1
    assert checkpointed(job) == 1


def test_nothing_that_a_coordinator_does_after_it_failed_to_start_reaches_the_job() -> None:
    script = Script(errors={"op.start": [OSError("no such table")]})
    job = up(script)
    old = script.coordinators[0].context
    old.fail_job("I am still here")
    posted: list[str] = []
    old.post(posted.append, "posted by the old one")
    job.settle()
    assert posted == []
    assert job.master.report.global_restarts == 1


def test_a_coordinator_that_cannot_close_leaves_a_warning() -> None:
    script = Script(errors={"op.close": [OSError("gone")]})
    job = up(script)
    job.master.cancel()
    ended(job)
    assert job.result.state == "canceled"
    assert any("failed to close" in warning for warning in job.master.report.warnings)


def test_a_coordinator_that_never_answers_is_named_when_the_checkpoint_expires() -> None:
    script = Script(is_completing=False)
    job = up(script, checkpoint_timeout_s=7.0)
    wanted = job.master.request_checkpoint()
    job.flow()
    job.wait(7)
    with pytest.raises(CheckpointAborted, match=r"longer than 7 s.*not completed it: op"):
        wanted.result(timeout=0)


def test_a_future_may_be_completed_by_another_thread() -> None:
    script = Script(is_completing=False)
    job = up(script)
    wanted = job.master.request_checkpoint()
    job.flow()
    thread = threading.Thread(target=script.coordinator.results[1].set_result, args=(b"late",))
    thread.start()
    thread.join(60)
    job.settle(wanted.done)
    assert wanted.result(timeout=0) == 1
    assert job.store.load(1).coordinators == {"op": b"late"}


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_a_future_that_fails_or_is_cancelled_fails_its_checkpoint(is_cancelled: bool) -> None:
    script = Script(is_completing=False)
    job = up(script)
    wanted = job.master.request_checkpoint()
    job.flow()
    if is_cancelled:
        script.coordinator.results[1].cancel()
    else:
        script.coordinator.results[1].set_exception(OSError("no space"))
    job.flow()
    with pytest.raises(CheckpointAborted, match="coordinator 'op' has no snapshot"):
        wanted.result(timeout=0)
    assert script.told("op.notify_checkpoint_aborted") == [(1,)]
    assert script.told("op[0].notify_checkpoint_aborted") == [(1,)]


def test_a_store_that_fails_costs_a_checkpoint_and_leaves_a_warning() -> None:
    job = up(Script())
    job.store.fail_next_save()
    with pytest.raises(CheckpointAborted, match="could not be stored"):
        checkpointed(job)
    assert any("could not be stored" in warning for warning in job.master.report.warnings)
    assert checkpointed(job) == 2


@pytest.mark.parametrize(
    "error", [CheckpointOutcomeUnknown("the disk is gone"), OSError("the disk is gone")], ids=repr
)
def test_a_save_of_unknown_outcome_ends_the_job_and_is_announced_as_neither(
    error: Exception,
) -> None:
    script = Script()
    job = up(script)
    job.store.fail_next_save(error)
    with pytest.raises(CheckpointOutcomeUnknown, match="unknown whether checkpoint 1 is stored"):
        checkpointed(job)
    ended(job)
    assert job.result.state == "failed"
    said = (
        "the disk is gone"
        if isinstance(error, CheckpointOutcomeUnknown)
        else "OSError: the disk is gone"
    )
    assert job.result.reason == f"it is unknown whether checkpoint 1 is stored: {said}"
    assert not [call for call in script.calls if "notify_checkpoint" in call]
    assert [report.is_completed for report in job.master.report.checkpoints] == [False]
    assert job.master.report.global_restarts == 0


def test_too_many_failed_checkpoints_take_the_job_back() -> None:
    job = up(Script(), tolerable_checkpoint_failures=1)
    for _ in range(2):
        job.store.fail_next_save()
        with pytest.raises(CheckpointAborted):
            checkpointed(job)
    job.settle()
    assert job.master.report.global_restarts == 1


def test_a_commit_that_fails_is_tried_again() -> None:
    script = Script(errors={"committer.commit": [RetryLater("busy"), RetryLater("busy")]})
    job = up(script, commit_retries_max=2, commit_retry_delay_s=3.0)
    checkpointed(job)
    job.settle()
    assert len(script.told("committer.commit")) == 3
    assert script.commits == [(1, {0: ["row"]})]
    assert job.clock.now_s() == 9.0, "3 s, and then twice as long"
    assert job.master.report.committed_upto == 1


@pytest.mark.parametrize("error", [RetryLater("busy"), OSError("the table is gone")])
def test_a_commit_that_cannot_be_done_fails_the_job_and_the_next_start_does_it(
    error: Exception,
) -> None:
    script = Script(errors={"committer.commit": [error, error]})
    job = up(script, commit_retries_max=1)
    checkpointed(job)
    ended(job)
    assert job.result.state == "failed"
    assert "commit of checkpoints [1] failed" in str(job.result.reason)
    script.errors.clear()
    job.crash_driver()
    job.settle()
    assert script.commits == [(1, {0: ["row"]})]


def test_a_restart_strategy_that_gives_up_fails_the_job_with_the_cause() -> None:
    script = Script(errors={"op[0].open": [ValueError("a row too long")]})
    job = simulated(script, restarts=NoRestart)
    ended(job)
    assert job.result.state == "failed"
    assert "a row too long" in str(job.result.reason)
    assert "allows no further attempt" in str(job.result.reason)


ENDINGS: list[tuple[Callable[[SimulatedJob], None], str, str | None]] = [
    (lambda job: job.master.stop(), "finished", None),
    (lambda job: job.master.cancel("enough"), "canceled", "enough"),
    (lambda job: job.master.fail("disk full"), "failed", "disk full"),
]


@pytest.mark.parametrize(("ending", "state", "reason"), ENDINGS, ids=[e[1] for e in ENDINGS])
def test_a_job_says_how_it_ended(
    ending: Callable[[SimulatedJob], None], state: str, reason: str | None
) -> None:
    script = Script()
    job = up(script, subtasks=2)
    ending(job)
    ended(job)
    result = job.result
    assert (result.state, result.reason) == (state, reason)
    assert result.is_success() is (state == "finished")
    assert result.last_checkpoint_id == (1 if state == "finished" else 0)
    assert not [process for process in job.transport.processes.values() if process.is_alive]


DOWNFALLS: dict[str, Callable[[SimulatedJob, Script], None]] = {
    "coordinator 'op': 'its index is broken'": lambda job, script: (
        script.coordinator.context.fail_job("its index is broken")
    ),
    "subtask 0: the key is revoked": lambda job, script: job.transport.inbox.received(
        0, 1, [["failed", "the key is revoked", True]]
    ),
    "enough": lambda job, script: job.master.cancel("enough"),
    "disk full": lambda job, script: job.master.fail("disk full"),
}


@pytest.mark.parametrize("cause", DOWNFALLS)
def test_a_job_that_goes_down_tells_its_cause_to_those_who_wait_for_a_checkpoint(
    cause: str,
) -> None:
    script = Script(is_completing=False)
    job = up(script)
    wanted = job.master.request_checkpoint()
    job.flow()
    DOWNFALLS[cause](job, script)
    job.settle(wanted.done)
    with pytest.raises(CheckpointAborted, match=rf"^checkpoint 1: {re.escape(cause)}$"):
        wanted.result(timeout=0)
    assert job.master.report.checkpoints[-1].reason == cause


def test_a_job_ends_when_every_subtask_has_no_more() -> None:
    script = Script(work=Work.ENDED)
    job = simulated(script, subtasks=3)
    ended(job)
    assert job.result.state == "finished"
    assert [c.checkpoint_id for c in job.master.report.completed()] == [1]
    assert script.commits == [(1, {0: ["row"], 1: ["row"], 2: ["row"]})]


def test_a_send_ends_with_its_event_or_says_that_it_is_lost() -> None:
    script = Script()
    job = up(script)
    handled = script.coordinator.send(0, "a")
    seen: list[bool] = []
    handled.add_done_callback(lambda done: seen.append(done.done()))
    assert not handled.done()
    with pytest.raises(TimeoutError, match="was not handled within 0 s"):
        handled.result(timeout_s=0)
    job.settle()
    handled.result(timeout_s=0)
    assert seen == [True]
    gateway = script.coordinator.gateways[0]
    on_wire = gateway.send_event("b")
    job.drain()
    job.transport.kill(1)
    too_late = gateway.send_event("c")
    job.settle()
    assert isinstance(on_wire.exception(), EventLost)
    with pytest.raises(EventLost, match="event 'b' for subtask 0 was lost: killed"):
        on_wire.result()
    assert isinstance(too_late.exception(), EventLost)
    after: list[object] = []
    on_wire.add_done_callback(after.append)
    assert after == [on_wire]


def test_a_thread_may_wait_for_its_send() -> None:
    script = Script()
    job = up(script)
    future = script.coordinator.send(0, "a")
    done: list[bool] = []

    def wait() -> None:
        future.result(60)
        done.append(True)

    thread = threading.Thread(target=wait)
    thread.start()
    job.settle()
    thread.join(60)
    assert done == [True]


def test_a_job_that_cannot_come_to_rest_says_why() -> None:
    script = Script()
    job = up(script)
    script.is_completing = False
    job.master.request_checkpoint()
    with pytest.raises(Stuck, match=r"checkpoint is triggering(.|\n)*process 1 of subtask 0"):
        job.settle(rounds_max=1)


def test_an_attempt_that_does_not_come_to_run_is_replaced() -> None:
    script = Script()
    job = simulated(script, attempt_start_timeout_s=30.0)
    job.flow(held=("tell",))  # its process never restores
    assert job.machines.attempt[0].state == "deploying"
    job.wait(31.0)
    job.settle()
    assert job.machines.attempt[0].is_running()
    assert job.master.report.failures[0].reason == "it did not run within 30 s of its start"
    assert job.master.report.regional_restarts == 1
