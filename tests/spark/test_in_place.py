"""Attempts that begin in the process of the one before, and those that get another process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from epochgate.runtime.api.job_events import JobEvent, JobListener, SubtaskRestarted
from epochgate.spark.endings import TaskProcess
from epochgate.spark.identities import task_attempt_of
from tests.spark.numbers_program import BusyProgram, StumblingProgram
from tests.spark.running import NumberJob, number_job, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.kills, pytest.mark.timeout(300)]


def processes(job: NumberJob) -> list[TaskProcess]:
    """The process that speaks for each subtask."""
    found = {process.pid: process for process in job.handle._transport.processes()}
    return [found[job.pid(subtask)] for subtask in range(job.parallelism)]


def wait_for_attempt(job: NumberJob, number: int) -> None:
    def is_there() -> bool:
        return all(t.attempt == number and t.state == "running" for t in job.handle.status().tasks)

    wait_for(is_there, f"attempt {number}")


class Restarts(JobListener):
    """Keeps the process in which each restarted attempt runs."""

    def __init__(self) -> None:
        self.pids: list[int | None] = []

    def on_event(self, event: JobEvent) -> None:
        if isinstance(event, SubtaskRestarted):
            self.pids.append(event.pid)


@pytest.mark.versions
def test_an_attempt_that_raises_begins_again_in_its_process_unless_it_has_left_something(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    litter, note = ["", "thread", "socket"], tmp_path / "stumble"
    with number_job(
        spark, 100, parallelism=3, factory=lambda s: StumblingProgram(100, note, litter[s])
    ) as job:
        job.wait_until_running()
        job.wait_for_progress()
        before = processes(job)
        note.touch()
        wait_for_attempt(job, 1)
        after = processes(job)
        result = job.finish()
    stayed = [now.pid == then.pid for now, then in zip(after, before, strict=True)]
    assert stayed == [True, False, False]
    assert all(now.identity > then.identity for now, then in zip(after, before, strict=True))
    assert result.report.regional_restarts == 3
    replaced = [text for text in caplog.messages if "is replaced instead" in text]
    told = sorted(replaced, key=lambda text: text.partition(" of subtask ")[2])
    assert ["subtask 1" in told[0], "thread 'Thread-" in told[0]] == [True, True]
    assert ["subtask 2" in told[1], "open socket socket:[" in told[1]] == [True, True]


def test_what_fails_twice_without_a_checkpoint_between_is_tried_in_another_process(
    spark: Any, tmp_path: Path
) -> None:
    note, restarts = tmp_path / "stumble", Restarts()
    note.touch()
    with number_job(
        spark,
        100,
        parallelism=1,
        factory=lambda _: StumblingProgram(100, note, times=3),
        configuration={"checkpoint_interval_s": None},
        listeners=[restarts],
    ) as job:
        job.finish()
    second, third, fourth = restarts.pids
    assert second != third
    assert third == fourth


@pytest.mark.versions
def test_a_task_that_spark_kills_gets_another_process(spark: Any) -> None:
    with number_job(spark, 100, parallelism=2) as job:
        job.wait_until_running()
        before = processes(job)
        killed = task_attempt_of(before[1].identity)
        spark.sparkContext._jsc.sc().killTaskAttempt(killed, True, "by order of the test")
        job.wait_for_replacement(1, before[1].pid)
        after = processes(job)
        assert after[0] == before[0]
        assert task_attempt_of(after[1].identity) > killed
        job.finish()


def test_a_process_that_does_not_let_go_of_its_work_is_replaced(spark: Any) -> None:
    with number_job(spark, 5, parallelism=1, factory=lambda _: BusyProgram(20.0)) as job:
        job.wait_until_running()
        pid = job.pid(0)
        job.provider.script.coordinator.context.fail_job("the source was rewritten")
        job.wait_for_replacement(0, pid)
        assert job.handle.status().tasks[0].attempt == 1
        job.handle.cancel()
