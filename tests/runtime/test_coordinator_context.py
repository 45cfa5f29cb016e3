"""The context of a coordinator: every part of it, in a simulated job."""

from __future__ import annotations

import asyncio
import math
import threading
from typing import Any

import pytest

from epochgate.runtime import (
    CannotLoad,
    CoordinatorContext,
    CoordinatorStore,
    EventLost,
    JobConfiguration,
    JobMisconfigured,
    JobOver,
    MetricNameTaken,
    ValueNotPlain,
)
from epochgate.runtime.testing.scripted import ScriptedCoordinator, ScriptedProvider
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime.scripted import Script, echo_program, simulated


def up(script: Script | None = None, **settings: Any) -> SimulatedJob:
    job = simulated(script or Script(), **settings)
    job.settle()
    return job


def context_of(job: SimulatedJob, number: int = 0) -> CoordinatorContext:
    coordinator = job.master.coordinators[number]
    assert isinstance(coordinator, ScriptedCoordinator)
    return coordinator.context


def test_the_context_knows_its_operator_its_job_and_the_parallelism() -> None:
    context = context_of(up(subtasks=3))
    assert (context.operator_id, context.parallelism) == ("op", 3)
    assert (context.job_id, context.run_id) == ("scripted", "run-0")


def test_coordinators_of_a_job_share_one_store() -> None:
    script = Script()
    providers = ScriptedProvider("op", script), ScriptedProvider("second", script)
    job = SimulatedJob(
        lambda _: JobConfiguration("two", 1, providers), lambda _: echo_program(script)
    )
    first, second = context_of(job, 0), context_of(job, 1)
    first.coordinator_store.put("listener", first.operator_id)
    assert second.coordinator_store.get("listener") == "op"


def test_a_store_computes_and_forgets() -> None:
    store = CoordinatorStore()
    assert store.compute_if_present("n", lambda old: old + 1) is None
    assert store.compute_if_absent("n", lambda: 1) == 1
    assert store.compute_if_absent("n", lambda: 7) == 1
    assert store.compute_if_present("n", lambda old: old + 1) == 2
    assert store.put("n", 3) == 2
    assert store.compute("n", lambda old: None) is None
    assert not store.contains("n")
    assert store.put_if_absent("n", 5) is None
    assert store.remove("n") == 5


def test_a_change_that_raises_leaves_the_stored_value() -> None:
    store = CoordinatorStore()
    store.put("n", 3)
    with pytest.raises(ZeroDivisionError):
        store.compute("n", lambda old: old / 0)
    assert store.get("n") == 3


def test_a_store_survives_a_reset_of_everything() -> None:
    job = up()
    context = context_of(job)
    context.coordinator_store.put("seen", 1)
    context.fail_job("count is off")
    job.settle()
    assert job.master.report.global_restarts == 1
    assert context.coordinator_store.get("seen") == 1


def test_figures_of_coordinators_stand_in_the_report_beside_those_of_tasks() -> None:
    job = up()
    context = context_of(job)
    waiting = ["a", "b"]
    context.metrics.counter("assigned").add(3)
    context.metrics.gauge("waiting", lambda: len(waiting))
    shown = job.master.report.coordinator_metrics["op"]
    assert dict(shown) == {"assigned": 3, "waiting": 2}
    job.master.cancel()
    job.settle(lambda: job.is_over)
    waiting.clear()
    assert dict(shown) == {"assigned": 3, "waiting": 2}


def test_a_gauge_that_raises_shows_as_no_number() -> None:
    job = up()
    context_of(job).metrics.gauge("ratio", lambda: 1 / 0)
    assert math.isnan(job.master.report.coordinator_metrics["op"]["ratio"])


def test_a_name_is_a_counter_or_a_gauge() -> None:
    metrics = context_of(up()).metrics
    metrics.counter("splits")
    with pytest.raises(MetricNameTaken, match="'splits' is a counter already"):
        metrics.gauge("splits", lambda: 0)
    metrics.gauge("lag", lambda: 0)
    with pytest.raises(MetricNameTaken, match="'lag' is a gauge already"):
        metrics.counter("lag")


