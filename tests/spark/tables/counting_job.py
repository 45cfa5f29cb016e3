"""Whole simulated jobs into one table: processes and drivers die, and a driver's calls fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from epochgate.runtime import Committer, SinkOperator, SinkStart
from epochgate.runtime.testing.faulty_filesystem import SimulatedCrash
from epochgate.runtime.testing.simulation import SimulatedJob
from epochgate.spark.counting_sink import CountingSink
from tests.runtime.counting import CountingProgram, configuration


def batch(number: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"x": [number], "name": [f"text {number}"]})


class TableJob:
    """A job of one subtask that writes the numbers from 0 to 19, and is started again at will."""

    def __init__(self, sink: CountingSink) -> None:
        self.sink = sink
        self.committers: list[Committer] = []
        self.restored: int | None = None
        self.job: SimulatedJob
        self.job = SimulatedJob(
            self._configuration, self._program, committer=lambda: self.committers[-1]
        )

    def _configuration(self, start: int) -> Any:
        for dead in self.committers[-1:]:
            dead.close()  # as the end of its process does
        if start:
            self.restored = max(self.job.shelf.checkpoints, default=None)
        run = SinkStart("job", f"run-{start}", self.restored)
        committer = self.sink.create_committer(run)
        self.committers.append(committer)
        provider = self.sink.create_coordinator("sink", committer)
        return configuration(*([] if provider is None else [provider]))

    def _program(self, subtask: int) -> CountingProgram:
        return CountingProgram(sink=SinkOperator(self.sink), record=batch)

    def disturbed(self, disturb: str) -> None:
        """Write some numbers in four checkpoints, each of which is disturbed in this way."""
        for _ in range(4):
            for _ in range(4):
                self.job.flow(held=("work",))
                self.work()
            if disturb == "declined":
                self.job.faults.doom("acknowledge", "declined")
            self.job.master.request_checkpoint()
            self.job.flow(held=("work",))
            if disturb == "killed":
                self.job.transport.kill(next(iter(self.job.transport.processes)))
                self.job.flow(held=("work",))
                self.job.advance()
            if disturb == "driver":
                self.job.crash_driver()

    def work(self) -> None:
        """Let the newest process work."""
        for identity in list(self.job.transport.processes)[-1:]:
            self.job.step(("work", identity))

    def run(self, each: Callable[[], None] = lambda: None) -> None:
        """Go on until the job is over, with another driver after each crash."""
        for _ in range(400):
            try:
                if self.job.is_over:
                    return
                each()
                self.job.flow(held=("work",))
                self.work()
                self.job.wait(0.3)
            except SimulatedCrash:
                self.start_again()
        raise AssertionError(self.job.account())

    def start_again(self) -> None:
        """Start another driver, and again where it dies while it starts."""
        while True:
            try:
                return self.job.crash_driver()
            except SimulatedCrash:
                continue
