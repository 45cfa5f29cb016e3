"""A job on `local[N,F]`: exactly once while its workers die, and a clear end whatever happens."""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import socket
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from epochgate.errors import EpochgateError
from epochgate.runtime import FatalTaskError, RecreateOnReset
from epochgate.runtime.api.restart_strategies import NoRestart
from epochgate.runtime.store import (
    CheckpointShelf,
    DirectoryCheckpointStore,
    InMemoryCheckpointStore,
)
from epochgate.runtime.tracing.validation import validated
from epochgate.spark.errors import ProgramNotPicklable, TooFewSlots
from epochgate.spark.handle import JobHandle
from epochgate.spark.job import run_job
from epochgate.spark.wire import CannotBind, ChannelClosed, TaskChannel
from epochgate.testing import Script, ScriptedCoordinator
from tests.spark import numbers_program
from tests.spark.numbers_program import (
    BusyProgram,
    FailingProgram,
    LingeringProgram,
    NumberProgram,
    NumberProvider,
    RangeCommitter,
    SendingProgram,
    number_configuration,
)
from tests.spark.running import (
    Chaos,
    NumberJob,
    is_gone,
    is_idle,
    number_job,
    send_signal,
    wait_for,
)

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def store() -> InMemoryCheckpointStore:
    return InMemoryCheckpointStore(CheckpointShelf(), job_id="numbers")


def test_a_job_without_failures_ends_with_everything_committed_once(spark: Any) -> None:
    with number_job(spark, 50) as job:
        result = job.finish()
    assert result.report.failures == []
    assert result.report.regional_restarts == 0
    assert result.report.metrics == {subtask: {"number": 50} for subtask in range(4)}


def attempts_that_ran(traces: Path) -> int:
    """As the driver has written; each of them had begun a trace of its own before."""
    [driver] = traces.glob("*/driver.000001.jsonl")
    told = [json.loads(line) for line in driver.read_text(encoding="utf-8").splitlines()]
    return sum(re.fullmatch(r"attempt\[\d+\]\.run", one.get("do", "")) is not None for one in told)


@pytest.mark.kills
@pytest.mark.parametrize("seed", [1, 2])
def test_workers_killed_at_random_moments_lose_and_repeat_nothing(
    spark: Any, seed: int, tmp_path: Path
) -> None:
    with number_job(spark, 400, journal=tmp_path) as job:
        job.wait_until_running()
        chaos = Chaos(job, seed, workers=8)
        chaos.run()
        result = job.finish()
    assert len(chaos.kills) >= 6
    assert result.report.regional_restarts >= 6
    assert result.report.global_restarts == 0
    validation = validated([tmp_path])
    assert validation.is_accepted(), validation.to_json()
    assert validation.joined >= attempts_that_ran(tmp_path) >= 4
    assert sum(not verdict.is_closed for verdict in validation.verdicts) >= 4


def test_a_killed_worker_is_replaced_and_the_others_stay(spark: Any) -> None:
    with number_job(spark, 200) as job:
        job.wait_until_running()
        job.wait_for_progress()
        before = [job.pid(subtask) for subtask in range(4)]
        send_signal(before[2], signal.SIGKILL)
        job.wait_for_replacement(2, before[2])
        after = [job.pid(subtask) for subtask in range(4)]
        assert [a == b for a, b in zip(after, before, strict=True)] == [True, True, False, True]
        assert not job.handle.status().commit_on_input
        result = job.finish()
    assert result.report.regional_restarts == 1


def test_a_coordinator_takes_all_subtasks_back_together_and_they_begin_again_in_their_processes(
    spark: Any,
) -> None:
    with number_job(spark, 300) as job:
        job.wait_until_running()
        job.wait_for_progress()
        before = [job.pid(subtask) for subtask in range(4)]
        job.provider.script.coordinator.context.fail_job("the source was rewritten")
        wait_for(lambda: all(t.attempt == 1 for t in job.handle.status().tasks), "the restart")
        job.wait_until_running()
        assert [job.pid(subtask) for subtask in range(4)] == before
        result = job.finish()
    assert result.report.global_restarts == 1


