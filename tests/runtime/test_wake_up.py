"""A program that waits for time and not for events is called when the time has come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgpack
import pytest

from epochgate.fsm import VirtualClock
from epochgate.runtime import JobConfiguration, Operator, OperatorContext, Program, Work
from epochgate.runtime.api.operator import FatalTaskError, no_wake_up
from epochgate.runtime.shell.wake_up import WakeUp
from epochgate.runtime.shell.worker import Worker
from epochgate.runtime.testing.simulation import SimulatedJob

EVERY_S = 0.5


class Ticking(Program, Operator):
    """Ticks every half second, `last` times, on the clock of its context."""

    def __init__(self, last: int = 1000) -> None:
        self.last, self.ticks, self.due_s = last, 0, 0.0

    @property
    def operators(self) -> Mapping[str, Operator]:
        return {"ticking": self}

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        self.ticks = 0 if state is None else msgpack.unpackb(state)
        self.due_s = context.now_s() + EVERY_S

    def work(self) -> Work:
        if self.ticks == self.last:
            return Work.ENDED
        if self.context.now_s() < self.due_s:
            self.context.wake_after(self.due_s - self.context.now_s())
            return Work.IDLE
        self.ticks += 1
        self.due_s += EVERY_S
        return Work.DONE

    def snapshot(self, checkpoint_id: int) -> bytes:
        return bytes(msgpack.packb(self.ticks))


def ticking_job(last: int = 1000, interval_s: float | None = None) -> SimulatedJob:
    job = SimulatedJob(
        lambda start: JobConfiguration("ticks", 1, checkpoint_interval_s=interval_s),
        lambda subtask: Ticking(last),
    )
    job.settle()
    return job


def ticks_in_checkpoint(job: SimulatedJob) -> int:
    wanted = job.master.request_checkpoint()
    job.flow()
    found = job.store.load(wanted.result(timeout=0))
    return int(msgpack.unpackb(found.subtasks[0]["ticking"]))


def test_a_task_that_waits_for_time_works_when_it_has_passed() -> None:
    job = ticking_job()
    assert ticks_in_checkpoint(job) == 0
    job.wait(0.49)
    assert ticks_in_checkpoint(job) == 0
    job.wait(0.01)
    assert ticks_in_checkpoint(job) == 1
    job.wait(10.0)
    assert ticks_in_checkpoint(job) == 21


def test_a_barrier_does_not_wait_for_a_wake_up() -> None:
    job = ticking_job()
    at_s = job.clock.now_s()
    assert ticks_in_checkpoint(job) == 0
    assert job.clock.now_s() == at_s


def test_a_job_comes_to_its_end_by_wake_ups_alone() -> None:
    job = ticking_job(last=4)
    job.settle(until=lambda: job.is_over)
    assert job.result.state == "finished"
    assert job.clock.now_s() == 4 * EVERY_S


def test_an_attempt_after_a_failure_asks_for_wake_ups_of_its_own() -> None:
    job = ticking_job()
    job.wait(1.2)
    assert ticks_in_checkpoint(job) == 2
    job.wait(0.4)
    job.transport.kill(1)
    assert job.transport.next_due_s() is None
    job.settle()
    assert ticks_in_checkpoint(job) == 2
    job.wait(EVERY_S)
    assert ticks_in_checkpoint(job) == 3


def worker(program: Program, clock: VirtualClock) -> Worker:
    sent: list[Any] = []
    one = Worker(
        program,
        subtask=0,
        parallelism=1,
        run_id="run",
        coordinators=[],
        send=sent.append,
        clock=clock,
    )
    one.handle([["restore", 0, 0, None]])
    return one


def test_a_task_whose_input_has_ended_is_woken_no_more() -> None:
    clock = VirtualClock()
    one = worker(Ticking(last=1), clock)
    assert one.work() is Work.IDLE
    assert one.wake_up.in_s() == EVERY_S
    clock.advance(EVERY_S)
    assert [one.work(), one.work()] == [Work.DONE, Work.ENDED]
    assert one.wake_up.in_s() is None


def test_the_earliest_of_several_wake_ups_counts_until_work_was_done_at_it() -> None:
    clock = VirtualClock()
    wake_up = WakeUp(clock)
    for seconds in (3.0, 1.0, 2.0):
        wake_up.after(seconds)
    assert wake_up.in_s() == 1.0
    wake_up.pass_by()
    assert wake_up.in_s() == 1.0
    clock.advance(5.0)
    assert wake_up.in_s() == 0.0
    wake_up.pass_by()
    assert wake_up.in_s() is None


@pytest.mark.parametrize("seconds", [-0.1, float("nan"), float("inf")])
def test_a_wake_up_at_no_time_to_come_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="names no time to come"):
        WakeUp(VirtualClock()).after(seconds)


def test_a_context_without_timers_says_so() -> None:
    with pytest.raises(FatalTaskError, match=r"no wake-up is given here after 1\.0 s"):
        no_wake_up(1.0)
