"""A job of one subtask that counts, for tests of sinks, and what can happen to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from epochgate.runtime import (
    CoordinatorProvider,
    JobConfiguration,
    Operator,
    OperatorContext,
    Program,
    SinkOperator,
    Work,
)
from epochgate.runtime.testing.simulation import SimulatedJob

DISTURBANCES = ("nothing", "declined", "killed", "driver")


class Counting(Operator):
    next = 0

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        self.next = int.from_bytes(state or b"", "big")

    def snapshot(self, checkpoint_id: int) -> bytes:
        return self.next.to_bytes(2, "big")


class CountingProgram(Program):
    """Writes the numbers from 0 to 19 to every sink, each as `record` makes it."""

    def __init__(self, *, record: Callable[[int], Any] = int, **sinks: SinkOperator) -> None:
        self.source, self.record, self.sinks = Counting(), record, sinks

    @property
    def operators(self) -> dict[str, Operator]:
        return {"source": self.source, **self.sinks}

    def work(self) -> Work:
        if self.source.next == 20:
            return Work.ENDED
        record = self.record(self.source.next)
        if not all(sink.may_write(record) for sink in self.sinks.values()):
            return Work.IDLE
        for sink in self.sinks.values():
            sink.write(record)
        self.source.next += 1
        return Work.DONE


def configuration(*providers: CoordinatorProvider) -> JobConfiguration:
    return JobConfiguration("job", 1, providers, checkpoint_interval_s=1.0)


def disturbed(job: SimulatedJob, disturb: str) -> None:
    """Write twelve numbers in four checkpoints, each of which is disturbed in this way."""
    for _ in range(4):
        job.flow(held=("work",))
        for _ in range(3):
            job.step(("work", next(iter(job.transport.processes))))
        if disturb == "declined":
            job.faults.doom("acknowledge", "declined")
        job.master.request_checkpoint()
        job.flow(held=("work",))
        if disturb == "killed":
            job.transport.kill(next(iter(job.transport.processes)))
            job.flow(held=("work",))
            job.advance()
        if disturb == "driver":
            job.crash_driver()


def assert_disturbed(job: SimulatedJob, disturb: str) -> None:
    report = job.result.report
    assert (len(report.completed()) < len(report.checkpoints)) == (disturb == "declined")
    assert (report.regional_restarts > 0) == (disturb == "killed")
    assert (job.starts > 1) == (disturb == "driver")


def run_to_the_end(job: SimulatedJob) -> None:
    for _ in range(50):
        if job.is_over:
            return
        job.flow()
        job.wait(1.0)
    raise AssertionError(job.account())