def test_a_coordinator_sees_the_checkpoints_and_may_ask_for_one() -> None:
    job = up()
    checkpoints = context_of(job).checkpoints
    assert (checkpoints.interval_s, checkpoints.is_periodic) == (None, False)
    assert checkpoints.last_completed_id == 0
    wanted = checkpoints.request()
    job.settle(wanted.done)
    assert wanted.result(timeout=0) == checkpoints.last_completed_id == 1
    periodic = context_of(up(checkpoint_interval_s=9.0)).checkpoints
    assert (periodic.interval_s, periodic.is_periodic) == (9.0, True)


def test_a_checkpoint_asked_for_after_the_end_is_refused() -> None:
    job = up()
    job.master.cancel()
    job.settle(lambda: job.is_over)
    wanted = context_of(job).checkpoints.request()
    job.drain()
    with pytest.raises(JobOver):
        wanted.result(timeout=0)


def test_cancelling_a_request_for_a_checkpoint_harms_no_other() -> None:
    job = up()
    wanted = job.master.request_checkpoint()
    assert wanted.cancel()
    job.settle()
    assert [c.checkpoint_id for c in job.master.report.completed()] == [1]


def test_code_is_loaded_by_its_name() -> None:
    context = context_of(up())
    assert context.load("collections:OrderedDict.fromkeys")(["a"]) == {"a": None}


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("json", "write it as 'package.module:name'"),
        ("no_such_module:thing", "cannot import 'no_such_module'"),
        ("json:no_such_name", "no_such_name"),
    ],
)
def test_a_name_that_leads_nowhere_says_where_it_ends(name: str, problem: str) -> None:
    with pytest.raises(CannotLoad, match=problem):
        context_of(up()).load(name)


def test_work_of_one_lane_is_one_after_the_other_and_returns_to_the_queue() -> None:
    job = up()
    done: list[Any] = []
    context = context_of(job)
    context.run_async(lambda: "a", lambda result, error: done.append(result), lane="first")
    context.run_async(lambda: 1 / 0, lambda result, error: done.append(type(error)), lane="second")
    assert [lane for lane, *_ in job.blocking.waiting] == [
        "coordinator-op-first",
        "coordinator-op-second",
    ]
    job.settle()
    assert done == ["a", ZeroDivisionError]


