"""The promises of Flink to coordinators, in real Spark jobs: several are kept in each."""

from __future__ import annotations

import asyncio
import signal
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from epochgate.runtime import (
    CheckpointAborted,
    CoordinatorContext,
    EventLost,
    JobConfiguration,
    JobOver,
    JobResult,
    RecreateOnReset,
    RequestNotHandled,
    SendFuture,
    SubtaskGateway,
    UnknownOperator,
    ValueNotPlain,
)
from epochgate.runtime.api.restart_strategies import FixedDelay, NoRestart
from epochgate.runtime.collect import CollectSinkProvider
from epochgate.runtime.source import SourceProvider, WatermarkAlignment
from epochgate.runtime.store import InMemoryCheckpointStore
from epochgate.spark.handle import JobHandle
from epochgate.spark.job import run_job
from epochgate.testing import Script, ScriptedProvider
from tests.runtime.collect import counting
from tests.runtime.source import ranges
from tests.runtime.source.ranges import RangeSource
from tests.spark import contract_programs, numbers_program
from tests.spark.contract_programs import MeasuredProgram, TwoOperatorsProgram, TwoSpeedsProgram
from tests.spark.numbers_program import (
    NumberCoordinator,
    NumberProgram,
    NumberProvider,
    RangeCommitter,
    number_configuration,
)
from tests.spark.running import send_signal, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.extended, pytest.mark.timeout(300)]

ANSWER_S = 30.0
END_S = 60.0
LAST = 150


class DeskCoordinator(NumberCoordinator):
    """Answers clients in all ways there are, and cannot start the first time."""

    def __init__(
        self, context: CoordinatorContext, script: Script, last: int, is_held: threading.Event
    ) -> None:
        super().__init__(context, script, last, is_held)
        context.metrics.gauge("gateways", lambda: len(self.gateways))

    def start(self) -> None:
        if "numbers.start" in self.script.errors:
            self.context.post_later(0.0, self.context.fail_job, "a word from who never started")
        super().start()

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        super().execution_attempt_ready(subtask, attempt, gateway)
        self.context.metrics.counter("attempts_met").add()

    def handle_client_request(self, request: Any) -> Any:
        match request:
            case "now":
                return {"parallelism": self.context.parallelism}
            case "blocking":
                answer: Future[Any] = Future()
                here = threading.get_ident()
                self.context.run_async(
                    lambda: threading.get_ident() == here,
                    lambda was_here, error: answer.set_result(
                        {"worked here": was_here, "came back here": threading.get_ident() == here}
                    ),
                )
                return answer
            case "coroutine":
                awaited: Future[Any] = Future()
                self.context.run_coroutine(
                    asyncio.sleep(0, "slept"), lambda result, error: awaited.set_result(result)
                )
                return awaited
            case "checkpoint":
                return self.context.checkpoints.request()
            case ["send to the past", subtask]:
                first = min(gateway for gateway in self.all_gateways if gateway[0] == subtask)
                return outcome(self.all_gateways[first].send_event("for a lost attempt"))
            case "object":
                return object()
            case "never":
                return Future()
            case "raise":
                raise KeyError("no such rule")
            case _:
                return super().handle_client_request(request)


def outcome(sent: SendFuture) -> Future[str]:
    """The outcome of a send, as an answer; the coordinator's calls are on the queue's thread."""
    told: Future[str] = Future()
    sent.add_done_callback(lambda done: told.set_result(type(done.exception()).__name__))
    return told


@dataclass
class Played:
    """The calls that one job has shown, and what it came to."""

    script: Script
    answers: dict[str, Any]
    figures: dict[str, int | float]
    result: JobResult
    problems: list[str]
    handle: JobHandle


def asked(job: JobHandle, request: Any, operator_id: str = "numbers") -> Any:
    """The answer, or the error that came instead."""
    future = job.request(operator_id, request)
    error = future.exception(ANSWER_S)
    return future.result() if error is None else error


