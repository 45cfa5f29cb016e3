"""Kills the processes of a streaming query at random moments: Python workers, executors, the
driver's JVM and the driver's Python, each as often as the others.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from tests.spark.running import command, send_signal

ROOT = Path(__file__).parents[3]
KINDS = ("worker", "executor", "driver JVM", "driver Python")
KILLS = int(os.environ.get("EPOCHGATE_KILLS", "6"))
"""Of each kind."""
DELAY_MOST_S = 1.5
"""Between the beginning of a batch and the kill."""


def victims(driver: psutil.Process) -> Iterator[tuple[str, psutil.Process]]:
    """Return what can be killed now, each with its kind."""
    yield "driver Python", driver
    for process in driver.children(recursive=True):
        with contextlib.suppress(psutil.Error):
            text = command(process)
            if "CoarseGrainedExecutorBackend" in text:
                yield "executor", process
            elif "SparkSubmit" in text:
                yield "driver JVM", process
            elif "pyspark" in text and "java" not in text:
                yield "worker", process


class Killing:
    """Runs drivers of one query, one after the other, until each kind was killed `kills` times.

    `arguments` are those of Python for a driver that ends with 0 once it has read all there is;
    `checkpoint` is the query's, whose offsets tell that a batch has begun.
    """

    def __init__(
        self, arguments: list[str], checkpoint: Path, choice: random.Random, kills: int = KILLS
    ) -> None:
        self.killed = dict.fromkeys(KINDS, 0)
        self._arguments, self._checkpoint = arguments, checkpoint
        self._choice, self._kills = choice, kills

    @property
    def batches(self) -> int:
        """Return how many batches have begun; Spark keeps the offsets of the last hundred."""
        begun = [int(path.name) + 1 for path in self._checkpoint.glob("offsets/[0-9]*")]
        return max(begun, default=0)

    def run(self, feed: Callable[[], None]) -> None:
        """Call `feed` before each start, for files to read and updates; the last driver is left
        to its end.
        """
        is_last = False
        while not is_last:
            is_last = not self._left
            feed()
            driver = subprocess.Popen(
                [sys.executable, *self._arguments],
                cwd=ROOT,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
            )
            try:
                self._strike_until_over(driver)
            finally:
                driver.kill()
                driver.wait()
            assert not is_last or driver.returncode == 0, driver.returncode

    @property
    def _left(self) -> set[str]:
        return {kind for kind, count in self.killed.items() if count < self._kills}

    def _strike_until_over(self, driver: subprocess.Popen[bytes]) -> None:
        seen = self.batches
        while driver.poll() is None:
            if not self._left or self.batches == seen:
                time.sleep(0.05)
                continue
            time.sleep(self._choice.uniform(0, DELAY_MOST_S))  # the moment is the seed's
            self._kill_one(psutil.Process(driver.pid))
            seen = self.batches

    def _kill_one(self, driver: psutil.Process) -> None:
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            found = [(kind, process) for kind, process in victims(driver) if kind in self._left]
            if not found:
                return
            kind = self._choice.choice(sorted({kind for kind, _ in found}))
            victim = self._choice.choice([one for of, one in found if of == kind])
            send_signal(victim.pid, signal.SIGKILL)
            self.killed[kind] += 1
