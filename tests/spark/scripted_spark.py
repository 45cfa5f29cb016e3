"""A Spark that remembers what a test lets happen, for the tests of placing."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from epochgate.spark.placing import Placing
from epochgate.spark.resident_job import RUNS_MAX, TaskRun
from epochgate.spark.slots import Executor

TIMEOUT_S = 60.0
REFUSED = "CannotConnect: connection refused"


class ScriptedSpark:
    """A Spark that remembers what the test lets happen, and is asked by the class under test."""

    def __init__(self, *hosts: str) -> None:
        self.rooms: set[str] | None = set(hosts)
        self.hosts = {*hosts}
        self.forgotten: set[str] = set()
        """Hosts of whose lost executors Spark tells no more."""
        self.attempts: list[TaskRun] = []
        self.killed: list[int] = []
        self.removed: list[str] = []
        self.speaking: set[int] = set()
        self.is_answering, self.is_deaf = True, False
        self.asked_behind: list[int] = []
        self.said: list[str] = []
        self.overdue: list[tuple[int, str]] = []
        self.given_up: list[str] = []
        self.placing = Placing(
            self,
            driver="driver:7000",
            process_timeout_s=TIMEOUT_S,
            speaking=lambda: self.speaking,
            why_missing=lambda missing: f"no process has come for {missing}",
            on_warning=self.said.append,
            on_overdue=lambda subtask, reason: self.overdue.append((subtask, reason)),
            on_given_up=self.given_up.append,
        )

    def runs(self, skipped: int, most: int = RUNS_MAX) -> list[TaskRun] | None:
        if most == RUNS_MAX:
            self.asked_behind.append(skipped)
        return self.attempts[skipped : skipped + most]

    def executors(self) -> dict[str, Executor] | None:
        if self.rooms is None:
            return None
        self.hosts |= self.rooms
        told = self.hosts - self.forgotten
        return {f"of {host}": Executor(host, host in self.rooms) for host in told}

    def kill(self, task_attempt_id: int, reason: str) -> bool:
        self.killed.append(task_attempt_id)
        if self.is_answering and not self.is_deaf:
            self.becomes(task_attempt_id, "KILLED")
        return not self.is_deaf

    def remove(self, executor: str, reason: str) -> bool:
        self.removed.append(executor)
        return not self.is_deaf

    def ask(self, executor: str) -> Callable[[], bool]:
        return lambda: self.is_answering

    def begins(self, host: str, subtask: int = 0) -> int:
        """The next attempt of a subtask, on a host; returns its id."""
        self.attempts.append(TaskRun(subtask, len(self.attempts), f"of {host}", "RUNNING", ""))
        return len(self.attempts) - 1

    def becomes(self, attempt: int, status: str, reason: str = "") -> None:
        self.attempts[attempt] = self.attempts[attempt]._replace(status=status, reason=reason)

    def fails(self, host: str, subtask: int = 0) -> None:
        self.becomes(self.begins(host, subtask), "FAILED", REFUSED)

    def speaks(self, host: str, subtask: int = 0) -> int:
        attempt = self.begins(host, subtask)
        self.speaking.add(attempt)
        self.placing.note_hello(attempt)
        return attempt

    def falls_silent(self, attempt: int, subtask: int = 0) -> None:
        self.speaking.discard(attempt)
        self.placing.note_silence(subtask, attempt)

    def looks(self, from_s: float, to_s: float) -> None:
        """Look every tenth of a second, while no process is wanted."""
        for tenth in range(round(10 * (to_s - from_s)) + 1):
            self.look(from_s + tenth / 10, wanted=())

    def look(self, now_s: float = 10.0, wanted: Iterable[int] = (0,), since_s: float = 5.0) -> None:
        self.placing.look(now_s, dict.fromkeys(wanted, since_s))
