"""The cost of being listened to: by the log and the history on disk, at each checkpoint.

The same driven jobs as in `scaling`, whose tasks count as those of an ingestion do. Telling is what
the job's own thread has to do, and hearing what the threads of the listeners do beside it.
"""

from __future__ import annotations

import gc
import logging
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epochgate.benchmarks.figures import Table, number
from epochgate.benchmarks.scaling import DrivenJob
from epochgate.runtime import JobEvent, JobListener
from epochgate.runtime.observing.history import History
from epochgate.runtime.observing.log import LOGGER, JobLog
from epochgate.runtime.observing.own_thread import OnOwnThread
from epochgate.runtime.shell.observers import Observers

SUBTASKS = (4, 100, 1_000, 10_000)
RUNS = 5
SUBTASKS_PER_SAMPLE = 20_000
CHECKPOINTS_MIN, CHECKPOINTS_MAX = 5, 1_000
FIGURES = {"rows_read": 1_000_000, "rows_written": 900_000, "rows_rejected": 0, "files_open": 2}


@dataclass(frozen=True)
class Costs:
    """Of one checkpoint, in microseconds of processor time: all that the job's thread does, telling
    the listeners, and what they do beside it.
    """

    checkpoint_us: float
    telling_us: float
    hearing_us: float


class TimedObservers(Observers):
    """Measures what telling costs: from the question whether it is heard to its end."""

    def __init__(self, listeners: Sequence[JobListener]) -> None:
        super().__init__(listeners, time.time)
        self.used_s = self._since_s = 0.0

    def __getattribute__(self, name: str) -> Any:
        """After the question whether anything is heard, the figures for it are gathered."""
        if name == "are_there":
            self._since_s = time.thread_time()
        return super().__getattribute__(name)

    def tell(self, kind: type[JobEvent], **values: Any) -> None:
        """Tell it, and count the time."""
        since_s = self._since_s or time.thread_time()
        super().tell(kind, **values)
        self._since_s = 0.0
        self.used_s += time.thread_time() - since_s


@contextmanager
def usual_listeners(folder: Path) -> Iterator[list[JobListener]]:
    """Return what each job with checkpoints in a directory has; the log goes into a file."""
    logger, handler = logging.getLogger(LOGGER), logging.FileHandler(folder / "log")
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield [OnOwnThread(one) for one in (JobLog(), History(str(folder / "history")))]
    finally:
        logger.removeHandler(handler)
        handler.close()
        logger.level, logger.propagate = before


def costs(subtasks: int, listeners: Sequence[JobListener]) -> Costs:
    """Measure the checkpoints of one job, until all of them are heard."""
    job = DrivenJob(subtasks, 1)
    observers = job.master.observers = TimedObservers(listeners)
    observers.begin(job.master.report)
    for subtask in range(subtasks):
        job.say(subtask, ["metrics", FIGURES])
    job.checkpoint()
    gc.collect()
    observers.used_s = 0.0
    times = min(CHECKPOINTS_MAX, max(CHECKPOINTS_MIN, SUBTASKS_PER_SAMPLE // subtasks))
    own_s, all_s = time.thread_time(), time.process_time()
    for _ in range(times):
        job.checkpoint()
    own_s = time.thread_time() - own_s
    observers.close()
    hearing_s = time.process_time() - all_s - own_s
    return Costs(*(used_s / times * 1e6 for used_s in (own_s, observers.used_s, hearing_s)))


def measure(
    sizes: tuple[int, ...] = SUBTASKS,
    runs: int = RUNS,
    note: Callable[[str], None] = lambda text: None,
) -> Table:
    """Measure jobs of all sizes in turn, `runs` times."""
    samples: dict[int, list[Costs]] = {subtasks: [] for subtasks in sizes}
    for run in range(runs):
        for subtasks, found in samples.items():
            note(f"run {run + 1} of {runs}: {subtasks:,} subtasks")
            with (
                tempfile.TemporaryDirectory(prefix="epochgate-bench-") as name,
                usual_listeners(Path(name)) as listeners,
            ):
                found.append(costs(subtasks, listeners))
    return Table(
        question="listeners",
        title="What it costs that a checkpoint is told (microseconds of processor time)",
        header=(
            "subtasks",
            "checkpoint",
            "of that, telling it",
            "per subtask",
            "log and history, beside it",
        ),
        rows=tuple(_row(subtasks, found) for subtasks, found in samples.items()),
        notes=(
            f"Medians of {runs} runs in turn, without Spark. Checkpoint and telling are the work "
            "of the job's own thread; the log and the history are written on threads of theirs. "
            f"Each task has {len(FIGURES)} figures, which telling sums up; without a listener, "
            "nothing is told."
        ),
    )


def _row(subtasks: int, found: list[Costs]) -> tuple[str, ...]:
    checkpoint_us = statistics.median(one.checkpoint_us for one in found)
    telling_us = statistics.median(one.telling_us for one in found)
    return (
        f"{subtasks:,}",
        number(checkpoint_us),
        number(telling_us),
        number(telling_us / subtasks),
        number(statistics.median(one.hearing_us for one in found)),
    )