def is_made(made: list[ScriptedCoordinator], count: int) -> bool:
    return len(made) >= count


def wait_for_checkpoints(job: JobHandle, count: int) -> None:
    goal = job.status().last_checkpoint_id + count
    wait_for(lambda: job.status().last_checkpoint_id >= goal, "checkpoints")


def test_a_coordinator_recreated_at_every_reset_loses_and_repeats_nothing(spark: Any) -> None:
    script, committer = Script(answer=lambda request: {"asked": request}), RangeCommitter()
    provider, made = NumberProvider(150, script), script.coordinators
    provider.is_held.set()
    with run_job(
        spark,
        number_configuration(RecreateOnReset(provider), 2),
        lambda subtask: NumberProgram(150),
        store=store(),
        committer=committer,
        by_value=[numbers_program],
    ) as job:
        for number in range(1, 4):
            wait_for_checkpoints(job, 2)
            made[-1].context.fail_job("the source was rewritten")
            made[0].context.fail_job("a word from the past")
            wait_for(partial(is_made, made, number + 1), "the next coordinator")
            answer = job.request("numbers", ["how far", number]).result(30)
            assert answer["asked"] == ["how far", number]
        provider.is_held.clear()
        result = job.wait(60)
    assert result.state == "finished", result.reason
    assert committer.problems(2, 150) == []
    assert (len(made), result.report.global_restarts) == (4, 3)
    assert all(coordinator.is_closed for coordinator in made)


@pytest.mark.versions
def test_a_job_that_another_user_cancels_in_spark_fails(spark: Any) -> None:
    with number_job(spark, 100) as job:
        job.wait_until_running()
        spark.sparkContext.cancelAllJobs()
        result = job.handle.wait(30)
    assert result.state == "failed"
    assert "Spark has canceled the job" in str(result.reason)


@pytest.mark.kills
def test_a_stopped_worker_is_replaced_and_cannot_come_back(spark: Any) -> None:
    with number_job(spark, 300, heartbeat_interval_s=0.3, heartbeat_timeout_s=1.5) as job:
        job.wait_until_running()
        job.wait_for_progress()
        pid = job.pid(1)
        send_signal(pid, signal.SIGSTOP)
        wait_for(lambda: job.handle.report.failures != [], "the loss is noticed")
        send_signal(pid, signal.SIGCONT)
        job.wait_for_replacement(1, pid)
        job.wait_for_progress()
        wait_for(lambda: is_gone(pid), "the zombie leaves", 20)
        result = job.finish()
    assert "nothing was heard" in result.report.failures[0].reason


@pytest.mark.kills
def test_a_worker_that_stays_stopped_is_replaced(spark: Any) -> None:
    with number_job(spark, 300, heartbeat_interval_s=0.3, heartbeat_timeout_s=1.5) as job:
        job.wait_until_running()
        pid = job.pid(3)
        send_signal(pid, signal.SIGSTOP)
        job.wait_for_replacement(3, pid)
        wait_for(lambda: is_gone(pid), "Spark kills it", 20)
        job.finish()


def intruder(job: NumberJob, **changes: Any) -> TaskChannel:
    """A process with the run's key that claims to be a task."""
    transport = job.handle._transport
    hello = {
        "run_id": transport._run_id,
        "subtask": 1,
        "identity": 1,
        "pid": os.getpid(),
        "host": "here",
    }
    return TaskChannel.connect(transport.address, transport._settings["key"], hello | changes)


def last_words(channel: TaskChannel, messages: list[Any]) -> str:
    """Return why the driver closes the channel."""
    try:
        channel.send_many(messages)
        while True:
            channel.receive(5.0)
    except ChannelClosed as error:
        return str(error)


