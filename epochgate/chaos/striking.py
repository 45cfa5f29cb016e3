"""Kills processes of one running job, to show that it loses nothing: workers, executors, stops,
and saves and commits that hang.

Decides whom to hit and when: each time once a new checkpoint has completed and every subtask runs,
after a random share of a checkpoint interval. Hits only Python workers that have introduced
themselves to this job's driver, on this machine, and the executor JVMs of this Spark application
that run them. Runs on a thread of its own, "epochgate-chaos".

A "hang" lasts up to `hang_s_max`, beyond the limits of saves and commits where these are shorter.
A "stop" (SIGSTOP) leaves the worker's connection open; it is continued once its subtask runs in
another process, as a zombie whose words must count for nothing.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import psutil

from epochgate.chaos.hanging import Hanging
from epochgate.errors import UsageError
from epochgate.spark.handle import JobStatus, TaskStatus

Kind = Literal["worker", "executor", "stop", "hang"]
EXECUTOR_MARK = "CoarseGrainedExecutorBackend"
POLL_S = 0.05
REPLACED_PATIENCE_S = 120.0
HANG_S_MIN = 0.5


class ChaosImpossible(UsageError):
    """There is nothing of the wanted kind to kill."""


@dataclass(frozen=True)
class Strike:
    """One kill: what was hit, when (seconds since the chaos began), and which subtasks felt it."""

    kind: Kind
    pid: int
    subtasks: tuple[int, ...]
    at_s: float

    def __str__(self) -> str:
        felt = ", ".join(str(subtask) for subtask in self.subtasks)
        plural = "s" if len(self.subtasks) != 1 else ""
        if self.kind == "executor":
            return f"killed (-9) executor {self.pid}, which ran subtask{plural} {felt}"
        if self.kind == "hang":
            return "saves and commits hang"
        if self.kind == "stop":
            return f"stopped (SIGSTOP) Python worker {self.pid} of subtask {felt}"
        return f"killed (-9) Python worker {self.pid} of subtask {felt}"


class Victim(Protocol):
    """The part of a running job that chaos needs; `IngestHandle` is one."""

    @property
    def is_over(self) -> bool: ...
    @property
    def spark_context(self) -> Any: ...
    def status(self) -> JobStatus: ...


class Chaos:
    """Strikes `kinds` on `job`, in order; `on_strike` is told of each, on the chaos thread.

    As a context manager it begins at the start of the block and ends with it. hanging: of the job,
    needed for the kind "hang".
    """

    def __init__(
        self,
        job: Victim,
        kinds: Sequence[Kind],
        *,
        seed: int = 0,
        delay_s_max: float = 0.5,
        hanging: Hanging | None = None,
        hang_s_max: float = 3.0,
        on_strike: Callable[[Strike], None] = lambda strike: None,
    ) -> None:
        self._job, self.kinds, self._on_strike = job, list(kinds), on_strike
        self._chance, self._delay_s_max = random.Random(seed), delay_s_max
        self._hanging, self._hang_s_max = hanging, hang_s_max
        self._driver_pid = driver_jvm_pid(job.spark_context)
        self._application: str = job.spark_context.applicationId
        self._is_ending = threading.Event()
        self._hit_pids: set[int] = set()
        self._stopped: dict[int, tuple[int, psutil.Process]] = {}
        self._thread = threading.Thread(target=self._run, name="epochgate-chaos", daemon=True)
        self._began_s = time.monotonic()
        self.strikes: list[Strike] = []
        self.error: BaseException | None = None

    def __enter__(self) -> Chaos:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    @property
    def is_done(self) -> bool:
        """True if every strike has been carried out."""
        return len(self.strikes) == len(self.kinds)

    def end(self) -> None:
        """Strike no more; let whatever was stopped go on."""
        self._is_ending.set()
        self._thread.join()

    def _run(self) -> None:
        last_checkpoint_id = 0
        try:
            for kind in self.kinds:
                status = self._await_progress(last_checkpoint_id)
                if status is None:
                    return
                last_checkpoint_id = status.last_checkpoint_id
                self._pause(self._chance.random() * self._delay_s_max)
                if kind == "hang":
                    self._hang()
                else:
                    self._strike(kind)
            self._await_progress(last_checkpoint_id)
        except Exception as error:  # noqa: BLE001  # the outcome reports it
            self.error = error
        finally:
            for _, process in self._stopped.values():
                _signal(process, signal.SIGCONT)

    def _await_progress(self, after: int) -> JobStatus | None:
        """The job's status once it has got on; None when it, or the chaos, is over."""
        while not self._job.is_over and not self._is_ending.is_set():
            status = self._job.status()
            self._continue_replaced(status)
            if status.last_checkpoint_id > after and self._is_whole(status):
                return status
            self._pause(POLL_S)
        return None

    def _is_whole(self, status: JobStatus) -> bool:
        return status.state == "running" and all(self._is_alive(task) for task in status.tasks)

    def _is_alive(self, task: TaskStatus) -> bool:
        # The driver may not have noticed yet what was done to a process.
        return task.state == "running" and task.pid is not None and task.pid not in self._hit_pids

    def _pause(self, seconds: float) -> None:
        self._is_ending.wait(seconds)

    def _continue_replaced(self, status: JobStatus) -> None:
        for subtask, (attempt, process) in list(self._stopped.items()):
            task = status.tasks[subtask]
            if task.attempt > attempt and task.state == "running":
                del self._stopped[subtask]
                _signal(process, signal.SIGCONT)

    def _hang(self) -> None:
        """Let saves and commits hang for a while, and no longer than the job lasts."""
        if self._hanging is None:
            raise ChaosImpossible("saves and commits of this job cannot be held")
        self._hanging.begin()
        self._note(Strike("hang", os.getpid(), (), time.monotonic() - self._began_s))
        end_s = time.monotonic() + self._chance.uniform(HANG_S_MIN, self._hang_s_max)
        while time.monotonic() < end_s and not self._job.is_over and not self._is_ending.is_set():
            self._pause(POLL_S)
        self._hanging.end()

    def _note(self, strike: Strike) -> None:
        self.strikes.append(strike)
        self._on_strike(strike)

    def _strike(self, kind: Kind) -> None:
        """Hit something of this kind; tries again while the job's processes change under it."""
        deadline_s = time.monotonic() + REPLACED_PATIENCE_S
        while not self._job.is_over and not self._is_ending.is_set():
            tasks = [task for task in self._job.status().tasks if self._is_ours(task)]
            if tasks and (strike := self._hit(kind, self._chance.choice(tasks), tasks)):
                self._note(strike)
                return
            if time.monotonic() > deadline_s:
                raise ChaosImpossible(f"no {kind} of this job was found on this machine to kill")
            self._pause(POLL_S)

    def _is_ours(self, task: TaskStatus) -> bool:
        return task.host == socket.gethostname() and self._is_alive(task)

    def _hit(self, kind: Kind, task: TaskStatus, tasks: list[TaskStatus]) -> Strike | None:
        assert task.pid is not None
        at_s = time.monotonic() - self._began_s
        try:
            worker = psutil.Process(task.pid)
            if kind == "executor":
                executor = self._executor_of(task.pid)
                if executor is None:
                    return None
                felt = [t for t in tasks if t.pid and self._executor_of(t.pid) == executor]
                executor.kill()
                self._hit_pids.update(t.pid for t in felt if t.pid)
                return Strike(kind, executor.pid, tuple(t.subtask for t in felt), at_s)
            if kind == "worker":
                worker.kill()
            else:
                worker.suspend()
                self._stopped[task.subtask] = (task.attempt, worker)
        except psutil.NoSuchProcess:
            return None
        self._hit_pids.add(task.pid)
        return Strike(kind, task.pid, (task.subtask,), at_s)

    def _executor_of(self, pid: int) -> psutil.Process | None:
        """The executor JVM above a worker; None if that is the driver's, or is none of ours."""
        for parent in psutil.Process(pid).parents():
            if parent.pid == self._driver_pid:
                return None
            command = parent.cmdline()
            if any(EXECUTOR_MARK in word for word in command) and self._application in command:
                return parent
        return None


def driver_jvm_pid(context: Any) -> int:
    """The process id of the JVM of a SparkContext's driver."""
    return int(context._jvm.java.lang.ProcessHandle.current().pid())


def kill_plan(
    kills: int, *, seed: int, has_executors: bool, stops: bool = False, hangs: bool = False
) -> list[Kind]:
    """`kills` kinds, mixed by `seed`: one in four an executor where there are any, one in eight a
    stop, and one in eight a hang, if wanted.

    >>> sorted(kill_plan(4, seed=1, has_executors=True))
    ['executor', 'worker', 'worker', 'worker']
    """
    pattern: list[Kind] = ["worker", "worker", "worker", "executor" if has_executors else "worker"]
    kinds = [pattern[number % 4] for number in range(kills)]
    if stops:
        kinds = ["stop" if number % 8 == 5 else kind for number, kind in enumerate(kinds)]
    if hangs:
        kinds = ["hang" if number % 8 == 1 else kind for number, kind in enumerate(kinds)]
    random.Random(seed).shuffle(kinds)
    return kinds


def has_executors(context: Any) -> bool:
    """Return whether tasks of this SparkContext run outside of the driver's JVM."""
    return not str(context.master).startswith("local[")


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(number)
