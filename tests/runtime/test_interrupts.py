"""An interrupt of the thread that waits stops a job with a last checkpoint; a second cancels it."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import Any

import pytest

from epochgate.runtime.api.reports import JobResult
from epochgate.runtime.testing.simulation import SimulatedJob
from epochgate.spark.interrupts import (
    STOPPING,
    end_interrupted,
    interruptible,
)
from tests.runtime.scripted import Script, simulated


@dataclass
class Waiting:
    """The handle of a simulated job, for which `interrupts` of its waits are cut short."""

    job: SimulatedJob
    interrupts: int = 0
    asked: list[str] = field(default_factory=list)

    def stop(self) -> None:
        self.asked.append("stop")
        self.job.master.stop()

    def cancel(self, reason: str = "") -> None:
        self.asked.append(reason)
        self.job.master.cancel(reason)

    def joined(self, timeout_s: float | None = None) -> JobResult:
        if self.interrupts:
            self.interrupts -= 1
            raise KeyboardInterrupt
        self.job.settle(lambda: self.job.is_over)
        return self.job.master.result.result(0)


def running(**settings: Any) -> SimulatedJob:
    job = simulated(Script(), **settings)
    job.settle()
    return job


def test_an_interrupt_takes_a_last_checkpoint(caplog: pytest.LogCaptureFixture) -> None:
    waiting = Waiting(running(checkpoint_interval_s=60.0))
    error = end_interrupted(waiting)
    assert type(error) is KeyboardInterrupt
    result = waiting.job.master.result.result(0)
    assert (result.state, result.last_checkpoint_id) == ("finished", 1)
    assert (
        str(error) == "the job has stopped after checkpoint 1; start it again to go on from there"
    )
    assert (waiting.asked, caplog.messages) == (["stop"], [STOPPING])


def test_a_second_interrupt_cancels() -> None:
    waiting = Waiting(running(checkpoint_interval_s=60.0), interrupts=1)
    error = end_interrupted(waiting)
    assert str(error) == (
        "the job was canceled: it was interrupted twice; its last checkpoint is none; start it "
        "again to go on from the beginning"
    )


def test_a_third_interrupt_waits_for_nothing() -> None:
    error = end_interrupted(Waiting(running(), interrupts=2))
    assert "may still hold its checkpoints" in str(error)


def test_a_job_that_takes_no_checkpoints_is_canceled() -> None:
    waiting = Waiting(running(concurrent_attempts_max=2, checkpoint_interval_s=None))
    error = end_interrupted(waiting)
    assert waiting.asked[0] == "stop"
    assert "was canceled: it was interrupted, and takes no checkpoints" in str(error)


def test_a_job_that_fails_meanwhile_says_why() -> None:
    waiting = Waiting(running())
    waiting.job.master.fail("the disk is full")
    waiting.job.flow()
    assert "the job has failed: the disk is full" in str(end_interrupted(waiting))


def test_the_handler_of_pyspark_is_replaced_while_a_job_is_waited_for() -> None:
    def cancels_all(number: int, frame: Any) -> None:
        raise AssertionError("all jobs of Spark were canceled")

    cancels_all.__module__ = "pyspark.core.context"
    before = signal.signal(signal.SIGINT, cancels_all)
    waiting = Waiting(running(checkpoint_interval_s=60.0))
    try:
        with (
            pytest.raises(KeyboardInterrupt, match="has stopped after checkpoint 1"),
            interruptible(waiting),
        ):
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is cancels_all
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with interruptible(waiting):
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
