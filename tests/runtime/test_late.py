"""A message that comes late or twice to a running job changes nothing, and is not refused.

Each test lets a message, a timer or a future of the past reach the job master's queue, as any of
them may in production, and holds that all machines stand where they stood, that no user code was
called, and that nothing was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import pytest

from epochgate.fsm import Timer
from epochgate.runtime.testing.scripted import ScriptedCoordinator
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime.scripted import Script, simulated

TOLERANT: dict[str, Any] = {"tolerable_checkpoint_failures": 9, "checkpoint_timeout_s": 7.0}
FINISHES: list[Callable[[Future[bytes]], object]] = [
    lambda result: result.set_result(b"late"),
    lambda result: result.set_exception(OSError("no space")),
    lambda result: result.cancel(),
]
WORDS: list[list[Any]] = [
    ["initialize"],
    ["run"],
    ["confirm", 0, 1],
    ["event", 0, "hello"],
    ["registered_event", 0, 1, "hello"],
    ["acknowledge", 2, True, {}, []],
    ["acknowledge", 1, True, {}, []],
    ["decline", 2, "no"],
    ["ended"],
    ["failed", "I am still here", False],
    ["finished"],
]


@contextmanager
def nothing_comes_of_it(job: SimulatedJob, script: Script) -> Iterator[None]:
    """Return what is posted meanwhile is processed, and all is as before."""
    job.drain()

    def everything() -> Any:
        messages = {i: list(p.to_task) for i, p in job.transport.processes.items()}
        return job.machines.values(), list(script.calls), messages, job.steps()

    before = everything()
    yield
    job.drain()
    assert everything() == before


def asked_twice(script: Script, **settings: Any) -> SimulatedJob:
    """A job whose first checkpoint has expired, and whose coordinator is asked for the second."""
    job = simulated(script, **TOLERANT, **settings)
    job.settle()
    script.is_completing = False
    job.master.request_checkpoint()
    job.flow()
    job.wait(7.0)
    job.flow()
    job.master.request_checkpoint()
    job.flow()
    assert job.machines.checkpoint.number == 2
    assert job.machines.checkpoint.state == "triggering"
    return job


def taken_over(script: Script, **settings: Any) -> SimulatedJob:
    """A job in which process 2 speaks for a subtask, with an event on its way, at checkpoint 2."""
    job = asked_twice(script, **settings)
    job.transport.kill(1)
    job.settle(lambda: job.machines.attempt[0].is_running())
    job.master.request_checkpoint()
    job.drain()
    script.coordinator.send(0, "a")
    job.drain()
    assert job.machines.attempt[0].identity == 2
    assert job.machines.gateway[0, 0].sent == 1
    return job


@pytest.mark.parametrize("words", WORDS, ids=lambda words: f"{words[0]} {words[1:2]}")
def test_nothing_comes_of_what_a_process_says_after_another_has_taken_its_place(
    words: list[Any],
) -> None:
    script = Script()
    job = taken_over(script)
    with nothing_comes_of_it(job, script):
        job.transport.inbox.received(0, 1, [words])


@pytest.mark.parametrize("words", WORDS, ids=lambda words: f"{words[0]} {words[1:2]}")
def test_nothing_comes_of_what_a_process_says_after_the_job(words: list[Any]) -> None:
    script = Script()
    job = taken_over(script)
    job.master.cancel()
    job.settle(lambda: job.is_over)
    with nothing_comes_of_it(job, script):
        job.transport.inbox.received(0, 2, [words])
        job.transport.inbox.received(0, 1, [words])


def test_nothing_comes_of_the_end_of_a_process_whose_place_is_taken() -> None:
    script = Script()
    job = taken_over(script)
    with nothing_comes_of_it(job, script):
        job.transport.inbox.lost(0, 1, "its connection is gone, too")


def test_nothing_comes_of_a_confirmation_that_is_repeated_or_overtaken() -> None:
    script = Script()
    job = simulated(script)
    job.settle()
    for event in ("a", "b"):
        script.coordinator.send(0, event)
        job.settle()
    on_wire = script.coordinator.send(0, "c")
    job.drain()
    assert job.machines.gateway[0, 0].confirmed == 2
    with nothing_comes_of_it(job, script):
        for number in (1, 2, 1):
            job.transport.inbox.received(0, 1, [["confirm", 0, number]])
    job.settle()
    on_wire.result(timeout_s=0)


@pytest.mark.parametrize("finish", FINISHES, ids=["succeeds", "fails", "is canceled"])
def test_nothing_comes_of_the_future_of_a_checkpoint_that_is_over(
    finish: Callable[[Future[bytes]], object],
) -> None:
    script = Script()
    job = asked_twice(script)
    with nothing_comes_of_it(job, script):
        finish(script.coordinator.results[1])


@pytest.mark.parametrize("finish", FINISHES, ids=["succeeds", "fails", "is canceled"])
def test_nothing_comes_of_the_future_of_an_earlier_checkpoint_while_the_next_waits_for_events(
    finish: Callable[[Future[bytes]], object],
) -> None:
    script = Script()
    job = asked_twice(script)
    script.coordinator.send(0, "a")
    script.coordinator.results[2].set_result(b"state")
    job.drain()
    assert job.machines.snapshot[0].state == "confirming"
    with nothing_comes_of_it(job, script):
        finish(script.coordinator.results[1])


@pytest.mark.parametrize("finish", FINISHES, ids=["succeeds", "fails", "is canceled"])
def test_nothing_comes_of_a_future_when_no_checkpoint_is_under_way(
    finish: Callable[[Future[bytes]], object],
) -> None:
    script = Script()
    job = asked_twice(script)
    job.wait(7.0)
    job.flow()
    assert job.machines.checkpoint.state == "aborted"
    with nothing_comes_of_it(job, script):
        finish(script.coordinator.results[2])


def timers_of_the_past(script: Script) -> tuple[SimulatedJob, list[Timer]]:
    """A job in which something of every kind has failed, and the timers that were set for that."""
    job = asked_twice(script)
    timers = list(job.master.queue.timers())
    faults: list[Callable[[], None]] = [lambda: job.transport.kill(1), script_fails(script)]
    for fault in faults:
        fault()
        job.flow()
        timers += job.master.queue.timers()
        job.settle(lambda: job.machines.attempt[0].is_running())
    job.wait(700.0)
    script.is_completing = True
    job.settle()
    return job, timers


def script_fails(script: Script) -> Callable[[], None]:
    def fail() -> None:
        script.raise_at("op.handle_event_from_operator", KeyError("split 7"))
        script.coordinator.send(0, "hello")

    return fail


def fire(job: SimulatedJob, timers: list[Timer]) -> None:
    for timer in timers:
        job.master.queue.post(timer.trigger, *timer.arguments)


def test_nothing_comes_of_a_timer_whose_time_is_over() -> None:
    script = Script()
    job, timers = timers_of_the_past(script)
    names = {getattr(timer.trigger, "__name__", "") for timer in timers}
    assert {"_expire", "expire_start", "restart", "backed_off"} <= names
    with nothing_comes_of_it(job, script):
        fire(job, timers)


@pytest.mark.parametrize("what", ["the attempt", "the job"])
def test_nothing_comes_of_an_old_timer_while_something_new_is_down(what: str) -> None:
    script = Script()
    job, timers = timers_of_the_past(script)
    if what == "the attempt":
        job.transport.kill(max(job.transport.processes))
    else:
        script_fails(script)()
    job.flow()
    assert (job.machines.lifecycle.state == "restarting") is (what == "the job")
    assert not job.machines.attempt[0].is_running()
    with nothing_comes_of_it(job, script):
        fire(job, timers)


def test_nothing_comes_of_an_old_timer_while_a_checkpoint_is_under_way() -> None:
    script = Script()
    job, timers = timers_of_the_past(script)
    script.is_completing = False
    job.master.request_checkpoint()
    job.flow()
    assert job.machines.checkpoint.state == "triggering"
    with nothing_comes_of_it(job, script):
        fire(job, timers)


def test_nothing_comes_of_timers_after_the_job() -> None:
    script = Script()
    job, timers = timers_of_the_past(script)
    job.master.stop()
    job.settle(lambda: job.is_over)
    assert job.result.state == "finished"
    with nothing_comes_of_it(job, script):
        fire(job, timers)


class Slow(ScriptedCoordinator):
    """Handles events elsewhere; `handled` holds the futures of that."""

    handled: list[Future[Any]]

    def start(self) -> None:
        super().start()
        self.handled = []

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> Future[Any]:
        super().handle_event_from_operator(subtask, attempt, event)
        self.handled.append(Future())
        return self.handled[-1]


@pytest.mark.parametrize("is_over", [False, True])
def test_nothing_comes_of_the_handling_of_an_event_whose_attempt_is_gone(is_over: bool) -> None:
    script = Script()
    job = simulated(script, coordinator=Slow)
    job.settle()
    job.transport.inbox.received(0, 1, [["registered_event", 0, 1, "hello"]])
    job.drain()
    coordinator = job.master.coordinators[0]
    assert isinstance(coordinator, Slow)
    (handled,) = coordinator.handled
    job.transport.kill(1)
    if is_over:
        job.master.cancel()
    job.settle(lambda: job.is_over if is_over else job.is_steady())
    with nothing_comes_of_it(job, script):
        handled.set_result(None)
