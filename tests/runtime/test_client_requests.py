"""Questions of a job's clients to its coordinators: every one is answered or fails."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future
from typing import Any

import pytest

from epochgate.runtime import (
    CoordinatorContext,
    CoordinatorProvider,
    CoordinatorUnavailable,
    JobConfiguration,
    JobOver,
    OperatorCoordinator,
    RequestNotHandled,
    UnknownOperator,
    ValueNotPlain,
)
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime.scripted import Script, ScriptedCoordinator, ScriptedProgram, simulated


class Answering(ScriptedCoordinator):
    """Answers at once, later, wrongly or not at all, as the question says."""

    later: Future[Any]

    def handle_client_request(self, request: Any) -> Any:
        self.script.at("request")
        if request == "later":
            self.later = Future()
            return self.later
        return {1, 2} if request == "a set" else {"echo": request}


class AnsweringProvider(CoordinatorProvider):
    operator_id = "desk"

    def __init__(self, script: Script) -> None:
        self._script = script

    def create(self, context: CoordinatorContext) -> OperatorCoordinator:
        return Answering(context, self._script)


def desk(script: Script | None = None, *, is_up: bool = True) -> SimulatedJob:
    script = script or Script()
    job = SimulatedJob(
        lambda _: JobConfiguration(
            "desk",
            1,
            (AnsweringProvider(script),),
            checkpoint_interval_s=None,
            restart_strategy=FixedDelay(5, 1.0),
        ),
        lambda _: ScriptedProgram(script),
    )
    if is_up:
        job.settle()
    return job


def coordinator(job: SimulatedJob) -> Answering:
    found = job.master.coordinators[0]
    assert isinstance(found, Answering)
    return found


def test_a_coordinator_answers_a_client() -> None:
    job = desk()
    answer = job.master.request("desk", ["how", 7])
    assert not answer.done()
    job.drain()
    assert answer.result(timeout=0) == {"echo": ["how", 7]}


def test_an_answer_may_come_later() -> None:
    job = desk()
    answer = job.master.request("desk", "later")
    job.drain()
    assert not answer.done()
    coordinator(job).later.set_result(["now"])
    assert answer.result(timeout=0) == ["now"]


def test_a_later_answer_may_be_an_error_or_be_cancelled() -> None:
    job = desk()
    failing, cancelled = (job.master.request("desk", "later") for _ in range(2))
    job.drain(1)
    coordinator(job).later.set_exception(OSError("gone"))
    job.drain(1)
    coordinator(job).later.cancel()
    with pytest.raises(OSError, match="gone"):
        failing.result(timeout=0)
    with pytest.raises(CancelledError):
        cancelled.result(timeout=0)


def test_a_coordinator_that_handles_no_requests_cannot_handle_one() -> None:
    job = simulated(Script())
    job.settle()
    answer = job.master.request("op", "hello")
    job.drain()
    with pytest.raises(RequestNotHandled, match="cannot handle the request 'hello'"):
        answer.result(timeout=0)


def test_an_unknown_operator_does_not_exist_and_the_others_are_named() -> None:
    job = desk()
    answer = job.master.request("counter", "hello")
    job.drain()
    with pytest.raises(UnknownOperator, match=r"'counter' does not exist .* are: 'desk'"):
        answer.result(timeout=0)


def test_what_the_coordinator_raises_is_the_clients_and_not_the_jobs() -> None:
    script = Script(errors={"request": [KeyError("shelf")]})
    job = desk(script)
    answer = job.master.request("desk", "hello")
    job.drain()
    with pytest.raises(KeyError, match="shelf"):
        answer.result(timeout=0)
    assert job.master.report.failures == []


def test_a_coordinator_that_could_not_start_is_not_asked_and_the_client_learns_why() -> None:
    script = Script(errors={"start": [OSError("no such table")]})
    job = desk(script, is_up=False)
    job.drain()
    assert job.master.job.holder[0].state == "broken"
    answer = job.master.request("desk", "hello")
    job.drain()
    assert "request" not in script.calls
    text = r"request 'hello' .* coordinator 'desk' could not start .* ask again after the restart"
    with pytest.raises(CoordinatorUnavailable, match=text):
        answer.result(timeout=0)
    job.settle(lambda: job.master.job.holder[0].state == "started")
    again = job.master.request("desk", "hello")
    job.drain()
    assert again.result(timeout=0) == {"echo": "hello"}


def test_a_coordinator_that_has_not_started_is_not_asked() -> None:
    script = Script()
    job = desk(script, is_up=False)
    beginning = job.master.queue.abandon()
    answer = job.master.request("desk", "hello")
    job.drain()
    with pytest.raises(CoordinatorUnavailable, match="'desk' has not started; ask again once"):
        answer.result(timeout=0)
    assert script.calls == []
    for trigger, arguments in beginning:
        job.master.queue.post(trigger, *arguments)


@pytest.mark.parametrize("can_start", [True, False])
def test_a_question_asked_while_a_coordinator_starts_waits_for_how_that_ends(
    can_start: bool,
) -> None:
    script = Script(errors={} if can_start else {"start": [OSError("no such table")]})
    job = desk(script, is_up=False)
    answer = job.master.request("desk", "hello")
    job.drain()
    assert ("request" in script.calls) is can_start
    if can_start:
        assert answer.result(timeout=0) == {"echo": "hello"}
    else:
        assert isinstance(answer.exception(0), CoordinatorUnavailable)


def test_a_coordinator_that_has_failed_the_job_is_still_asked() -> None:
    job = desk()
    coordinator(job).context.fail_job("count is off")
    answer = job.master.request("desk", "hello")
    job.drain()
    assert answer.result(timeout=0) == {"echo": "hello"}


def test_question_and_answer_are_plain() -> None:
    job = desk()
    with pytest.raises(ValueNotPlain, match=r"the request to 'desk' is not plain: .* is a set"):
        job.master.request("desk", {"how": {1, 2}}).result(timeout=0)
    answer = job.master.request("desk", "a set")
    job.drain()
    with pytest.raises(ValueNotPlain, match="the answer of coordinator 'desk' is not plain"):
        answer.result(timeout=0)


def test_the_end_of_the_job_fails_what_is_not_answered_and_what_comes_later() -> None:
    job = desk()
    waiting = job.master.request("desk", "later")
    job.drain()
    job.master.cancel("enough")
    job.settle(lambda: job.is_over)
    late = job.master.request("desk", "hello")
    job.drain()
    job.master.close()
    later = job.master.request("desk", "hello")
    job.master.close()
    with pytest.raises(JobOver, match="not answered: the job is canceled: enough"):
        waiting.result(timeout=0)
    for future in (late, later):
        with pytest.raises(JobOver):
            future.result(timeout=0)


def test_a_client_may_give_up() -> None:
    job = desk()
    answer = job.master.request("desk", "later")
    job.drain()
    assert answer.cancel()
    coordinator(job).later.set_result("too late")
    job.settle()
    assert job.master.report.failures == []