@pytest.fixture(scope="module")
def played(spark: Any) -> Played:
    """One job: its coordinator starts at the second try, answers clients, and loses a worker."""
    script = Script({"numbers.start": [OSError("no such table")]})
    provider = NumberProvider(LAST, script, DeskCoordinator)
    committer, answers = RangeCommitter(), {}
    provider.is_held.set()
    with run_job(
        spark,
        number_configuration(provider, 2),
        lambda subtask: NumberProgram(LAST),
        store=InMemoryCheckpointStore(job_id="numbers"),
        committer=committer,
        by_value=[numbers_program],
    ) as job:
        wait_for(lambda: job.status().last_checkpoint_id > 0, "a checkpoint")
        for request in ("now", "blocking", "coroutine", "checkpoint", "raise", "object", "?"):
            answers[request] = asked(job, request)
        answers["unknown"] = asked(job, "now", "letters")
        answers["not plain"] = asked(job, {1, 2})
        pid = job.status().tasks[1].pid
        assert pid is not None
        send_signal(pid, signal.SIGKILL)
        lost = partial(script.told, "numbers.execution_attempt_failed")
        wait_for(lambda: any(subtask == 1 for subtask, *_ in lost()), "the loss is announced")
        answers["past"] = asked(job, ["send to the past", 1])
        wait_for(lambda: len(script.coordinator.gateways) == 2, "a successor")
        never = job.request("numbers", "never")
        script.coordinators[0].context.fail_job("another word from the past")
        figures = dict(job.report.coordinator_metrics["numbers"])
        provider.is_held.clear()
        result = job.wait(END_S)
        answers["never"] = never.exception(ANSWER_S)
    return Played(script, answers, figures, result, committer.problems(2, LAST), job)


def test_a_coordinator_that_cannot_start_is_rebuilt(played: Played) -> None:
    first, second = played.script.coordinators
    assert (first.is_closed, first.gateways) == (True, {})
    assert second.is_closed
    assert played.result.state == "finished", played.result.reason
    assert played.problems == []
    assert "could not start: OSError('no such table')" in played.result.report.failures[0].reason


def test_a_coordinator_that_was_replaced_is_fenced(played: Played) -> None:
    assert played.result.report.global_restarts == 1
    assert not [f for f in played.result.report.failures if "word from" in f.reason]


def test_clients_are_answered_at_once_or_later(played: Played) -> None:
    answers = played.answers
    assert answers["now"] == {"parallelism": 2}
    assert answers["blocking"] == {"worked here": False, "came back here": True}
    assert answers["coroutine"] == "slept"
    assert 0 < answers["checkpoint"] <= played.result.last_checkpoint_id


def test_what_is_wrong_with_a_request_is_the_clients_and_not_the_jobs(played: Played) -> None:
    wrong = {name: type(played.answers[name]) for name in ("raise", "object", "?", "never")}
    assert wrong == {
        "raise": KeyError,
        "object": ValueNotPlain,
        "?": RequestNotHandled,
        "never": JobOver,
    }
    assert isinstance(played.answers["unknown"], UnknownOperator)
    assert isinstance(played.answers["not plain"], ValueNotPlain)
    assert isinstance(asked(played.handle, "now"), JobOver)


def test_a_send_to_an_attempt_that_is_gone_fails_its_future_and_nothing_else(
    played: Played,
) -> None:
    assert played.answers["past"] == EventLost.__name__
    assert played.result.report.regional_restarts == 1


def test_figures_of_a_coordinator_stand_in_the_report_and_stay_after_the_end(
    played: Played,
) -> None:
    assert played.figures == {"gateways": 2, "attempts_met": 3}
    assert dict(played.result.report.coordinator_metrics["numbers"])["attempts_met"] == 3


def test_a_coordinator_that_never_starts_fails_the_job_with_its_reason(spark: Any) -> None:
    script = Script({"numbers.start": [OSError("no such table")] * 100})
    with run_job(
        spark,
        number_configuration(NumberProvider(LAST, script), 2, restart_strategy=FixedDelay(2, 0.0)),
        lambda subtask: NumberProgram(LAST),
        store=InMemoryCheckpointStore(job_id="numbers"),
        by_value=[numbers_program],
    ) as job:
        result = job.wait(END_S)
    assert result.state == "failed"
    assert "could not start: OSError('no such table')" in str(result.reason)
    assert [coordinator.is_closed for coordinator in script.coordinators] == [True] * 3


