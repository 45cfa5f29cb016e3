"""The time for which a subtask is away when its operator raises, and all of them when the job is
taken back.

A job of four subtasks on a local cluster of two executors, without a restart delay, so that what is
measured is the exchange between driver and tasks, and what Spark adds to it. The coordinator
greets each attempt that is ready; measured from its telling an operator to raise, or failing the
job, until the successors have answered the greeting: they have restored their state and handled
an event.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from epochgate.benchmarks.figures import spread
from epochgate.benchmarks.watching import OPERATOR, WAIT_S, Watcher, WatcherProvider
from epochgate.runtime import (
    CoordinatorContext,
    JobConfiguration,
    Operator,
    Program,
    SubtaskGateway,
    Work,
)
from epochgate.runtime.api.restart_strategies import FailureRate
from epochgate.runtime.store import DirectoryCheckpointStore

PARALLELISM = 4
CHECKPOINT_EVERY_S = 0.5
GREETING, ORDER = "greeting", "raise"


class Ordered(Exception):
    """The operator was told to raise."""


class AnswerOperator(Operator):
    """Answers, or raises when it is told to."""

    def handle_event(self, event: Any) -> None:
        """Answer, or raise."""
        if event == ORDER:
            raise Ordered
        self.context.send_to_coordinator(event)

    def snapshot(self, checkpoint_id: int) -> bytes:
        """Return a state of one byte."""
        return b"1"


class AnswerProgram(Program):
    """Does nothing between events."""

    def __init__(self) -> None:
        self._operator = AnswerOperator()

    @property
    def operators(self) -> Mapping[str, Operator]:
        """The one operator."""
        return {OPERATOR: self._operator}

    def work(self) -> Work:
        """Wait for events."""
        return Work.IDLE


def answer_program(subtask: int) -> Program:
    """Make the program of one subtask."""
    return AnswerProgram()


class Greeter(Watcher):
    """Greets each attempt, and notes when it has answered."""

    def __init__(self, context: CoordinatorContext) -> None:
        super().__init__(context)
        self._gateways: dict[int, SubtaskGateway] = {}

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        """Greet it."""
        self._gateways[subtask] = gateway
        gateway.send_event(GREETING)

    def raise_in(self, subtask: int) -> float:
        """Return the seconds until the successor of an operator that raises has answered."""
        begun_s = time.perf_counter()
        self._gateways[subtask].send_event(ORDER)
        return self.wait_for([subtask], begun_s) - begun_s

    def fail_all(self, subtask: int) -> float:
        """Return the seconds until all successors have answered after the job was taken back."""
        begun_s = time.perf_counter()
        self.context.fail_job("the benchmark takes the job back")
        return self.wait_for(list(range(PARALLELISM)), begun_s) - begun_s


def rows(spark: Any, failures: int, note: Callable[[str], None]) -> list[tuple[str, str]]:
    """Let operators raise and the job fail in turn; the rows of the table, in milliseconds."""
    from epochgate.spark import run_job

    provider = WatcherProvider(Greeter)
    configuration = JobConfiguration(
        "bench-failover",
        PARALLELISM,
        (provider,),
        checkpoint_interval_s=CHECKPOINT_EVERY_S,
        restart_strategy=FailureRate(failures_max=1000, interval_s=60.0, delay_s=0.0),
    )
    raised_ms: list[float] = []
    failed_ms: list[float] = []
    with (
        tempfile.TemporaryDirectory(prefix="epochgate-bench-") as folder,
        run_job(
            spark,
            configuration,
            answer_program,
            store=DirectoryCheckpointStore(Path(folder), job_id="bench-failover"),
        ) as job,
    ):
        provider.watcher.wait_for(list(range(PARALLELISM)), 0.0)
        for done in range(failures):
            for kind, fail, samples in (
                ("one operator raises", provider.watcher.raise_in, raised_ms),
                ("the job is taken back", provider.watcher.fail_all, failed_ms),
            ):
                # A process in which two attempts fail without a completed checkpoint between them
                # is replaced, and that is not what is measured.
                job.request_checkpoint().result(WAIT_S)
                note(f"failure {done + 1} of {failures}: {kind}")
                samples.append(1000 * fail(done % PARALLELISM))
        job.stop()
        job.wait(WAIT_S)
    return [
        ("from an operator's raising to its successor's first event, ms", spread(raised_ms)),
        ("from failing the job to the first events of all 4 subtasks, ms", spread(failed_ms)),
    ]
