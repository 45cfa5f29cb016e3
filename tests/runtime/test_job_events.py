"""Those who watch a job hear of everything that happens to it, in order, and cannot disturb it."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from epochgate.runtime import (
    CheckpointEnded,
    CommitFailed,
    Committed,
    JobEnded,
    JobEvent,
    JobListener,
    JobRestarts,
    RetryLater,
    SubtaskFailed,
    SubtaskRestarted,
    SubtasksUp,
    Warned,
)
from epochgate.runtime.api.reports import RECENT_MAX, JobReport, JobResult, keep_recent
from epochgate.runtime.api.restart_strategies import NoRestart
from epochgate.runtime.api.transport import Message
from epochgate.runtime.observing.log import JobLog
from epochgate.runtime.observing.own_thread import OnOwnThread
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime.scripted import Script, simulated

Kind = TypeVar("Kind", bound=JobEvent)


class Recorder(JobListener):
    def __init__(self) -> None:
        self.events: list[JobEvent] = []
        self.closed = 0

    def on_event(self, event: JobEvent) -> None:
        self.events.append(event)

    def close(self) -> None:
        self.closed += 1

    def kinds(self) -> list[str]:
        return [type(event).__name__ for event in self.events]

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [event for event in self.events if isinstance(event, kind)]


def watched(script: Script | None = None, **settings: Any) -> tuple[SimulatedJob, Recorder]:
    recorder = Recorder()
    job = simulated(script or Script(), listeners=[recorder], subtasks=2, **settings)
    job.settle()
    return job, recorder


def newest(job: SimulatedJob, subtask: int) -> int:
    return max(i for i, p in job.transport.processes.items() if p.subtask == subtask)


def test_a_job_tells_its_start_each_checkpoint_each_commit_and_its_end() -> None:
    job, recorder = watched()
    job.master.request_checkpoint()
    job.flow()
    job.master.cancel("enough")
    job.flow()
    assert recorder.kinds() == [
        "JobStarted",
        "SubtasksUp",
        "CheckpointEnded",
        "Committed",
        "JobEnded",
    ]
    [checkpoint], [commit] = recorder.of(CheckpointEnded), recorder.of(Committed)
    assert (checkpoint.checkpoint_id, checkpoint.outcome) == (1, "completed")
    assert sorted(checkpoint.subtasks_s) == [0, 1]
    assert (commit.checkpoint_ids, commit.committables, commit.tries) == ((1,), 2, 0)
    [end] = recorder.of(JobEnded)
    assert (end.state, end.reason, end.checkpoint_id) == ("canceled", "enough", 1)
    job.master.close()
    assert recorder.closed == 1


def test_a_failover_of_one_subtask_is_told_with_its_reason_and_how_long_it_took() -> None:
    job, recorder = watched()
    job.transport.kill(newest(job, 1), "out of memory")
    job.settle()
    [failed], [restarted] = recorder.of(SubtaskFailed), recorder.of(SubtaskRestarted)
    assert (failed.subtask, failed.attempt, failed.delay_s) == (1, 0, 1.0)
    assert "out of memory" in failed.reason
    assert (restarted.subtask, restarted.attempt, restarted.checkpoint_id) == (1, 1, 0)
    assert restarted.down_s >= 1.0
    assert str(restarted) == (
        f"subtask 1 restarted from the beginning as attempt 1, {restarted.down_s:.2f} s after its "
        "failure"
    )
    assert len(recorder.of(SubtasksUp)) == 1


def test_a_failover_of_all_is_told_once_and_not_for_each_subtask() -> None:
    job, recorder = watched()
    job.master.request_checkpoint()
    job.flow()
    job.master.queue.post(job.master.job.lifecycle.fail_globally, "the ledger is lost")
    job.settle()
    [restart] = recorder.of(JobRestarts)
    assert (restart.reason, restart.delay_s) == ("the ledger is lost", 1.0)
    assert recorder.of(SubtaskRestarted) == []
    assert [up.checkpoint_id for up in recorder.of(SubtasksUp)] == [0, 1]


def test_the_failure_that_ends_a_job_says_that_no_restart_is_left() -> None:
    job, recorder = watched(restarts=NoRestart)
    job.transport.kill(newest(job, 0), "killed")
    job.flow()
    assert recorder.of(SubtaskFailed)[0].delay_s is None
    [end] = recorder.of(JobEnded)
    assert (end.state, end.level) == ("failed", logging.ERROR)


def test_an_aborted_checkpoint_names_the_subtasks_that_did_not_answer() -> None:
    job, recorder = watched(checkpoint_timeout_s=30.0)
    job.faults.doom("acknowledge", "lost")
    job.master.request_checkpoint()
    job.flow()
    job.wait(30.0)
    job.flow()
    [aborted] = recorder.of(CheckpointEnded)
    assert aborted.outcome == "aborted"
    assert (len(aborted.missing), len(aborted.subtasks_s)) == (1, 1)
    assert aborted.missing[0] not in aborted.subtasks_s
    assert aborted.duration_s >= 30.0
    assert f"(without subtask {aborted.missing[0]})" in str(aborted)


def test_figures_are_of_the_last_completed_checkpoint_when_each_subtask_acknowledged() -> None:
    job, recorder = watched()
    for process in job.transport.processes.values():
        process.worker.send = with_figures(process.to_driver.append)
    job.master.request_checkpoint()
    job.flow()
    job.master.request_checkpoint()
    job.faults.doom("acknowledge", "lost")
    job.flow()
    job.transport.kill(newest(job, 1), "killed")
    job.settle()
    job.master.cancel("enough")
    job.flow()
    assert [one.outcome for one in recorder.of(CheckpointEnded)] == ["completed", "aborted"]
    assert sum(figures["rows"] for figures in job.master.report.metrics.values()) == 18
    figures = [one.figures for one in recorder.of(CheckpointEnded)]
    assert figures == [{"rows": 14}] * 2
    assert recorder.of(JobEnded)[0].figures == {"rows": 14}


def with_figures(send: Callable[[Message], None]) -> Callable[[Message], None]:
    """Tell of seven rows before an acknowledgement, and of nine after it."""

    def both(message: Message) -> None:
        if message[0] != "acknowledge":
            send(message)
            return
        for one in (["metrics", {"rows": 7}], message, ["metrics", {"rows": 9}]):
            send(one)

    return both


def test_a_commit_that_is_tried_again_is_told_once_and_not_as_a_warning_too() -> None:
    job, recorder = watched(Script(errors={"committer.commit": [RetryLater("busy")]}))
    job.master.request_checkpoint()
    job.flow()
    job.wait(1.0)
    job.flow()
    [failed], [done] = recorder.of(CommitFailed), recorder.of(Committed)
    assert (failed.is_tried_again, failed.reason, failed.level) == (True, "busy", logging.WARNING)
    assert (done.checkpoint_ids, done.tries) == ((1,), 1)
    assert recorder.of(Warned) == []
    assert job.master.report.warnings == ["commit of checkpoints [1] will be tried again: busy"]


def test_each_event_is_one_line_and_plain_json() -> None:
    job, recorder = watched()
    job.transport.kill(newest(job, 1), "a reason\nof two lines")
    job.settle()
    job.master.request_checkpoint()
    job.master.warn("the disk is slow")
    job.flow()
    job.master.cancel("enough")
    job.flow()
    assert len({*recorder.kinds()}) == 8
    for event in recorder.events:
        assert len(str(event).splitlines()) == 1
        told = json.loads(json.dumps(event.to_json()))
        assert told["event"] == type(event).__name__
        assert told["at"] == event.at


class Broken(JobListener):
    def on_event(self, event: JobEvent) -> None:
        raise ArithmeticError("no good")

    def close(self) -> None:
        raise ArithmeticError("no good either")


def test_a_listener_that_raises_is_logged_once_and_disturbs_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    recorder = Recorder()
    job = simulated(Script(), listeners=[Broken(), recorder])
    job.settle()
    job.master.cancel("enough")
    job.flow()
    job.master.close()
    assert recorder.kinds() == ["JobStarted", "SubtasksUp", "JobEnded"]
    assert [r.getMessage() for r in caplog.records] == [
        "the listener Broken has raised; this is said once"
    ]


class Held(Recorder):
    def __init__(self) -> None:
        super().__init__()
        self.may_go_on = threading.Event()

    def on_event(self, event: JobEvent) -> None:
        self.may_go_on.wait(60)
        super().on_event(event)


def test_a_slow_listener_holds_nothing_up_and_what_it_misses_is_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    slow = Held()
    listener = OnOwnThread(slow, waiting_max=3)
    for number in range(20):
        listener.on_event(Warned(0.0, str(number)))
    slow.may_go_on.set()
    listener.close()
    heard = [str(event) for event in slow.events]
    assert heard == [str(number) for number in range(len(heard))]
    assert 3 <= len(heard) <= 4
    assert slow.closed == 1
    assert caplog.messages == [f"the listener Held was too slow for {20 - len(heard)} events"]


def test_a_listener_that_hangs_is_left_behind(caplog: pytest.LogCaptureFixture) -> None:
    hanging = Held()
    listener = OnOwnThread(hanging, patience_s=0.01)
    listener.on_event(Warned(0.0, "word"))
    listener.close()
    assert "is not done 0.01 s after the job's end" in caplog.text
    hanging.may_go_on.set()


def test_the_log_has_a_line_for_each_event_below_one_logger(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "epochgate.job")
    job = simulated(Script(), listeners=[JobLog()], subtasks=2)
    job.settle()
    job.transport.kill(newest(job, 1), "killed")
    job.settle()
    job.master.request_checkpoint()
    job.flow()
    job.master.cancel("enough")
    job.flow()
    assert [record.name for record in caplog.records] == [
        "epochgate.job",
        "epochgate.job",
        "epochgate.job.failover",
        "epochgate.job.failover",
        "epochgate.job.checkpoints",
        "epochgate.job.commits",
        "epochgate.job",
    ]
    assert (
        caplog.messages[2] == "subtask 1 failed in attempt 0, restarts in 1 s (4 more left): killed"
    )
    assert caplog.messages[-1].startswith("job canceled after ")
    assert caplog.messages[-1].endswith(": enough")


def test_a_report_keeps_the_newest_entries_and_counts_all() -> None:
    kept: list[int] = []
    for number in range(10 * RECENT_MAX):
        keep_recent(kept, number)
        assert len(kept) <= 2 * RECENT_MAX
    assert kept[-RECENT_MAX:] == list(range(9 * RECENT_MAX, 10 * RECENT_MAX))


def test_a_result_is_shown_in_one_line_and_its_failures_by_the_time_since_the_start() -> None:
    job, _ = watched()
    job.wait(100.0)
    job.transport.kill(newest(job, 1), "killed")
    job.settle()
    job.master.request_checkpoint()
    job.flow()
    job.master.cancel("enough")
    job.flow()
    assert repr(job.result) == (
        "<JobResult: canceled, because 'enough'; last checkpoint 1; checkpoints: 1 completed, 0 "
        "aborted; failovers: 1 of one subtask, 0 of all>"
    )
    assert 100.0 <= job.result.report.failures[0].at_s < 101.0
    told = json.loads(json.dumps(job.result.to_json()))
    assert (told["state"], told["regional_restarts"]) == ("canceled", 1)
    assert repr(JobResult("finished", None, JobReport(), 0)).startswith("<JobResult: finished; ")
    long = "the job failed: " + "a reason in many words, " * 20
    shown = repr(JobResult("failed", f'{long}and its end\n  File "a.py"', JobReport(), 0))
    assert f"because '{long}and its end'; last checkpoint none" in shown
    assert len(shown.splitlines()) == 1
