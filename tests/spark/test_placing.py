"""Attempts are turned away from hosts that cannot reach the driver, while another has room."""

from __future__ import annotations

from collections.abc import Iterable

from epochgate.spark.placing import FAILURES_BEFORE_HELLO_MAX, Placing
from epochgate.spark.resident_job import TaskRun
from epochgate.spark.slots import Executor

TIMEOUT_S = 60.0
REFUSED = "CannotConnect: connection refused"


class ScriptedSpark:
    """A Spark that remembers what the test lets happen, and is asked by the class under test."""

    def __init__(self, *hosts: str) -> None:
        self.rooms: set[str] | None = set(hosts)
        self.hosts = {*hosts}
        self.attempts: list[TaskRun] = []
        self.killed: list[int] = []
        self.asked_behind: list[int] = []
        self.said: list[str] = []
        self.overdue: list[tuple[int, str]] = []
        self.given_up: list[str] = []
        self.placing = Placing(
            self,
            driver="driver:7000",
            process_timeout_s=TIMEOUT_S,
            why_missing=lambda missing: f"no process has come for {missing}",
            on_warning=self.said.append,
            on_overdue=lambda subtask, reason: self.overdue.append((subtask, reason)),
            on_given_up=self.given_up.append,
        )

    def runs(self, skipped: int) -> list[TaskRun] | None:
        self.asked_behind.append(skipped)
        return self.attempts[skipped:]

    def executors(self) -> dict[str, Executor] | None:
        if self.rooms is None:
            return None
        self.hosts |= self.rooms
        return {f"of {host}": Executor(host, host in self.rooms) for host in self.hosts}

    def kill(self, task_attempt_id: int, reason: str) -> None:
        self.killed.append(task_attempt_id)
        self.becomes(task_attempt_id, "KILLED")

    def begins(self, host: str, subtask: int = 0) -> int:
        """The next attempt of a subtask, on a host; returns its id."""
        self.attempts.append(TaskRun(subtask, len(self.attempts), f"of {host}", "RUNNING", ""))
        return len(self.attempts) - 1

    def becomes(self, attempt: int, status: str, reason: str = "") -> None:
        self.attempts[attempt] = self.attempts[attempt]._replace(status=status, reason=reason)

    def fails(self, host: str, subtask: int = 0) -> None:
        self.becomes(self.begins(host, subtask), "FAILED", REFUSED)

    def speaks(self, host: str, subtask: int = 0) -> None:
        self.placing.note_hello(self.begins(host, subtask))

    def look(self, now_s: float = 10.0, wanted: Iterable[int] = (0,), since_s: float = 5.0) -> None:
        self.placing.look(now_s, dict.fromkeys(wanted, since_s))


def test_an_attempt_on_a_host_that_has_failed_is_turned_away_while_another_has_room() -> None:
    spark = ScriptedSpark("bad", "good")
    spark.fails("bad")
    spark.begins("bad")
    spark.look()
    assert spark.killed == [1]
    [warning] = spark.said
    assert (
        f"a task on bad failed before it could speak to the driver at driver:7000: {REFUSED}"
        in warning
    )
    spark.begins("good")
    spark.look()
    assert spark.killed == [1]


def test_nothing_is_said_of_the_only_host_while_nothing_speaks_against_it() -> None:
    spark = ScriptedSpark("only")
    spark.begins("only")
    spark.look()
    assert (spark.said, spark.killed) == ([], [])


def test_each_attempt_is_turned_away_once() -> None:
    spark = ScriptedSpark("bad", "good")
    spark.fails("bad")
    attempt = spark.begins("bad")
    spark.look()
    spark.becomes(attempt, "RUNNING")  # Spark takes its time
    spark.look()
    spark.look()
    assert spark.killed == [attempt]


def test_without_room_elsewhere_an_attempt_may_try_and_that_is_told_once() -> None:
    spark = ScriptedSpark("bad")
    spark.fails("bad")
    spark.begins("bad")
    for _ in range(4):
        spark.look()
    assert spark.killed == []
    assert len(spark.said) == 2
    assert "the only free slots are on hosts whose tasks could not speak" in spark.said[1]
    spark.rooms = {"bad", "good"}
    spark.look()
    assert spark.killed == [1]


def test_a_host_whose_process_speaks_is_trusted_again() -> None:
    spark = ScriptedSpark("bad", "good")
    spark.fails("bad")
    spark.look()
    spark.speaks("bad")
    spark.begins("bad", subtask=1)
    spark.look(wanted=[1])
    assert spark.killed == []


def test_a_subtask_that_is_not_missing_is_left_alone() -> None:
    spark = ScriptedSpark("bad", "good")
    spark.fails("bad")
    spark.begins("bad", subtask=1)
    spark.look(wanted=[0])
    assert spark.killed == []


def test_where_no_process_has_ever_come_failures_in_a_row_end_the_job_with_the_last() -> None:
    spark = ScriptedSpark("bad")
    for _ in range(FAILURES_BEFORE_HELLO_MAX):
        spark.fails("bad")
    spark.look()
    [reason] = spark.given_up
    assert "the tasks fail before they can speak to the driver; subtask 0 did 5 times" in reason
    assert reason.endswith(REFUSED)
    spark.fails("bad")
    spark.look(now_s=1000.0)
    assert len(spark.given_up) == 1
    assert spark.overdue == []


def test_where_processes_have_come_the_restart_strategy_is_asked_once_for_each_time_limit() -> None:
    spark = ScriptedSpark("bad")
    spark.speaks("bad")
    for _ in range(2 * FAILURES_BEFORE_HELLO_MAX):
        spark.fails("bad")
    for now_s in (10.0, 66.0, 67.0, 100.0, 127.0):
        spark.look(now_s=now_s)
    assert [subtask for subtask, _ in spark.overdue] == [0, 0]
    assert spark.overdue[0][1] == (
        f"no process has come for [0]. The last failure of a task: {REFUSED}"
    )
    assert spark.given_up == []


def test_a_first_process_that_does_not_come_in_time_ends_the_job() -> None:
    spark = ScriptedSpark()
    spark.look(now_s=66.0)
    assert spark.given_up == ["no process has come for [0]"]


def test_a_subtask_that_never_had_a_process_ends_the_job_although_another_has_one() -> None:
    spark = ScriptedSpark("only")
    spark.speaks("only", subtask=1)
    spark.look(now_s=66.0)
    assert spark.given_up == ["no process has come for [0]"]
    assert spark.overdue == []


def test_settled_attempts_are_not_asked_for_again() -> None:
    spark = ScriptedSpark("bad", "good")
    spark.speaks("good", subtask=1)
    spark.fails("bad")
    waiting = spark.begins("good")
    spark.fails("bad", subtask=2)
    spark.look()
    spark.look()
    assert spark.asked_behind == [0, 2]
    spark.placing.note_hello(waiting)
    spark.look()
    spark.look()
    assert spark.asked_behind == [0, 2, 2, 4]


def test_what_spark_does_not_tell_decides_nothing() -> None:
    spark = ScriptedSpark("bad", "good")
    spark.fails("bad")
    spark.begins("bad")
    spark.rooms = None
    spark.look(now_s=1000.0)
    assert (spark.killed, spark.said, spark.given_up) == ([], [], [])