def test_what_a_zombie_says_does_not_count(spark: Any) -> None:
    with number_job(spark, 100) as job:
        job.wait_until_running()
        send_signal(job.pid(1), signal.SIGKILL)
        job.wait_for_progress()
        job.wait_until_running()
        newest = max(process.identity for process in job.handle._transport.processes())
        old = min({process.identity for process in job.handle._transport.processes()})
        free = next(i for i in range(1, newest) if i not in job.handle._transport._connections)
        assert old < newest
        lies = [
            ["acknowledge", checkpoint, False, {"numbers": b"\x01"}, [[1, 999]]]
            for checkpoint in range(1, 200)
        ]
        with intruder(job, identity=free) as zombie:
            assert "newer" in last_words(zombie, lies)
        result = job.finish()
    assert result.report.zombies_refused == 1


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"run_id": "another"}, "belongs to the run 'another'"),
        ({"subtask": 4}, "no subtask 4"),
        ({"identity": 0}, "identity 0"),
        ({"host": None}, "host None"),
    ],
)
def test_a_hello_that_cannot_be_meant_is_turned_away(
    spark: Any, changes: dict[str, Any], reason: str
) -> None:
    with number_job(spark, 20) as job:
        job.wait_until_running()
        with intruder(job, **changes) as channel:
            assert reason in last_words(channel, [])
        job.finish()


def test_a_process_that_connects_after_the_end_is_told_to_leave(spark: Any, tmp_path: Path) -> None:
    note = tmp_path / "closing"
    with number_job(spark, 20, factory=lambda _: LingeringProgram(20, note)) as job:
        job.provider.is_held.clear()
        wait_for(note.exists, "the first process closes its operator")
        newest = max(job.handle._transport._newest.values())
        with intruder(job, identity=newest + 1) as late:
            assert {message[0] for message in late.receive(5.0)} == {"finish"}
        note.unlink()
        job.finish()


@pytest.mark.versions
def test_an_exception_of_user_code_restarts_the_subtask_until_the_strategy_gives_up(
    spark: Any,
) -> None:
    settings = {"restart_strategy": NoRestart()}
    failing = ValueError("row 17 is broken")
    job = NumberJob(spark, 5, factory=lambda _: FailingProgram(failing), configuration=settings)
    result = job.handle.wait(60)
    assert result.state == "failed"
    assert result.reason is not None
    assert "row 17 is broken" in result.reason


def test_a_fatal_error_of_user_code_fails_the_job_at_once(spark: Any) -> None:
    fatal = FatalTaskError("the schema has changed")
    job = NumberJob(spark, 5, factory=lambda _: FailingProgram(fatal))
    result = job.handle.wait(60)
    assert result.state == "failed"
    assert "the schema has changed" in str(result.reason)


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (
            SendingProgram([{1}]),
            r"an event of operator 'numbers' to its coordinator is not plain: {1}",
        ),
        (
            SendingProgram(1, {2}),
            r"what the program's metrics() returned is not plain: {2} is a set",
        ),
    ],
)
def test_what_cannot_travel_fails_the_job_with_where_it_comes_from(
    spark: Any, program: SendingProgram, told: str
) -> None:
    result = NumberJob(spark, 5, factory=lambda _: program).handle.wait(60)
    assert result.state == "failed"
    assert told in str(result.reason)


@pytest.mark.versions
def test_a_program_that_executors_cannot_import_fails_the_job_and_names_the_module(
    spark: Any,
) -> None:
    def factory(subtask: int) -> NumberProgram:
        import a_module_that_does_not_exist  # type: ignore[import-not-found]

        return NumberProgram(a_module_that_does_not_exist.last)

    result = NumberJob(spark, 5, factory=factory).handle.wait(60)
    assert result.state == "failed"
    assert "needs the module 'a_module_that_does_not_exist'" in str(result.reason)


def test_what_cannot_be_pickled_is_refused_before_the_job_starts(spark: Any) -> None:
    with socket.socket() as unpicklable, pytest.raises(ProgramNotPicklable, match="picklable"):
        NumberJob(spark, 5, factory=lambda subtask: unpicklable)


