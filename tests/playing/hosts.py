"""A Spark with its hosts, which carries out what the driver asks, or does not.

It tells of executors as they were at the last look of the schedule, and that an attempt has not
ended only where the schedule says so. A request is answered at once, as in the closed system. On
each host runs a task of the job whose process is heard while the host reaches the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from epochgate.models.closed.surroundings.scheduler import HERE, PENDING, RUNNING, SILENT
from epochgate.spark.placing import Cluster
from epochgate.spark.resident_job import RUNS_MAX, TaskRun
from epochgate.spark.slots import Executor

LIVE, SPEAKING, SILENCED, FAILING = range(4)
"""The other tasks of a host: one that was heard before the schedule began, one that speaks now, one
that falls silent, one that fails.
"""


class Host:
    """A host, as it really is, and the executor there."""

    def __init__(self, number: int) -> None:
        self.number, self.name = number, f"host{number}"
        self.is_cut = self.is_gone = self.is_given_up = self.is_full = False
        self.executor = f"of {self.name}"
        self.silent: int | None = None
        """The attempt of another task there whose process is silent, and that Spark is to end."""

    @property
    def is_reachable(self) -> bool:
        """True if the driver is reached from there."""
        return not self.is_cut and not self.is_gone

    @property
    def is_open(self) -> bool:
        """True if Spark has a free slot there, as far as it knows."""
        return not self.is_full and not self.is_given_up


class Hosts(Cluster):
    """The back end of a `Placing`; the task that is looked at is subtask 0."""

    def __init__(self, count: int) -> None:
        self.hosts = [Host(number) for number in range(count)]
        self.state, self.at, self.attempt = PENDING, 0, 0
        self.is_killed = self.is_deaf = False
        self.attempts: list[TaskRun] = []
        self.told: dict[str, Executor] = {}
        self.shown: int | None = None
        """How many attempts Spark tells of; None: all."""
        self.asked_for: int | None = None
        """The only attempt of which Spark tells that it has not ended."""
        for host in self.hosts:
            self.register(host)

    # What the driver asks.

    def speaking(self) -> Iterator[int]:
        for run in self.attempts:
            host = self.host_of(run.executor)
            is_live = run.subtask == self.subtask(LIVE, host) and run.status == "RUNNING"
            if host.is_reachable and is_live:
                yield run.task_attempt_id

    def runs(self, skipped: int, most: int = RUNS_MAX) -> list[TaskRun] | None:
        if most == RUNS_MAX:
            return self.attempts[skipped : self.shown]
        one = self.attempts[skipped]
        return [one] if one.status != "RUNNING" or skipped == self.asked_for else None

    def executors(self) -> dict[str, Executor] | None:
        return dict(self.told)

    def ask(self, executor: str) -> Callable[[], bool]:
        return lambda: False

    def kill(self, task_attempt_id: int, reason: str) -> bool:
        run = self.attempts[task_attempt_id]
        host = self.host_of(run.executor)
        assert reason.endswith(f" {host.name}"), "it is said where the task is ended"
        if run.subtask != 0:
            assert host.silent == task_attempt_id, "another task is ended for its silence"
            return self.hears()
        assert task_attempt_id == self.attempt, "the attempt that is ended runs"
        if self.state == SILENT:
            self.is_killed = True
            return self.hears()
        assert self.state == RUNNING, "what is turned away has not come"
        if not self.hears():
            return False
        self.end("KILLED")
        return True

    def remove(self, executor: str, reason: str) -> bool:
        host = self.host_of(executor)
        assert reason.startswith(f"{host.name} "), "it is said which host is not heard"
        assert host.executor == executor, "the executor that is given up is there"
        if not self.hears():
            return False
        if self.holds(host):
            self.end("FAILED")
        self.lose_executor(host)
        return True

    def hears(self) -> bool:
        """Return whether Spark carries a request out; the next one it does."""
        was_deaf, self.is_deaf = self.is_deaf, False
        return not was_deaf

    # What happens.

    def subtask(self, kind: int, host: Host) -> int:
        """The subtask of a kind on a host."""
        return 1 + 4 * host.number + kind

    def host_of(self, executor: str) -> Host:
        return next(host for host in self.hosts if executor.endswith(host.name))

    def register(self, host: Host) -> None:
        """Spark has a new executor there, and a task of the job on it."""
        self.told[host.executor] = Executor(host.name, has_room=False)
        self.begin(self.subtask(LIVE, host), host)

    def begin(self, subtask: int, host: Host, status: str = "RUNNING", reason: str = "") -> int:
        """Spark starts an attempt there; returns its id."""
        attempt = len(self.attempts)
        self.attempts.append(TaskRun(subtask, attempt, host.executor, status, reason))
        return attempt

    def becomes(self, attempt: int, status: str, reason: str = "") -> None:
        self.attempts[attempt] = self.attempts[attempt]._replace(status=status, reason=reason)

    def end(self, status: str) -> None:
        """The attempt of the task has ended."""
        self.becomes(self.attempt, status, "it was lost" if status == "FAILED" else "")
        self.state, self.is_killed = PENDING, False

    def lose_executor(self, host: Host) -> None:
        """Spark has no executor there, and none of its tasks."""
        host.is_given_up, host.silent = True, None
        for run in self.attempts:
            if run.executor == host.executor and run.status == "RUNNING":
                self.becomes(run.task_attempt_id, "KILLED")

    def holds(self, host: Host) -> bool:
        return self.state in (RUNNING, HERE, SILENT) and self.at == host.number

    def is_reachable(self) -> bool:
        """Return whether the task reaches the driver from where it runs."""
        return self.hosts[self.at].is_reachable
