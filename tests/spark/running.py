"""The common part of the tests of jobs on real Spark: a number job, its processes, and how to end
them.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil

from epochgate.runtime import JobResult
from epochgate.runtime.store import CheckpointShelf, InMemoryCheckpointStore
from epochgate.spark.job import JobHandle, run_job
from tests.spark import numbers_program
from tests.spark.numbers_program import (
    NumberProgram,
    NumberProvider,
    RangeCommitter,
    number_configuration,
)

WAIT_S = 60.0
EXECUTOR = "CoarseGrainedExecutorBackend"


class NumberJob:
    """A number job; `held` keeps it from ending until `let_end`."""

    def __init__(
        self, spark: Any, last: int, *, parallelism: int = 4, factory: Any = None, **run: Any
    ) -> None:
        changes = run.pop("configuration", {})
        self.last, self.parallelism = last, parallelism
        self.provider = NumberProvider(last)
        self.provider.is_held.set()
        self.committer = RangeCommitter()
        self.shelf = run.pop("shelf", None) or CheckpointShelf()
        store = run.pop("store", None) or InMemoryCheckpointStore(self.shelf, job_id="numbers")
        self.handle: JobHandle = run_job(
            spark,
            number_configuration(self.provider, parallelism, **changes),
            factory or (lambda subtask: NumberProgram(last)),
            store=store,
            committer=self.committer,
            by_value=[numbers_program],
            **run,
        )

    def wait_until_running(self) -> None:
        wait_for(lambda: all(t.state == "running" for t in self.handle.status().tasks), "running")

    def wait_for_progress(self, checkpoints: int = 2) -> None:
        goal = self.handle.status().last_checkpoint_id + checkpoints
        wait_for(lambda: self.handle.status().last_checkpoint_id >= goal, "checkpoints")

    def wait_for_replacement(self, subtask: int, pid: int) -> None:
        def is_replaced() -> bool:
            task = self.handle.status().tasks[subtask]
            return task.state == "running" and task.pid not in (None, pid)

        wait_for(is_replaced, f"another process for subtask {subtask}")

    def pid(self, subtask: int) -> int:
        pid = self.handle.status().tasks[subtask].pid
        assert pid is not None, self.handle.status()
        return pid

    def finish(self) -> JobResult:
        """Let the job end, and check that everything came out exactly once."""
        self.provider.is_held.clear()
        result = self.handle.wait(WAIT_S)
        assert result.state == "finished", result.reason
        assert self.committer.problems(self.parallelism, self.last) == []
        return result


@contextlib.contextmanager
def number_job(spark: Any, last: int, **settings: Any) -> Iterator[NumberJob]:
    job = NumberJob(spark, last, **settings)
    with job.handle:
        yield job


def wait_for(condition: Callable[[], bool], what: str, timeout_s: float = WAIT_S) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline_s:
            raise AssertionError(f"waited {timeout_s} s in vain for: {what}")
        time.sleep(0.01)


def send_signal(pid: int, number: int) -> None:
    """Send a signal to a process that this test has started, and to no other."""
    with contextlib.suppress(psutil.NoSuchProcess):
        ancestors = {process.pid for process in psutil.Process(pid).parents()}
        assert os.getpid() in ancestors, f"process {pid} is not ours"
        os.kill(pid, number)


def executors() -> list[psutil.Process]:
    """Executor JVMs below this process."""
    return [p for p in psutil.Process().children(recursive=True) if EXECUTOR in command(p)]


def command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def executor_of(pid: int) -> int:
    """The JVM above a Python worker."""
    for process in psutil.Process(pid).parents():
        if "java" in command(process).split(" ")[0]:
            return int(process.pid)
    raise AssertionError(f"process {pid} has no JVM above it")


def is_gone(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def is_idle(pid: int) -> bool:
    """Return whether a process is gone, or uses less than a fifth of a core."""
    try:
        return bool(psutil.Process(pid).cpu_percent(0.2) < 20)
    except psutil.NoSuchProcess:
        return True


class Chaos:
    """Kills workers, and executors where asked to, at moments drawn from a seed."""

    def __init__(self, job: NumberJob, seed: int, *, workers: int, executors: int = 0) -> None:
        self._job = job
        self._choice = random.Random(seed)
        self._plan = ["worker"] * workers + ["executor"] * executors
        self._choice.shuffle(self._plan)
        self.kills: list[str] = []
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def run(self) -> None:
        self._thread.start()
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive(), f"after {self.kills} no process came any more"
        assert self.error is None, self.error

    def _run(self) -> None:
        try:
            for kind in self._plan:
                self._kill_one(kind)
        except BaseException as error:  # noqa: BLE001  the test raises it
            self.error = error

    def _kill_one(self, kind: str) -> None:
        time.sleep(self._choice.uniform(0.05, 0.7))  # the moment is the seed's
        pid = 0
        while not pid and not self._job.handle.is_over:
            pids = [task.pid for task in self._job.handle.status().tasks if task.pid is not None]
            pid = self._choice.choice(pids) if pids else 0
            time.sleep(0.01)
        with contextlib.suppress(psutil.NoSuchProcess, AssertionError):
            target = pid if kind == "worker" else executor_of(pid)
            send_signal(target, signal.SIGKILL)
            self.kills.append(f"{kind} {target}")