def test_what_a_callback_raises_takes_the_job_back() -> None:
    job = up()
    context_of(job).run_async(lambda: 0, lambda result, error: 1 // result)
    job.settle()
    assert job.master.report.global_restarts == 1


def test_a_coroutine_returns_to_the_queue() -> None:
    job = up()
    done: list[Any] = []

    async def ask() -> str:
        await asyncio.sleep(0)
        return "answer"

    context_of(job).run_coroutine(ask(), lambda result, error: done.append((result, error)))
    assert done == []
    job.settle()
    assert done == [("answer", None)]


def test_simulated_coroutines_sleep_by_the_simulated_clock() -> None:
    job = up()
    at_s: list[float] = []
    due_s = job.master.queue.next_due_s()

    async def wait() -> None:
        await asyncio.sleep(30)
        async with asyncio.timeout(100):
            await asyncio.sleep(10)

    context_of(job).run_coroutine(wait(), lambda *_: at_s.append(job.clock.now_s()))
    job.settle(lambda: bool(at_s))
    assert at_s == [40.0]
    assert job.master.queue.next_due_s() == due_s, "the timeout's timer is gone"


def test_simulated_coroutines_may_wait_for_each_other() -> None:
    job, told = up(), list[str]()
    gate = asyncio.Event()

    async def first() -> None:
        await gate.wait()
        told.append("first")

    async def second() -> None:
        told.append("second")
        gate.set()

    for coroutine in (first(), second()):
        context_of(job).run_coroutine(coroutine, lambda *_: None)
    job.settle()
    assert told == ["second", "first"]


def test_a_coroutine_is_cancelled_on_its_own_and_with_the_job() -> None:
    job, told = up(), list[Any]()

    async def forever(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            told.append(name)

    context = context_of(job)
    one = context.run_coroutine(forever("one"), lambda result, error: told.append(type(error)))
    context.run_coroutine(forever("two"), lambda *_: told.append("never"))
    job.settle()
    one.cancel()
    job.settle()
    assert told == ["one", asyncio.CancelledError]
    job.master.close()
    assert told == ["one", asyncio.CancelledError, "two"]


def test_a_coroutine_that_raises_hands_over_its_error() -> None:
    job, errors = up(), list[BaseException | None]()

    async def fail() -> None:
        raise OSError("no route")

    context_of(job).run_coroutine(fail(), lambda result, error: errors.append(error))
    job.settle()
    assert str(errors[0]) == "no route"


def test_an_event_of_a_type_that_cannot_travel_is_refused_where_it_is_sent() -> None:
    script = Script()
    job = up(script)
    with pytest.raises(
        ValueNotPlain, match=r"the event for subtask 0 is not plain: .* is a Script"
    ):
        script.coordinator.send(0, script)
    job.settle()
    assert job.master.report.failures == []


def test_a_coordinator_that_lets_this_error_pass_ends_the_job_as_no_restart_would_help() -> None:
    script = Script()
    job = up(script)

    def send() -> None:
        script.coordinator.send(0, script)

    context_of(job).post(send)
    job.settle(lambda: job.is_over)
    assert job.result.state == "failed"
    assert "the event for subtask 0 is not plain" in str(job.result.reason)
    assert job.master.report.global_restarts == 0


def test_a_send_to_an_attempt_that_is_gone_fails_its_future_and_nothing_else() -> None:
    script = Script()
    job = up(script)
    old = script.coordinator.gateways[0]
    job.transport.kill(1)
    job.settle()
    wanted = job.master.request_checkpoint()
    lost = old.send_event("for any listener")
    job.settle(wanted.done)
    assert isinstance(lost.exception(), EventLost)
    assert wanted.result(timeout=0) == 1
    assert len(job.master.report.failures) == 1
    assert job.master.report.global_restarts == 0


def test_the_order_of_an_attempts_life_is_ready_failed_reset_ready() -> None:
    script = Script()
    job = up(script)
    job.transport.kill(1)
    job.settle()
    assert [call for call in script.calls if call.startswith("op.")] == [
        "op.create()",
        "op.start()",
        "op.execution_attempt_ready(0, 0)",
        "op.execution_attempt_failed(0, 0, 'killed')",
        "op.subtask_reset(0, 0)",
        "op.execution_attempt_ready(0, 1)",
    ]


def test_what_an_old_attempt_says_does_not_reach_the_coordinator() -> None:
    script = Script()
    job = up(script)
    old = job.transport.processes[1]
    job.transport.cut(1)
    job.settle(lambda: job.machines.attempt[0].number == 1)
    old.worker.program.operators["op"].handle_event("from the past")
    job.settle()
    assert script.told("op[0].handle_event")
    assert not script.told("op.handle_event_from_operator")


@pytest.mark.parametrize("seconds", [0, -1.0, "1", True, float("nan")])
def test_a_time_limit_for_calls_is_more_than_nothing(seconds: Any) -> None:
    with pytest.raises(JobMisconfigured, match="coordinator_call_warn_s"):
        JobConfiguration("job", 1, coordinator_call_warn_s=seconds)


def test_a_thread_comes_back_by_post() -> None:
    job, ran = up(), list[str]()
    context = context_of(job)

    def work() -> None:
        context.post(lambda: ran.append(threading.current_thread().name))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    job.settle()
    assert ran == [threading.current_thread().name]
