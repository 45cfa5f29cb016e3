"""Whole simulated jobs into one table: processes and drivers die, and a driver's calls fail."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa

from epochgate.runtime import Committer, CommitTopology, SinkOperator, SinkStart
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
        self.operators: list[SinkOperator] = []
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
        made = configuration(*([] if provider is None else [provider]))
        return replace(made, topology=CommitTopology.of(self.sink, committer))

    def _program(self, subtask: int) -> CountingProgram:
        self.operators.append(SinkOperator(self.sink))
        return CountingProgram(sink=self.operators[-1], record=batch)

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
                    return self._bury()
                each()
                self.job.flow(held=("work",))
                self.work()
                self.job.wait(0.3)
            except SimulatedCrash:
                self.start_again()
        raise AssertionError(self.job.account())

    def _bury(self) -> None:
        """Close what dead processes had open, as their ends did."""
        for operator in self.operators:
            operator.close()
        for committer in self.committers:
            committer.close()

    def start_again(self) -> None:
        """Start another driver, and again where it dies while it starts."""
        while True:
            try:
                return self.job.crash_driver()
            except SimulatedCrash:
                continue

    def killed(self, chance: random.Random, kills: int) -> int:
        """Go on to the end; processes and drivers die, and checkpoints fail. How many did."""
        done = 0

        def kill() -> None:
            nonlocal done
            if done < kills and chance.random() < 0.7:
                done += 1
                kind = chance.choice(("worker", "worker", "driver", "declined"))
                if kind == "driver":
                    self.start_again()
                elif kind == "declined":
                    self.job.faults.doom("acknowledge", "declined")
                elif self.job.transport.processes:
                    self.job.transport.kill(chance.choice(list(self.job.transport.processes)))

        self.run(kill)
        return done
