"""Whatever user code raises, or however long it hangs, a job ends or goes on by the rules: each
door of the runtime to user code, with each kind of what can be raised.
"""

from __future__ import annotations

import threading
from asyncio import CancelledError
from collections.abc import Callable
from typing import Any

import pytest

from epochgate.runtime import Committables, Committer
from epochgate.runtime.api.restart_strategies import FixedDelay, RestartStrategy
from epochgate.runtime.store import InMemoryCheckpointStore
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime import doors
from tests.runtime.hung import Hung
from tests.runtime.scripted import Script, ScriptedCommitter, simulated


class Checking(ScriptedCommitter):
    def check(self, committables: Committables) -> None:
        self._script.at("committer.check", committables)


def run(script: Script, **settings: Any) -> SimulatedJob:
    """Bring a job up, let both sides speak, take a checkpoint, lose the process, and go on."""
    job = simulated(
        script,
        restarts=lambda: FixedDelay(20, 1.0),
        committer=lambda: Checking(script),
        commit_retries_max=1,
        **settings,
    )
    job.flow()
    for turn in range(4):
        if turn == 2:
            script.coordinator.context.fail_job("everything goes back")
        if not job.is_over and script.coordinator.gateways:
            script.coordinator.send(0, "hello")
        job.flow()
        if not job.is_over:
            job.master.request_checkpoint()
        job.flow()
        if not job.is_over and job.transport.processes:
            job.transport.kill(max(job.transport.processes))
        job.flow()
        job.wait(2.0)
        job.flow()
    return job


@pytest.mark.parametrize("raised", doors.RAISED, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    "door",
    [*doors.COORDINATOR, *doors.OPERATOR, *doors.COMMITTER],
)
def test_what_user_code_raises_is_told_with_its_type_and_the_job_goes_on_or_ends(
    door: str, raised: type[BaseException]
) -> None:
    script = Script()
    script.raise_at(door.replace("operator.", "op[0]."), raised("by order of the test"))
    job = run(script)
    job.master.cancel()
    job.settle(until=lambda: job.is_over)
    report = job.master.report
    told = [f.reason for f in report.failures] + [c.reason for c in report.checkpoints]
    told += [*report.warnings, report.failure_reason or ""]
    assert any(raised.__name__ in text for text in told), told


class Raising(RestartStrategy):
    def __init__(self, method: str, error: BaseException) -> None:
        self._method, self._error = method, error

    def next_delay_s(self, now_s: float) -> float | None:
        if self._method == "next_delay_s":
            raise self._error
        return 0.0

    def notify_healthy(self, now_s: float) -> None:
        if self._method == "notify_healthy":
            raise self._error