def test_what_is_asked_while_an_old_coordinator_closes_is_answered_by_its_successor(
    spark: Any,
) -> None:
    script, committer = Script(), RangeCommitter()
    script.answer = lambda request: len(script.coordinators)
    provider, may_leave = NumberProvider(LAST, script), script.hang_at("numbers.close")
    provider.is_held.set()
    with run_job(
        spark,
        number_configuration(RecreateOnReset(provider), 2),
        lambda subtask: NumberProgram(LAST),
        store=InMemoryCheckpointStore(job_id="numbers"),
        committer=committer,
        by_value=[numbers_program],
    ) as job:
        wait_for(lambda: job.status().last_checkpoint_id > 0, "a checkpoint")
        script.coordinator.context.fail_job("the source was rewritten")
        wait_for(lambda: script.told("numbers.close") != [], "the old coordinator is to close")
        answer = job.request("numbers", "which are you")
        assert len(script.coordinators) == 1
        may_leave.set()
        assert answer.result(ANSWER_S) == 2
        provider.is_held.clear()
        result = job.wait(END_S)
    assert result.state == "finished", result.reason
    assert committer.problems(2, LAST) == []
    assert result.report.global_restarts == 1


def test_the_coordinator_whose_future_never_completes_is_named_and_the_next_checkpoint_completes(
    spark: Any,
) -> None:
    numbers, mute = NumberProvider(LAST), Script(is_completing=False)
    numbers.is_held.set()
    configuration = JobConfiguration(
        "numbers",
        2,
        (numbers, ScriptedProvider("mute", mute)),
        checkpoint_interval_s=None,
        checkpoint_timeout_s=3.0,
        restart_strategy=NoRestart(),
    )
    with run_job(
        spark,
        configuration,
        lambda subtask: TwoOperatorsProgram(LAST, "mute"),
        store=InMemoryCheckpointStore(job_id="numbers"),
        committer=RangeCommitter(),
        by_value=[numbers_program, contract_programs, counting],
    ) as job:
        with pytest.raises(CheckpointAborted, match=r"longer than 3 s.*completed it: mute$"):
            job.request_checkpoint().result(ANSWER_S)
        mute.is_completing = True
        mute.coordinator.results[1].set_result(b"too late")
        assert job.request_checkpoint().result(ANSWER_S) == 2
        numbers.is_held.clear()
        result = job.wait(END_S)
    assert result.state == "finished", result.reason
    assert mute.told("mute.notify_checkpoint_aborted") == [(1,)]
    assert mute.told("mute.reset_to_checkpoint") == []
    assert [report.is_completed for report in result.report.checkpoints[:2]] == [False, True]


def test_a_source_that_reads_ahead_waits_for_another_one_of_its_group(spark: Any) -> None:
    drift, numbers = 20, 400
    alignment = WatermarkAlignment("orders", drift=drift, every_s=0.02)
    configuration = JobConfiguration(
        "aligned",
        1,
        tuple(
            SourceProvider(name, RangeSource(1, numbers), alignment=alignment)
            for name in ("eager", "slow")
        ),
        checkpoint_interval_s=0.2,
        restart_strategy=NoRestart(),
    )
    with run_job(
        spark,
        configuration,
        lambda subtask: TwoSpeedsProgram(
            RangeSource(1, numbers), RangeSource(1, numbers), drift=drift
        ),
        store=InMemoryCheckpointStore(job_id="aligned"),
        by_value=[ranges, contract_programs, counting, numbers_program],
    ) as job:
        result = job.wait(END_S)
    assert result.state == "finished", result.reason
    assert result.report.failures == []


def test_a_client_that_takes_no_rows_holds_up_the_tasks_and_no_checkpoint(spark: Any) -> None:
    last, buffer_rows, at_once = 1000, 100, 7
    full = buffer_rows - buffer_rows % at_once
    configuration = JobConfiguration(
        "counting", 2, (CollectSinkProvider(window_rows=50),), checkpoint_interval_s=0.1
    )
    with run_job(
        spark,
        configuration,
        lambda subtask: MeasuredProgram(last, rows_at_once=at_once, buffer_rows_max=buffer_rows),
        store=InMemoryCheckpointStore(job_id="counting"),
        by_value=[counting, contract_programs, ranges, numbers_program],
    ) as job:

        def made() -> list[int | float]:
            return [job.report.metrics.get(s, {}).get("made", 0) for s in range(2)]

        with job.collect() as rows:
            wait_for(lambda: made() == [full, full], "the buffers are full")
            before = job.status().last_checkpoint_id
            wait_for(lambda: job.status().last_checkpoint_id >= before + 3, "checkpoints")
            assert made() == [full, full]
            taken = {0: 0, 1: 0}
            for row in rows:
                taken[row[0]] += 1
                assert row[1] == taken[row[0]]
                assert all(made()[s] <= taken[s] + buffer_rows for s in taken)
        result = job.wait(END_S)
    assert result.state == "finished", result.reason
    assert taken == {0: last, 1: last}
