"""A job whose collected rows show every fault: each attempt counts on from its checkpoint, and
marks its rows with a chain over all rows that lead to it.
"""

from __future__ import annotations

import zlib
from typing import Any

import msgpack

from epochgate.runtime import JobConfiguration, Operator, OperatorContext, Program, Work
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.collect import (
    CollectedRows,
    CollectSinkOperator,
    CollectSinkProvider,
    collect as collect_rows,
)
from epochgate.runtime.testing.simulation import SimulatedJob


def chained(chain: int, number: int, attempt: int) -> int:
    return zlib.crc32(f"{chain} {number} {attempt}".encode())


def follows(row: list[int], chain: int) -> bool:
    """Return whether this row was made by who had made `chain` before."""
    return row[3] == chained(chain, row[1], row[2])


class Counter(Operator):
    """State: the last number and the chain. What an attempt that was lost has made is made again,
    with another chain.
    """

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        self.number, self.chain = 0, 0
        if state is not None:
            self.number, self.chain = msgpack.unpackb(state)

    def next_row(self) -> list[int]:
        self.number += 1
        self.chain = chained(self.chain, self.number, self.context.attempt)
        return [self.context.subtask, self.number, self.context.attempt, self.chain]

    def snapshot(self, checkpoint_id: int) -> bytes:
        return bytes(msgpack.packb([self.number, self.chain]))


class CountingProgram(Program):
    def __init__(self, last: int, rows_at_once: int = 1, **buffer: int) -> None:
        self.counter, self.results = Counter(), CollectSinkOperator(**buffer)
        self.last, self.rows_at_once = last, rows_at_once

    @property
    def operators(self) -> dict[str, Operator]:
        return {"counter": self.counter, "results": self.results}

    def work(self) -> Work:
        if self.counter.number == self.last:
            return self.results.end()
        if not self.results.has_room(self.rows_at_once):
            return Work.IDLE
        for _ in range(min(self.rows_at_once, self.last - self.counter.number)):
            self.results.collect(self.counter.next_row())
        return Work.DONE


class CountingJob(SimulatedJob):
    """With `seen`, what the client has got so far."""

    def __init__(
        self,
        last: int,
        *,
        subtasks: int = 2,
        sink: dict[str, Any] | None = None,
        program: dict[str, int] | None = None,
        lasts: dict[int, int] | None = None,
        **settings: Any,
    ) -> None:
        self.lasts, self.subtasks = dict.fromkeys(range(subtasks), last) | (lasts or {}), subtasks
        self.window = sink or {}
        self.seen: list[list[int]] = []
        self.programs: list[CountingProgram] = []

        def configure(start: int) -> JobConfiguration:
            restarts = FixedDelay(1000, 0.1)
            chosen = {"checkpoint_timeout_s": 3.0, **settings}
            providers = (CollectSinkProvider(**(sink or {})),)
            return JobConfiguration(
                "counting", subtasks, providers, restart_strategy=restarts, **chosen
            )

        def make(subtask: int) -> CountingProgram:
            self.programs.append(CountingProgram(self.lasts[subtask], **(program or {})))
            return self.programs[-1]

        super().__init__(configure, make)
        self.rows: CollectedRows = collect_rows(self.master)

    def take(self) -> None:
        for subtask in self.rows._subtasks.values():
            sizes_bytes = [len(row) for row in subtask.rows]
            assert len(sizes_bytes) <= self.window.get("window_rows", 1000)
            assert (
                sum(sizes_bytes) <= self.window.get("window_bytes", 10**6) or len(sizes_bytes) < 2
            )
        self.seen += self.rows.take()

    def take_one(self) -> None:
        if self.rows.has_ready:
            self.seen.append(next(self.rows))

    def finish(self) -> None:
        """Without further faults, to the end and to the last row."""

        def is_over() -> bool:
            if not self.is_over:
                self.take()
            return self.is_over

        self.take()
        self.drain()
        self.settle(is_over, rounds_max=20_000)
        assert self.result.state == "finished", self.result.reason
        self.take()
        broken = [f.reason for f in self.master.report.failures if "InvariantBroken" in f.reason]
        assert not broken, broken

    def start_again(self) -> None:
        """The driver dies, or has ended; another one begins with what is stored."""
        self.crash_driver()
        self.rows = collect_rows(self.master)

    def problems(self) -> list[str]:
        """Return what is not exactly once, not in order, or made by an attempt that was thrown
        away.
        """
        problems = []
        for subtask in range(self.subtasks):
            chain = 0
            rows = [row for row in self.seen if row[0] == subtask]
            for expected, row in enumerate(rows, 1):
                if row[1] != expected or not follows(row, chain):
                    problems.append(f"{row} instead of number {expected} after {chain}")
                    break
                chain = row[3]
        return problems

    def complete_problems(self) -> list[str]:
        """Those, and what is missing at the end."""
        seen = self.numbers()
        missing = {s: set(range(1, last + 1)) - seen[s] for s, last in self.lasts.items()}
        return self.problems() + [f"subtask {s}: {m} missing" for s, m in missing.items() if m]

    def numbers(self) -> list[set[int]]:
        """Return what was seen of each subtask, whatever the order."""
        return [{row[1] for row in self.seen if row[0] == s} for s in range(self.subtasks)]
