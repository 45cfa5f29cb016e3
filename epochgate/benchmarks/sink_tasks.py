"""A checkpoint and its commit where the tasks commit first, beside the same on the driver alone.

The driver is that of the benchmark of sinks. Each of its subtasks has a process with the sink's
operator and committer, and gets and sends what the job's messages hold, packed as on the wire.
Decides that samples of both are taken in turn.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import shutil
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from epochgate.benchmarks.figures import number, percentile
from epochgate.benchmarks.silent import SilentTransport
from epochgate.benchmarks.sink_job import (
    NOT_MEASURED,
    RUN_ID,
    SUBTASKS,
    Cell,
    SinkJob,
)
from epochgate.benchmarks.sink_places import ICEBERG, Kinds, Place
from epochgate.runtime.api.operator import OperatorContext
from epochgate.runtime.api.packing import packed, unpacked
from epochgate.runtime.api.sink import Sink
from epochgate.runtime.api.sink_operator import SinkOperator
from epochgate.runtime.api.transport import Message
from epochgate.runtime.shell.part_commits import commit_part

BY_THE_DRIVER = frozenset({ICEBERG})
"""Kinds of sinks that cannot commit in the tasks."""
TURNS_LEAST, TURNS_MOST = 2, 7
SPENT_ON_A_CELL_S = 40.0
"""Once the least number of turns is there, what is staged for them included."""


class TasksTransport(SilentTransport):
    """Carries the requests to commit to one process for each subtask, and drops all else."""

    def __init__(self, sink: Sink) -> None:
        super().__init__()
        spawning = multiprocessing.get_context("spawn")
        self.asked: dict[Connection, tuple[int, int]] = {}
        self._ends: list[Connection] = []
        self._processes = []
        for subtask in range(SUBTASKS):
            here, there = spawning.Pipe()
            process = spawning.Process(target=_serve, args=(there, sink, subtask), daemon=True)
            process.start()
            there.close()
            self._ends.append(here)
            self._processes.append(process)
        for end in self._ends:
            end.recv_bytes()

    def send(self, subtask: int, identity: int, message: Message) -> None:
        """Ask the process of the subtask."""
        if message[0] == "commit":
            end = self._ends[subtask]
            end.send_bytes(packed(message))
            self.asked[end] = (subtask, identity)

    def answers(self) -> list[tuple[int, int, Message]]:
        """Wait until a process has answered: subtask, identity and message of each answer."""
        found = []
        for end in wait(list(self.asked)):
            assert isinstance(end, Connection)
            message = unpacked(end.recv_bytes())
            found.append((*self.asked.pop(end), message))
        return found

    def close(self) -> None:
        """End the processes."""
        for end, process in zip(self._ends, self._processes, strict=True):
            end.close()
            process.join()


def _serve(end: Connection, sink: Sink, subtask: int) -> None:
    operator = SinkOperator(sink)
    context = OperatorContext("sink", subtask, 1, SUBTASKS, RUN_ID, lambda value: None)
    operator.open(context, None)
    end.send_bytes(b"up")
    while True:
        try:
            _, *request = unpacked(end.recv_bytes())
        except EOFError:
            operator.close()
            return
        end.send_bytes(packed(commit_part([operator], *request)))


class TasksSinkJob(SinkJob):
    """A job whose tasks commit first."""

    def __init__(self, folder: Path, place: Place) -> None:
        self._tasks = TasksTransport(place.sink)
        super().__init__(folder, place, transport=self._tasks)

    def work(self) -> None:
        """Do all work that waits, here and in the tasks, and what follows from it."""
        super().work()
        while self._tasks.asked:
            for subtask, identity, message in self._tasks.answers():
                self.inbox.received(subtask, identity, [message])
            super().work()

    def close(self) -> None:
        """End the tasks, too."""
        super().close()
        self._tasks.close()


def in_turn(folder: Path, make: Callable[[Path], Place], committables: int) -> tuple[Cell, Cell]:
    """Samples of a commit by the driver, and of one by the tasks."""
    jobs: list[SinkJob] = []
    for name in ("driver", "tasks"):
        place_folder = folder / f"{name}-{committables}"
        place_folder.mkdir(parents=True)
        place = make(place_folder)
        if name == "driver":
            jobs.append(SinkJob(place_folder, place))
        else:
            place.sink = _committing_in_tasks(place.sink)
            jobs.append(TasksSinkJob(place_folder, place))
    taken: list[list[float]] = [[], []]
    begun_s = time.perf_counter()
    try:
        for turn in range(TURNS_MOST):
            if turn >= TURNS_LEAST and time.perf_counter() - begun_s > SPENT_ON_A_CELL_S:
                break
            for job, samples in zip(jobs, taken, strict=True):
                samples.append(job.sample(committables, 1_000))
    finally:
        for job in jobs:
            job.close()
        shutil.rmtree(folder)
    return Cell(tuple(taken[0])), Cell(tuple(taken[1]))


def _committing_in_tasks(sink: Any) -> Sink:
    made: Sink = dataclasses.replace(sink, commit_in="tasks")
    return made


def compared(
    folder: Path, found: Kinds, committables: tuple[int, ...], note: Callable[[str], None]
) -> list[tuple[str, ...]]:
    """The rows of the table: by the driver, by tasks, and how many times faster the tasks are, of
    the kinds that can do both.
    """
    rows = []
    for count in committables:
        cells = []
        for kind, make in found.items():
            note(f"{kind}, {count:,} committables in tasks")
            of_kind = folder / f"{kind.split()[0].lower()}-in-turn"
            is_able = kind not in BY_THE_DRIVER
            cells.append(in_turn(of_kind, make, count) if is_able else (Cell(), Cell()))
        for position, who in enumerate(("the driver", f"{SUBTASKS} tasks")):
            shown = [both[position].shown() for both in cells]
            rows.append((f"{count:,} committables, by {who}", *shown))
        rows.append(("times faster in tasks", *(_factor(*both) for both in cells)))
    return rows


def _factor(on_driver: Cell, in_tasks: Cell) -> str:
    if not in_tasks.samples:
        return NOT_MEASURED
    driver_s, tasks_s = (percentile(one.samples, 50) for one in (on_driver, in_tasks))
    return f"× {number(driver_s / tasks_s)}"
