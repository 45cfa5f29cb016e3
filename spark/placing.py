"""The shell around the placement of tasks: looks who runs where, and does what the machine says.

Tells `Placement` of each attempt of a task once what came of it before it spoke to the driver, and,
while a process is missing, where attempts run that have not spoken yet, and which hosts have room.
Carries out: attempts that are turned away are killed, which Spark does not count as a failure.
Decides nothing but how many failures in a row, and how much time, are told.

Runs on the thread that asks Spark; `note_hello` on the wire's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from epochgate.models.placement import Placements
from epochgate.spark.resident_job import ResidentJob, TaskRun
from epochgate.spark.slots import Executor, executors

HOSTS_MAX: Final = 1024
"""Hosts that are told apart; those that come later count as one."""
FAILURES_BEFORE_HELLO_MAX: Final = 5
_log = logging.getLogger(__name__)


class Cluster(Protocol):
    """What is asked of Spark."""

    def runs(self, skipped: int) -> list[TaskRun] | None:
        """Attempts, oldest first, without the first ones; None: not known."""

    def executors(self) -> dict[str, Executor] | None:
        """Those that there are and were, by their ids; None: not known."""

    def kill(self, task_attempt_id: int, reason: str) -> None:
        """End this attempt; Spark starts the next."""


class SparkCluster(Cluster):
    """The Spark of a job that runs."""

    def __init__(self, context: Any, job: ResidentJob) -> None:
        self._context, self._job = context, job

    def runs(self, skipped: int) -> list[TaskRun] | None:
        """Ask the status store."""
        return self._job.runs(skipped)

    def executors(self) -> dict[str, Executor] | None:
        """Ask the status store."""
        return executors(self._context)

    def kill(self, task_attempt_id: int, reason: str) -> None:
        """Ask the scheduler; blocks for a call into the JVM."""
        self._job.kill(task_attempt_id, reason)


class Placing:
    """Where the tasks of one job run, as far as that hinders them.

    `driver`: where tasks look for it. `on_warning(text)`, `on_overdue(subtask, reason)`: the
    restart strategy is to decide; `on_given_up(reason)`: the job must end as failed.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        driver: str,
        process_timeout_s: float,
        why_missing: Callable[[list[int]], str],
        on_warning: Callable[[str], None],
        on_overdue: Callable[[int, str], None],
        on_given_up: Callable[[str], None],
    ) -> None:
        self._cluster, self._driver = cluster, driver
        self._process_timeout_s, self._why_missing = process_timeout_s, why_missing
        self._on_warning, self._on_overdue = on_warning, on_overdue
        self._on_given_up = on_given_up
        self._system = Placements(hosts=HOSTS_MAX)
        self._system.bind("placement", "spark", self)
        self._placement = self._system.placement
        self._hosts: dict[str, int] = {}
        self._spoken: set[int] = set()
        """Task attempts that have said hello, and are not settled."""
        self._settled: set[int] = set()
        """Those of which the machine knows, and that are not among the first `_skipped`."""
        self._skipped = 0
        self._turned_away: set[int] = set()
        self._failures: dict[int, list[TaskRun]] = {}
        """Subtask -> its failures before a hello since the last process, or the last question."""
        self._asked_at_s: dict[int, float] = {}
        self._have_run: set[int] = set()
        """Subtasks that have had a process."""
        self._is_over = False

    def note_hello(self, task_attempt_id: int) -> None:
        """This attempt speaks to the driver; any thread."""
        self._spoken.add(task_attempt_id)

    def look(self, now_s: float, wanted: Mapping[int, float]) -> None:
        """Look after the subtasks in `wanted`, each with the moment since when a process is."""
        if self._is_over:
            return
        runs, executors = self._cluster.runs(self._skipped), self._cluster.executors()
        if runs is None or executors is None:
            return
        rooms = dict.fromkeys(self._hosts, False)
        for executor in executors.values():
            rooms[executor.host] = executor.has_room or rooms.get(executor.host, False)
        for host, has_room in rooms.items():
            self._placement.room(self._index(host), has_room)
        for run in runs:
            if run.task_attempt_id not in self._settled and not self._is_over:
                known = executors.get(run.executor)
                index = self._index(run.executor if known is None else known.host)
                self._tell(run, index, is_wanted=run.subtask in wanted)
                self._system.settle()
        self._skip(runs)
        for subtask, since_s in wanted.items():
            if not self._is_over:
                since_s = max(since_s, self._asked_at_s.get(subtask, 0.0))
                self._tell_time(now_s, subtask, since_s, sorted(wanted))

    def _tell(self, run: TaskRun, host: int, *, is_wanted: bool) -> None:
        attempt = run.task_attempt_id
        if attempt in self._spoken:
            self._spoken.discard(attempt)
            self._have_run.add(run.subtask)
            self._failures.pop(run.subtask, None)
            self._asked_at_s.pop(run.subtask, None)
            self._placement.reached(host)
        elif run.status == "FAILED":
            self._failures.setdefault(run.subtask, []).append(run)
            self._placement.missed(host)
        elif run.status == "RUNNING":
            if is_wanted and attempt not in self._turned_away:
                self._placement.landed(host, attempt)
            return
        self._settled.add(attempt)

    def _tell_time(self, now_s: float, subtask: int, since_s: float, missing: list[int]) -> None:
        failures = self._failures.get(subtask, [])
        if len(failures) >= FAILURES_BEFORE_HELLO_MAX:
            reason = (
                f"the tasks fail before they can speak to the driver; subtask {subtask} did "
                f"{len(failures)} times, the last time with: {failures[-1].reason}"
            )
            self._placement.failing(subtask, reason)
            self._system.settle()
        if not self._is_over and now_s - since_s > self._process_timeout_s:
            last = f". The last failure of a task: {failures[-1].reason}" if failures else ""
            self._asked_at_s[subtask] = now_s
            reason = self._why_missing(missing) + last
            self._placement.overdue(subtask, reason, subtask in self._have_run)
            self._system.settle()

    def _skip(self, runs: list[TaskRun]) -> None:
        """Do not ask again for the oldest attempts, once all of them are settled."""
        for run in runs:
            if run.task_attempt_id not in self._settled:
                return
            self._settled.discard(run.task_attempt_id)
            self._turned_away.discard(run.task_attempt_id)
            self._skipped += 1

    def _index(self, host: str) -> int:
        return self._hosts.setdefault(host, min(len(self._hosts), HOSTS_MAX - 1))

    def _name(self, index: int) -> str:
        return next(host for host, number in self._hosts.items() if number == index)

    # The port `spark` of the machine.

    def turn_away(self, host: int, attempt: int) -> None:
        """Let Spark offer the task another slot."""
        self._turned_away.add(attempt)
        _log.info("task attempt %d is turned away from %s", attempt, self._name(host))
        self._cluster.kill(attempt, f"the driver could not be reached from {self._name(host)}")

    def avoid(self, host: int) -> None:
        """Say why no task runs there any more."""
        failures = [run for runs in self._failures.values() for run in runs]
        told = [run.reason.rstrip(".") for run in failures if run.reason]
        reason = f": {told[-1]}" if told else ""
        self._on_warning(
            f"a task on {self._name(host)} failed before it could speak to the driver at "
            f"{self._driver}{reason}. While another host has a free slot, tasks go there"
        )

    def trust(self, host: int) -> None:
        """Say that it is in use again."""
        _log.info("tasks on %s reach the driver again", self._name(host))

    def strand(self, host: int) -> None:
        """Say what the job waits for."""
        self._on_warning(
            "the only free slots are on hosts whose tasks could not speak to the driver at "
            f"{self._driver}; they are tried again until one can. Mend the network between them "
            "and the driver, or give the application executors elsewhere"
        )

    def ask_strategy(self, subtask: int, reason: str) -> None:
        """Let the restart strategy decide, and measure the time from now on."""
        self._on_overdue(subtask, reason)

    def give_up(self, reason: Any) -> None:
        """End the job."""
        self._is_over = True
        self._on_given_up(reason)
