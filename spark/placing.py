"""The shell around the placement of tasks: looks who runs where, and does what the machine says.

Tells `Placement` of each attempt of a task once what came of it before it spoke to the driver, and,
while a process is missing, where attempts run that have not spoken yet, and which hosts have room;
of a process that has fallen silent where it runs, and whether Spark has ended it in time.
Carries out: attempts that are turned away are killed, which Spark does not count as a failure.
Decides nothing but how many failures in a row, and how much time, are told.

Runs on the thread that asks Spark; `note_hello` and `note_silence` on the wire's.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from epochgate.fsm import Handles
from epochgate.models.placement import Placements
from epochgate.spark.resident_job import RUNS_MAX, ResidentJob, TaskRun
from epochgate.spark.slots import Executor, asked, executors, remove_executor

HOSTS_MAX: Final = 1024
"""Hosts that are told apart; those that come later count as one."""
FAILURES_BEFORE_HELLO_MAX: Final = 5
ANSWER_S: Final = 1.5
"""For an executor to answer, while none of its processes is heard."""
LOOK_S_MAX: Final = 0.5
"""What passes between two looks counts as at most this much of an executor's silence: the driver or
its JVM may have paused, and the answer has to be fetched.
"""
_log = logging.getLogger(__name__)


class Cluster(Protocol):
    """The questions that a placement asks of Spark."""

    def runs(self, skipped: int, most: int = RUNS_MAX) -> list[TaskRun] | None:
        """Attempts, oldest first, without the first ones; None: not known."""

    def executors(self) -> dict[str, Executor] | None:
        """Those that there are and were, by their ids; None: not known."""

    def kill(self, task_attempt_id: int, reason: str) -> bool:
        """End this attempt, and Spark starts the next; whether Spark was told."""

    def remove(self, executor: str, reason: str) -> bool:
        """Take an executor for lost, and Spark starts its tasks again elsewhere; whether Spark was
        told.
        """

    def ask(self, executor: str) -> Callable[[], bool]:
        """Ask an executor for a sign of life; returns whether it has given one by now."""


class SparkCluster(Cluster):
    """The Spark of a job that runs."""

    def __init__(self, context: Any, job: ResidentJob) -> None:
        self._context, self._job = context, job

    def runs(self, skipped: int, most: int = RUNS_MAX) -> list[TaskRun] | None:
        """Ask the status store."""
        return self._job.runs(skipped, most)

    def executors(self) -> dict[str, Executor] | None:
        """Ask the status store."""
        return executors(self._context)

    def kill(self, task_attempt_id: int, reason: str) -> bool:
        """Ask the scheduler; blocks for a call into the JVM."""
        return self._job.kill(task_attempt_id, reason)

    def remove(self, executor: str, reason: str) -> bool:
        """Tell the scheduler what its own time limit would tell it."""
        return remove_executor(self._context, executor, reason)

    def ask(self, executor: str) -> Callable[[], bool]:
        """Ask on a thread of its own, since Spark waits for the answer."""
        return asked(self._context, executor)


class _Run(NamedTuple):
    """The newest attempt of a subtask that is known, and where it runs."""

    attempt: int
    host: int
    executor: str
    place: int
    """Among all attempts of the job, oldest first."""


@dataclass
class _Silent:
    """An attempt whose process has fallen silent, and that Spark is to end; for how long its
    executor has not given a sign of life.
    """

    run: _Run
    has_answered: Callable[[], bool]
    waited_s: float = 0.0


class Placing:
    """The places where the tasks of one job run, as far as that hinders them.

    `driver`: where tasks look for it. `speaking()`: the task attempts whose processes are heard.
    `on_warning(text)`, `on_overdue(subtask, reason)`: the
    restart strategy is to decide; `on_given_up(reason)`: the job must end as failed.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        driver: str,
        process_timeout_s: float,
        speaking: Callable[[], Iterable[int]],
        why_missing: Callable[[list[int]], str],
        on_warning: Callable[[str], None],
        on_overdue: Callable[[int, str], None],
        on_given_up: Callable[[str], None],
    ) -> None:
        self._cluster, self._driver = cluster, driver
        self._process_timeout_s, self._why_missing = process_timeout_s, why_missing
        self._speaking = speaking
        self._on_warning, self._on_overdue = on_warning, on_overdue
        self._on_given_up = on_given_up
        self._system = Handles(Placements, hosts=HOSTS_MAX)
        self._system.bind("placement", "spark", self)
        self._placement = self._system.placement
        self._hosts: dict[str, int] = {}
        self._host_of: dict[str, str] = {}
        """Executor -> its host; Spark lists the newest of the dead ones alone."""
        self._spoken: set[int] = set()
        """Task attempts that have said hello, and are not settled."""
        self._settled: set[int] = set()
        """Those of which the machine knows, and that are not among the first `_skipped`."""
        self._skipped = 0
        self._turned_away: set[int] = set()
        self._failures: dict[int, list[TaskRun]] = {}
        """Subtask -> its failures before a hello since its last process."""
        self._asked_at_s: dict[int, float] = {}
        self._have_run: set[int] = set()
        """Subtasks that have had a process."""
        self._runs: dict[int, _Run] = {}
        """By subtask."""
        self._fallen: deque[tuple[int, int]] = deque()
        """Subtasks and attempts of silent processes, which the machine is still to be told."""
        self._silent: dict[int, _Silent] = {}
        """By attempt: those that Spark has yet to end."""
        self._removed: set[str] = set()
        """Executors that were given up."""
        self._looked_at_s = 0.0
        self._suspects: set[int] = set()
        self._ground = ""
        """Why the host that is told next may become suspect."""
        self._is_over = False

    def note_hello(self, task_attempt_id: int) -> None:
        """This attempt speaks to the driver; any thread."""
        self._spoken.add(task_attempt_id)

    def note_silence(self, subtask: int, task_attempt_id: int) -> None:
        """The process of this attempt is not heard any more; any thread."""
        self._fallen.append((subtask, task_attempt_id))

    def is_urgent(self, *, are_missing: bool) -> bool:
        """Return whether to look at once, and often; `are_missing`: processes are wanted."""
        return bool(self._fallen or self._silent or (self._suspects and are_missing))

    def look(self, now_s: float, wanted: Mapping[int, float]) -> None:
        """Look after the subtasks in `wanted`, each with the moment since when a process is."""
        if self._is_over:
            return
        runs, executors = self._cluster.runs(self._skipped), self._cluster.executors()
        if runs is None or executors is None:
            return
        rooms = dict.fromkeys(self._hosts, False)
        for name, executor in executors.items():
            self._host_of[name] = executor.host
            rooms[executor.host] = executor.has_room or rooms.get(executor.host, False)
        for host, has_room in rooms.items():
            self._placement.room(self._index(host), has_room)
        for place, run in enumerate(runs, self._skipped):
            if run.task_attempt_id not in self._settled and not self._is_over:
                self._tell(run, place, is_wanted=run.subtask in wanted)
                self._system.settle()
        self._tell_unanswered(min(LOOK_S_MAX, now_s - self._looked_at_s))
        self._looked_at_s = now_s
        self._tell_silence()
        self._skip(runs)
        for subtask, since_s in wanted.items():
            if not self._is_over:
                since_s = max(since_s, self._asked_at_s.get(subtask, 0.0))
                self._tell_time(now_s, subtask, since_s, sorted(wanted))

    def _note_run(self, run: TaskRun, host: int, place: int) -> None:
        known = self._runs.get(run.subtask)
        if known is None or known.attempt <= run.task_attempt_id:
            self._runs[run.subtask] = _Run(run.task_attempt_id, host, run.executor, place)

    def _tell(self, run: TaskRun, place: int, *, is_wanted: bool) -> None:
        attempt, name = run.task_attempt_id, self._host_of.get(run.executor)
        host = None if name is None else self._index(name)
        if host is not None:
            self._note_run(run, host, place)
        elif run.status == "RUNNING":
            return  # Spark has yet to tell of its executor
        if attempt in self._spoken:
            self._spoken.discard(attempt)
            self._have_run.add(run.subtask)
            self._failures.pop(run.subtask, None)
            self._asked_at_s.pop(run.subtask, None)
            if host is not None:
                self._placement.reached(host)
        elif run.status == "FAILED":
            self._failures.setdefault(run.subtask, []).append(run)
            told = f": {run.reason.rstrip('.')}" if run.reason else ""
            if host is not None:
                self._ground = (
                    f"a task on {name} failed before it could speak to the driver at "
                    f"{self._driver}{told}"
                )
                self._placement.missed(host)
        elif run.status == "RUNNING":
            if host is not None and is_wanted and attempt not in self._turned_away:
                self._placement.landed(host, attempt)
            return
        self._settled.add(attempt)

    def _tell_silence(self) -> None:
        for _ in range(len(self._fallen)):
            subtask, attempt = self._fallen.popleft()
            run = self._runs.get(subtask)
            if run is None or run.attempt < attempt:
                self._fallen.append((subtask, attempt))  # Spark will tell of it
            elif run.attempt == attempt and not self._is_over:
                self._silent[attempt] = _Silent(run, self._cluster.ask(run.executor))
                self._ground = f"a process on {self._name(run.host)} is not heard any more"
                self._placement.silenced(run.host, attempt)
                self._system.settle()

    def _tell_unanswered(self, passed_s: float) -> None:
        for attempt, silent in list(self._silent.items()):
            told = self._cluster.runs(silent.run.place, 1)
            silent.waited_s += passed_s
            if told is not None and (not told or told[0].status != "RUNNING"):
                del self._silent[attempt]
            elif told is None or silent.has_answered() or self._is_over:
                continue  # Spark does not tell, or ends it in its own time
            elif silent.waited_s > ANSWER_S:
                silent.waited_s = 0.0
                host = silent.run.host
                self._placement.unanswered(host, attempt, host in self._heard_hosts())
                self._system.settle()

    def _heard_hosts(self) -> set[int]:
        speaking = set(self._speaking())
        return {run.host for run in self._runs.values() if run.attempt in speaking}

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
        reason = "is not heard on" if attempt in self._silent else "could not reach the driver from"
        told = self._cluster.kill(attempt, f"a process of the job {reason} {self._name(host)}")
        if not told:
            self._placement.refused()

    def remove_executor(self, host: int, attempt: int) -> None:
        """Have Spark do now what it would do after its own time limit."""
        executor = self._silent[attempt].run.executor
        if executor in self._removed:
            return  # Spark was told
        reason = f"{self._name(host)} is not heard by the driver any more"
        if not self._cluster.remove(executor, reason):
            self._placement.refused()
            return
        self._removed.add(executor)
        self._on_warning(
            f"executor {executor} on {self._name(host)} is given up: no process of the job is "
            f"heard from there, and the executor itself has not answered for {ANSWER_S:g} s"
        )

    def avoid(self, host: int) -> None:
        """Say why no task runs there any more."""
        self._suspects.add(host)
        self._on_warning(f"{self._ground}. While another host has a free slot, tasks go there")

    def trust(self, host: int) -> None:
        """Say that it is in use again."""
        self._suspects.discard(host)
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