@pytest.mark.kills
@pytest.mark.parametrize("piece_s", [0.0, 30.0])
def test_cancel_leaves_no_busy_process(spark: Any, piece_s: float) -> None:
    with number_job(spark, 5, factory=lambda subtask: BusyProgram(piece_s)) as job:
        job.wait_until_running()
        pids = [job.pid(subtask) for subtask in range(4)]
        job.handle.cancel()
        assert job.handle.wait(20).state == "canceled"

        wait_for(lambda: all(is_idle(pid) for pid in pids), "no worker is busy", 15)
    wait_for(lambda: own_threads() == [], "no thread of the job is left", 5)


def own_threads() -> list[str]:
    """Those of jobs; the watch over failing jobs is the session's."""
    names = (thread.name for thread in threading.enumerate())
    return [name for name in names if name.startswith("epochgate") and name != "epochgate-failing"]


@pytest.mark.versions
def test_a_stopped_job_resumes_where_it_was(spark: Any) -> None:
    shelf = CheckpointShelf()
    with number_job(spark, 200, shelf=shelf) as first:
        first.wait_until_running()
        first.wait_for_progress()
        first.handle.stop()
        result = first.handle.wait(60)
        assert result.state == "finished"
    with number_job(spark, 200, shelf=shelf) as second:
        second.committer.committed.update(first.committer.committed)
        second.finish()


@pytest.mark.versions
def test_metrics_of_the_tasks_arrive(spark: Any) -> None:
    with number_job(spark, 50) as job:
        wait_for(lambda: len(job.handle.report.metrics) == 4, "metrics of all subtasks")
        job.finish()
    assert all("number" in counters for counters in job.handle.report.metrics.values())


@pytest.mark.versions
def test_more_subtasks_than_slots_are_refused_with_both_numbers(spark: Any) -> None:
    with pytest.raises(TooFewSlots, match=r"5 subtasks.* 4 task slots"):
        NumberJob(spark, 5, parallelism=5)


def test_a_start_that_was_refused_releases_checkpoints_and_target(
    spark: Any, tmp_path: Path
) -> None:
    kept: list[BaseException] = []  # as a notebook keeps the last error, with its frames
    for parallelism, match in ((5, "5 subtasks"), (1, "wire is 'none'")):
        committer, store = RangeCommitter(), DirectoryCheckpointStore(tmp_path, job_id="numbers")
        with pytest.raises(EpochgateError, match=match) as refused:
            run_job(
                spark,
                number_configuration(NumberProvider(5), parallelism),
                lambda subtask: NumberProgram(5),
                store=store,
                committer=committer,
                by_value=[numbers_program],
                wire="none" if parallelism == 1 else "auto",  # type: ignore[arg-type]  # it is refused
            )
        kept.append(refused.value)
        assert committer.is_closed
    DirectoryCheckpointStore(tmp_path, job_id="numbers").close()


def test_slots_that_another_job_holds_are_waited_for_and_then_named(spark: Any) -> None:
    with number_job(spark, 100, parallelism=3) as first:
        first.wait_until_running()
        with number_job(spark, 100, parallelism=2, process_timeout_s=6.0) as second:
            result = second.handle.wait(60)
            assert result.state == "failed"
            assert "needs 2 task slots" in str(result.reason)
            assert "1 of 2 subtasks" in str(result.reason)
        first.finish()


def test_a_port_that_is_taken_is_named(spark: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotBind, match=str(port)):
            NumberJob(spark, 5, port=port)


PROJECT = """
from epochgate.spark.job import run_job
from tests.spark.numbers_program import NumberProgram, NumberProvider, number_configuration

def make(subtask):
    return NumberProgram(10)

def start(spark, store):
    return run_job(spark, number_configuration(NumberProvider(10), 2), make, store=store)
"""


def test_ten_lines_in_a_module_that_only_the_driver_has_are_enough(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project_of_ten_lines.py").write_text(PROJECT)
    monkeypatch.syspath_prepend(tmp_path)
    with importlib.import_module("project_of_ten_lines").start(spark, store()) as job:
        result = job.wait(60)
    assert result.is_success(), result.reason
