"""A coordinator that blocks the queue is named; the threads beside the queue's end with the job."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from epochgate.runtime import CoordinatorContext, JobConfiguration, JobLoop, JobMaster
from epochgate.runtime.shell.blocking_work import ThreadedWork
from epochgate.runtime.shell.checkpoints import CheckpointAborted
from epochgate.runtime.shell.clock import MonotonicClock
from epochgate.runtime.shell.watchdog import CallWatch, Watchdog
from epochgate.runtime.store import InMemoryCheckpointStore
from epochgate.runtime.testing.scripted import ScriptedProvider
from tests.runtime.scripted import Script, simulated
from tests.runtime.test_loop import OneTask


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def watched(
    clock: Clock,
    warn: Callable[[str], None],
    limit_s: float = 600.0,
    abandon: Callable[[str], None] = lambda reason: None,
) -> tuple[CallWatch, Watchdog]:
    watch = CallWatch(clock)
    dog = Watchdog(
        watch,
        call_warn_s=2.0,
        call_limit_s=lambda: (limit_s, "coordinator_call_timeout_s"),
        abandon=abandon,
        operator_ids=["source", "sink"],
        warn=warn,
        post=lambda *_: None,
        clock_s=clock,
    )
    return watch, dog


def test_a_call_is_named_once_when_it_takes_too_long() -> None:
    clock, warnings = Clock(), list[str]()
    watch, dog = watched(clock, warnings.append)
    watch.running = (watch.clock_s(), 1, Script().at)
    clock.now_s = 1.9
    dog.look()
    assert warnings == []
    clock.now_s = 2.5
    dog.look()
    dog.look()
    assert len(warnings) == 1
    assert "coordinator 'sink' has been in Script.at for 2.5 s" in warnings[0]
    assert "coordinator_call_warn_s is 2" in warnings[0]


def test_short_calls_are_not_taken_for_a_long_one() -> None:
    clock, warnings = Clock(), list[str]()
    watch, dog = watched(clock, warnings.append)
    for _ in range(5):
        watch.running = (watch.clock_s(), 0, Script().at)
        dog.look()
        clock.now_s += 1.5
        watch.running = None
        dog.look()
    assert warnings == []


def test_a_method_that_always_blocks_does_not_fill_the_report() -> None:
    clock, warnings = Clock(), list[str]()
    watch, dog = watched(clock, warnings.append)
    for _ in range(25):
        watch.running = (watch.clock_s(), 0, Script().at)
        clock.now_s += 3
        dog.look()
        watch.running = None
    assert len(warnings) == 10
    assert "further warnings about this method are left out" in warnings[-1]


def test_a_call_that_exceeds_its_limit_is_given_up_once() -> None:
    clock, reasons = Clock(), list[str]()
    watch, dog = watched(clock, lambda text: None, 10.0, reasons.append)
    watch.running = (watch.clock_s(), 0, Script().at)
    clock.now_s = 9.9
    dog.look()
    assert reasons == []
    clock.now_s = 10.5
    dog.look()
    dog.look()
    assert len(reasons) == 1
    assert "coordinator 'source' has been in Script.at for 10.5 s" in reasons[0]
    assert "coordinator_call_timeout_s is 10" in reasons[0]


class Live:
    """A job on its own thread with one task, and the context of its coordinator."""

    def __init__(self, script: Script, **settings: Any) -> None:
        provider = ScriptedProvider("op", script)
        configuration = JobConfiguration(
            "live", 1, (provider,), checkpoint_interval_s=None, **settings
        )
        self.loop = JobLoop(
            JobMaster(
                configuration,
                transport=OneTask(),
                store=InMemoryCheckpointStore(job_id="live"),
                clock=MonotonicClock(),
                blocking=ThreadedWork,
            )
        )
        self.context: CoordinatorContext = script.coordinator.context
        self.loop.start()

    def end(self) -> None:
        self.loop.master.cancel()
        self.loop.join(60)


class Hearing(logging.Handler):
    """Sets an event when the watchdog's logger says something."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = threading.Event()
        logging.getLogger("epochgate.runtime.shell.watchdog").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.set()

    def close(self) -> None:
        logging.getLogger("epochgate.runtime.shell.watchdog").removeHandler(self)
        super().close()


def test_a_call_that_hangs_is_named_with_its_stack_while_it_hangs() -> None:
    job = Live(Script(), coordinator_call_warn_s=0.02)
    hearing = Hearing()

    def blocks_until_named() -> None:
        hearing.heard.wait(60)

    job.context.post(blocks_until_named)
    assert hearing.heard.wait(60)
    job.end()
    hearing.close()
    warning = job.loop.master.report.warnings[0]
    assert "coordinator 'op' has been in" in warning
    assert "blocks_until_named for" in warning
    assert "hearing.heard.wait(60)" in warning