@pytest.mark.parametrize("raised", doors.RAISED, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("door", doors.STRATEGY)
def test_a_restart_strategy_that_raises_ends_the_job_with_its_name(
    door: str, raised: type[BaseException]
) -> None:
    method = door.removeprefix("strategy.")
    job = simulated(Script(), restarts=lambda: Raising(method, raised("no")))
    job.flow()
    job.master.request_checkpoint()
    job.flow()
    if not job.is_over:
        job.transport.kill(max(job.transport.processes))
        job.flow()
    assert job.result.state == "failed"
    assert f"Raising.{method} of the restart strategy" in (job.result.reason or "")
    assert raised.__name__ in (job.result.reason or "")


@pytest.mark.parametrize("delay_s", [-1.0, float("nan"), float("inf"), "1"])
def test_a_delay_that_is_none_ends_the_job(delay_s: Any) -> None:
    class Odd(RestartStrategy):
        def next_delay_s(self, now_s: float) -> float | None:
            return delay_s  # type: ignore[no-any-return]  # that is the fault

    job = simulated(Script(), restarts=Odd)
    job.flow()
    job.transport.kill(max(job.transport.processes))
    job.flow()
    assert job.result.state == "failed"
    assert f"returned {delay_s!r}" in (job.result.reason or "")


def test_a_question_that_raises_refuses_the_client_and_nothing_else() -> None:
    class Refusing(Script):
        @property
        def has_batch_snapshots(self) -> bool:
            raise KeyError("user's fault")

        @has_batch_snapshots.setter
        def has_batch_snapshots(self, value: bool) -> None: ...

    job = simulated(Refusing())
    job.flow()
    wanted = job.master.request_batch_snapshot("op")
    job.flow()
    assert "KeyError" in str(wanted.exception(0))
    assert not job.is_over


@pytest.mark.parametrize(
    ("lane", "option", "says"),
    [("store", "store_timeout_s", "the save of"), ("commit", "commit_timeout_s", "the commit of")],
)
def test_a_store_or_commit_that_hangs_is_warned_of_and_ends_the_job_at_its_limit(
    lane: str, option: str, says: str
) -> None:
    limits: dict[str, Any] = {option: 20.0}
    job = simulated(Script(), work_warn_s=5.0, **limits)
    job.flow()
    job.blocking.hanging.add(lane)
    wanted = job.master.request_checkpoint()
    job.flow()
    job.wait(6.0)
    assert any(says in text and option in text for text in job.master.report.warnings)
    job.wait(20.0)
    job.flow()
    assert job.result.state == "failed"
    assert option in (job.result.reason or "")
    assert wanted.done()


def test_a_warning_comes_at_its_time_where_the_clock_rounds_the_time_that_has_passed() -> None:
    since_s, warn_s = 120.2, 60.0
    assert (since_s + warn_s) - since_s < warn_s
    job = simulated(Script(), work_warn_s=warn_s)
    job.flow()
    job.wait(since_s)
    job.blocking.hanging.add("store")
    job.master.request_checkpoint()
    job.flow()
    job.wait(warn_s)
    assert any("the save of" in text for text in job.master.report.warnings)


def test_a_job_that_is_canceled_does_not_wait_for_a_store_that_hangs() -> None:
    job = simulated(Script(), end_timeout_s=3.0)
    job.flow()
    job.blocking.hanging.add("store")
    wanted = job.master.request_checkpoint()
    job.flow()
    job.master.cancel()
    job.flow()
    assert not job.is_over
    job.wait(3.0)
    job.flow()
    assert job.result.state == "canceled"
    assert "end_timeout_s" in str(wanted.exception(0))


@pytest.mark.parametrize("is_canceled", [True, False])
def test_a_coordinator_that_hangs_ends_the_job_within_its_limit(is_canceled: bool) -> None:
    script, asked = Script(), threading.Event()
    go = script.hang_at("op.handle_client_request")
    limits: dict[str, Any] = {
        "end_timeout_s": 0.3,
        "coordinator_call_timeout_s": 60.0 if is_canceled else 0.3,
    }
    job = Hung(script, **limits)
    job.loop.master.queue.post(asked.set)
    job.loop.master.request("op", "a question")
    assert asked.wait(10)
    if is_canceled:
        job.loop.master.cancel()
    result = job.loop.join(10)
    assert result.state == ("canceled" if is_canceled else "failed")
    assert "coordinator 'op' has been in" in (result.reason or "")
    assert "handle_client_request" in (result.reason or "")
    go.set()


@pytest.mark.parametrize("raised", doors.RAISED, ids=lambda kind: kind.__name__)
def test_on_the_real_queue_thread_no_error_of_a_coordinator_ends_without_a_word(
    raised: type[BaseException],
) -> None:
    script = Script()
    script.raise_at("op.start", raised("by order of the test"))
    job = Hung(script, restart_strategy=FixedDelay(0, 0.1))
    result = job.loop.join(10)
    assert result.state == "failed"
    assert raised.__name__ in (result.reason or "")


Handed = Callable[[SimulatedJob, Script, Callable[..., Any]], Any]


async def _raised(bad: Callable[..., Any]) -> None:
    bad()


HANDED: dict[str, Handed] = {
    "sent": lambda job, script, bad: script.coordinator.send(0, "x").add_done_callback(bad),
    "posted": lambda job, script, bad: script.coordinator.context.post(bad),
    "timer": lambda job, script, bad: script.coordinator.context.post_later(0.5, bad),
    "async": lambda job, script, bad: script.coordinator.context.run_async(lambda: 1, bad),
    "coroutine": lambda job, script, bad: script.coordinator.context.run_coroutine(
        _raised(bad), lambda result, error: script.coordinator.context.fail_job(error or "none")
    ),
    "requested": lambda job, script, bad: job.master.request_checkpoint().add_done_callback(bad),
    "gauge": lambda job, script, bad: script.coordinator.context.metrics.gauge("figure", bad),
}
"""What a coordinator hands over to be called."""


@pytest.mark.parametrize("raised", doors.RAISED, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("door", doors.CALLBACKS)
def test_what_is_called_later_fails_the_job_or_is_logged_and_the_job_goes_on(
    door: str, raised: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    script = Script()
    job = simulated(script)
    job.flow()

    def bad(*_: Any) -> None:
        raise raised("by order of the test")

    HANDED[door](job, script, bad)
    job.flow()
    job.wait(2.0)
    job.flow()
    figure = dict(job.master.report.coordinator_metrics["op"]).get("figure", 0)
    told = [f.reason for f in job.master.report.failures]
    if door == "gauge":
        assert figure != figure
    elif door == "requested":
        assert raised.__name__ in caplog.text
    else:
        # Python makes a RuntimeError of the one in a coroutine, and an error without frames of the
        # other, by which the coroutine counts as canceled.
        is_coroutine = door == "coroutine"
        expected = "RuntimeError" if is_coroutine and raised is StopIteration else raised.__name__
        where = "" if is_coroutine and raised is CancelledError else "test_doors.py"
        assert any(expected in text and where in text for text in told), told
    assert not job.is_over
    job.master.cancel()
    job.settle(until=lambda: job.is_over)


@pytest.mark.parametrize("raised", [SystemExit, KeyboardInterrupt])
def test_a_coroutine_that_leaves_ends_no_loop_of_the_others(raised: type[BaseException]) -> None:
    script, told = Script(), threading.Event()
    job = Hung(script)
    errors: list[BaseException | None] = []

    def hear(result: Any, error: BaseException | None) -> None:
        errors.append(error)
        (told.set if len(errors) == 2 else again)()

    def bad() -> None:
        raise raised("by order of the test")

    def again() -> None:
        script.coordinator.context.run_coroutine(_raised(bad), hear)

    job.loop.master.queue.post(again)
    assert told.wait(10)
    assert [type(error) for error in errors] == [raised, raised]
    job.loop.master.cancel()
    assert job.loop.join(10).state == "canceled"


class Closing(Committer):
    def commit(self, checkpoint_id: int, committables: Committables) -> None: ...

    def close(self) -> None:
        raise doors.Unprintable


def test_a_committer_whose_error_cannot_be_shown_holds_up_no_end() -> None:
    job = Hung(Script(), Closing())
    job.loop.master.cancel()
    result = job.loop.join(10)
    assert any("Unprintable" in text for text in result.report.warnings)


class ClosingStore(InMemoryCheckpointStore):
    def close(self) -> None:
        raise doors.OwnBase("by order of the test")


def test_a_store_that_raises_when_it_is_closed_holds_up_no_end() -> None:
    job = Hung(Script(), store=ClosingStore(job_id="hung"))
    job.loop.master.cancel()
    result = job.loop.join(10)
    assert any("OwnBase" in text for text in result.report.warnings)


@pytest.mark.parametrize("is_canceled", [True, False])
def test_a_coordinator_whose_close_hangs_holds_up_no_end(is_canceled: bool) -> None:
    script = Script()
    go = script.hang_at("op.close")
    job = Hung(script, end_timeout_s=0.3, restart_strategy=FixedDelay(0, 0.1))
    if is_canceled:
        job.loop.master.cancel()
    else:
        job.loop.master.fail("the schema has changed")
    result = job.loop.join(10)
    go.set()
    assert result.state == ("canceled" if is_canceled else "failed")
    assert "close" in (result.reason or "")
    assert is_canceled or "the schema has changed" in (result.reason or "")


def test_a_restart_strategy_that_hangs_ends_the_job_at_the_limit_of_calls() -> None:
    go = threading.Event()

    class Hanging(FixedDelay):
        def next_delay_s(self, now_s: float) -> float | None:
            go.wait()
            return None

    script = Script()
    script.raise_at("op.start", ValueError("by order of the test"))
    job = Hung(script, coordinator_call_timeout_s=0.3, restart_strategy=Hanging(1, 0.1))
    result = job.loop.join(10)
    go.set()
    assert result.state == "failed"
    assert "the restart strategy has been in" in (result.reason or "")
    assert "Hanging.next_delay_s" in (result.reason or "")
