"""A job without end whose subtasks hand over one committable with each checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from epochgate.runtime import (
    CommitTopology,
    JobConfiguration,
    JobListener,
    Operator,
    OperatorContext,
    Program,
    Sink,
    SinkOperator,
    SinkStart,
    SinkWriter,
    Work,
)
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime.committing.sinks import TargetSink


class NumberedWriter(SinkWriter):
    """The committable of subtask 1 in checkpoint 2 is "2-1"."""

    def __init__(self, subtask: int) -> None:
        self._subtask = subtask

    def write(self, batch: Any) -> None:
        raise AssertionError("nothing is written")

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        return [f"{checkpoint_id}-{self._subtask}"]


class SteadySink(TargetSink):
    """Commits in the tasks; each checkpoint has one committable of each subtask."""

    def create_writer(self, context: OperatorContext, state: bytes | None) -> SinkWriter:
        return NumberedWriter(context.subtask)


class Steady(Program):
    """Runs until the job is stopped."""

    def __init__(self, sink: Sink) -> None:
        self._sink = SinkOperator(sink)

    @property
    def operators(self) -> dict[str, Operator]:
        return {"sink": self._sink}

    def work(self) -> Work:
        return Work.IDLE


def steady(sink: Sink, listeners: Sequence[JobListener] = (), **settings: Any) -> SimulatedJob:
    """Two subtasks, which run; checkpoints are taken on request."""
    committers = [sink.create_committer(SinkStart("job", "run"))]
    limits = {"checkpoint_interval_s": 3600.0, "commit_retry_delay_s": 60.0, **settings}

    def configure(start: int) -> JobConfiguration:
        return JobConfiguration("job", 2, topology=CommitTopology.of(sink, committers[0]), **limits)

    job = SimulatedJob(
        configure, lambda _: Steady(sink), committer=lambda: committers[0], listeners=listeners
    )
    job.settle()
    return job


def take(job: SimulatedJob, checkpoints: int = 1) -> None:
    """Take checkpoints, and let everything happen that takes no time."""
    for _ in range(checkpoints):
        job.master.request_checkpoint()
        job.flow()