def test_a_job_without_a_limit_names_no_coordinator() -> None:
    job = Live(Script(), coordinator_call_warn_s=None)
    job.end()
    assert job.loop.master.report.warnings == []
    assert not [t for t in threading.enumerate() if t.name == "epochgate-watchdog"]


@pytest.mark.parametrize("is_cycle", [False, True])
def test_a_future_dropped_on_any_thread_fails_its_checkpoint_at_once(is_cycle: bool) -> None:
    script = Script(is_completing=False)
    job = Live(script)
    asked = threading.Event()
    script.coordinator.results = Handed(asked, script.coordinator.results)
    wanted = job.loop.master.request_checkpoint()
    assert asked.wait(60)
    cycle: list[Any] = [script.coordinator.results.pop(1)]
    if is_cycle:
        cycle.append(cycle)
    del cycle
    gc.collect()
    with pytest.raises(CheckpointAborted, match="'op' has dropped its future uncompleted"):
        wanted.result(60)
    job.end()


class Handed(dict[int, Future[bytes]]):
    """Tells when a future has been handed out."""

    def __init__(self, asked: threading.Event, before: dict[int, Future[bytes]]) -> None:
        super().__init__(before)
        self._asked = asked

    def __setitem__(self, checkpoint: int, result: Future[bytes]) -> None:
        super().__setitem__(checkpoint, result)
        self._asked.set()


def test_a_future_dropped_in_simulation_fails_its_checkpoint() -> None:
    script = Script(is_completing=False)
    job = simulated(script)
    job.settle()
    wanted = job.master.request_checkpoint()
    job.flow()
    script.coordinator.results.clear()
    gc.collect()
    job.settle(wanted.done)
    with pytest.raises(CheckpointAborted, match="'op' has dropped its future uncompleted"):
        wanted.result(timeout=0)


def test_completing_a_future_after_its_checkpoint_was_aborted_does_nothing() -> None:
    script = Script(is_completing=False)
    job = simulated(script, checkpoint_timeout_s=5.0)
    job.settle()
    wanted = job.master.request_checkpoint()
    job.flow()
    job.wait(5)
    assert wanted.exception(0) is not None
    script.coordinator.results[1].set_result(b"late")
    second = job.master.request_checkpoint()
    job.flow()
    assert not second.done()
    script.coordinator.results[2].set_result(b"in time")
    job.settle(second.done)
    assert second.result(timeout=0) == 2
    assert job.store.load(2).coordinators == {"op": b"in time"}


def test_coroutines_run_on_the_jobs_loop_and_end_with_it() -> None:
    job = Live(Script())
    done: Future[tuple[str, str]] = Future()
    cancelled = threading.Event()

    async def ask() -> str:
        await asyncio.sleep(0)
        return threading.current_thread().name

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    def then(result: Any, error: BaseException | None) -> None:
        done.set_result((result, threading.current_thread().name))

    def run() -> None:
        job.context.run_coroutine(ask(), then)
        job.context.run_coroutine(forever(), lambda *_: None)

    job.context.post(run)
    assert done.result(60) == ("epochgate-asyncio", "epochgate-queue")
    job.end()
    assert cancelled.wait(60)
    assert not [t for t in threading.enumerate() if t.name == "epochgate-asyncio"]


def test_lanes_of_work_run_beside_each_other_and_end_with_the_job() -> None:
    job = Live(Script())
    first, second, done = threading.Event(), threading.Event(), threading.Event()

    def run() -> None:
        job.context.run_async(lambda: first.wait(60), lambda *_: done.set(), lane="a")
        job.context.run_async(first.set, lambda *_: second.set(), lane="b")

    job.context.post(run)
    assert second.wait(60)
    assert done.wait(60)
    job.end()
    assert not [t for t in threading.enumerate() if t.name.startswith("epochgate-coordinator")]


def test_work_that_never_ends_does_not_hold_the_job(caplog: pytest.LogCaptureFixture) -> None:
    lane_ends = threading.Event()
    work = ThreadedWork(lambda *_: None)
    begun = threading.Event()

    def hang() -> None:
        begun.set()
        lane_ends.wait(60)

    work.submit("coordinator-op", hang, lambda *_: None)
    assert begun.wait(60)
    work.close_by(0.01)
    work.close()
    assert "'coordinator-op' does not end; it is left behind" in caplog.text
    lane_ends.set()
