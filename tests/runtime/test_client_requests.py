"""Questions of a job's clients to its coordinators: every one is answered or fails."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future
from typing import Any

import pytest

from epochgate.runtime import (
    CoordinatorUnavailable,
    JobOver,
    RequestNotHandled,
    UnknownOperator,
    ValueNotPlain,
)
from tests.runtime.scripted import Script, simulated


class Desk:
    """A job whose coordinator answers at once, later or wrongly, as the question says."""

    def __init__(self, script: Script | None = None, *, is_up: bool = True) -> None:
        self.script = script or Script()
        self.script.answer = self._answer
        self.later: Future[Any]
        self.job = simulated(self.script)
        if is_up:
            self.job.settle()

    def _answer(self, request: Any) -> Any:
        if request == "later":
            self.later = Future()
            return self.later
        return {1, 2} if request == "a set" else {"echo": request}

    def asked(self, request: Any, operator_id: str = "op") -> Future[Any]:
        answer = self.job.master.request(operator_id, request)
        self.job.drain()
        return answer


def test_a_coordinator_answers_a_client() -> None:
    desk = Desk()
    answer = desk.job.master.request("op", ["how", 7])
    assert not answer.done()
    desk.job.drain()
    assert answer.result(timeout=0) == {"echo": ["how", 7]}


def test_an_answer_may_come_later() -> None:
    desk = Desk()
    answer = desk.asked("later")
    assert not answer.done()
    desk.later.set_result(["now"])
    assert answer.result(timeout=0) == ["now"]


def test_a_later_answer_may_be_an_error_or_be_cancelled() -> None:
    desk = Desk()
    failing, cancelled = (desk.job.master.request("op", "later") for _ in range(2))
    desk.job.drain(1)
    desk.later.set_exception(OSError("gone"))
    desk.job.drain(1)
    desk.later.cancel()
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
    desk = Desk()
    answer = desk.asked("hello", "counter")
    with pytest.raises(UnknownOperator, match=r"'counter' does not exist .* are: 'op'"):
        answer.result(timeout=0)


def test_what_the_coordinator_raises_is_the_clients_and_not_the_jobs() -> None:
    script = Script(errors={"op.handle_client_request": [KeyError("shelf")]})
    desk = Desk(script)
    answer = desk.asked("hello")
    with pytest.raises(KeyError, match="shelf"):
        answer.result(timeout=0)
    assert desk.job.master.report.failures == []


def test_a_coordinator_that_could_not_start_is_not_asked_and_the_client_learns_why() -> None:
    script = Script(errors={"op.start": [OSError("no such table")]})
    desk = Desk(script, is_up=False)
    desk.job.drain()
    assert desk.job.machines.holder[0].state == "broken"
    answer = desk.asked("hello")
    assert not script.told("op.handle_client_request")
    text = r"request 'hello' .* coordinator 'op' could not start .* ask again after the restart"
    with pytest.raises(CoordinatorUnavailable, match=text):
        answer.result(timeout=0)
    desk.job.settle(lambda: desk.job.machines.holder[0].state == "started")
    again = desk.asked("hello")
    assert again.result(timeout=0) == {"echo": "hello"}


def test_a_coordinator_that_has_not_started_is_not_asked() -> None:
    script = Script()
    desk = Desk(script, is_up=False)
    beginning = desk.job.master.queue.abandon()
    answer = desk.asked("hello")
    with pytest.raises(CoordinatorUnavailable, match="'op' has not started; ask again once"):
        answer.result(timeout=0)
    assert script.calls == ["op.create()"]
    for trigger, arguments in beginning:
        desk.job.master.queue.post(trigger, *arguments)


@pytest.mark.parametrize("can_start", [True, False])
def test_a_question_asked_while_a_coordinator_starts_waits_for_how_that_ends(
    can_start: bool,
) -> None:
    script = Script(errors={} if can_start else {"op.start": [OSError("no such table")]})
    desk = Desk(script, is_up=False)
    answer = desk.asked("hello")
    assert bool(script.told("op.handle_client_request")) is can_start
    if can_start:
        assert answer.result(timeout=0) == {"echo": "hello"}
    else:
        assert isinstance(answer.exception(0), CoordinatorUnavailable)


def test_a_coordinator_that_has_failed_the_job_is_still_asked() -> None:
    desk = Desk()
    desk.script.coordinator.context.fail_job("count is off")
    answer = desk.asked("hello")
    assert answer.result(timeout=0) == {"echo": "hello"}


def test_question_and_answer_are_plain() -> None:
    desk = Desk()
    with pytest.raises(ValueNotPlain, match=r"the request to 'op' is not plain: .* is a set"):
        desk.job.master.request("op", {"how": {1, 2}}).result(timeout=0)
    answer = desk.asked("a set")
    with pytest.raises(ValueNotPlain, match="the answer of coordinator 'op' is not plain"):
        answer.result(timeout=0)


def test_the_end_of_the_job_fails_what_is_not_answered_and_what_comes_later() -> None:
    desk = Desk()
    waiting = desk.asked("later")
    desk.job.master.cancel("enough")
    desk.job.settle(lambda: desk.job.is_over)
    late = desk.asked("hello")
    desk.job.master.close()
    later = desk.job.master.request("op", "hello")
    desk.job.master.close()
    with pytest.raises(JobOver, match="not answered: the job is canceled: enough"):
        waiting.result(timeout=0)
    with pytest.raises(JobOver):
        late.result(timeout=0)
    with pytest.raises(JobOver, match="to begin again, give another checkpoint directory"):
        later.result(timeout=0)


def test_a_client_may_give_up() -> None:
    desk = Desk()
    answer = desk.asked("later")
    assert answer.cancel()
    desk.later.set_result("too late")
    desk.job.settle()
    assert desk.job.master.report.failures == []
