"""The tries of a commit and the pauses between them, in a task and on the driver; neither the death
of a process nor that of the driver starts the count again.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from epochgate.runtime import RetryLater
from tests.runtime.committing.rig import Rig
from tests.runtime.committing.sinks import Target, TargetSink
from tests.runtime.committing.test_committing import committed_globally
from tests.runtime.committing.test_signals_on_driver import Run, both

DELAY_S = 10.0


def busy(times: int) -> Target:
    return Target(signals={"a": [["retry_later", "busy"]] * times})


def with_failed_tries(target: Target, **settings: Any) -> Rig:
    """A job that has tried twice to commit in its only task, and has stored that."""
    rig = Rig(
        lambda _: TargetSink(target), lambda start: 1, commit_retry_delay_s=DELAY_S, **settings
    )
    rig.give(0, "a")
    rig.checkpoint()
    rig.wait(DELAY_S)
    assert target.tries == [0, 1]
    rig.checkpoint()
    return rig


def test_the_count_survives_the_process() -> None:
    rig = with_failed_tries(target := busy(2))
    rig.job.transport.kill(rig.identity(0))
    rig.wait(2.0)
    assert target.tries == [0, 1, 2]
    assert committed_globally(target) == ["a"]


def test_the_count_survives_a_restart_of_the_whole_job() -> None:
    rig = with_failed_tries(target := busy(2))
    rig.job.master.job.lifecycle.fail_globally("everything goes back")
    rig.job.rest()
    assert target.tries == [0, 1, 2]
    assert committed_globally(target) == ["a"]


def test_the_count_survives_the_driver() -> None:
    rig = with_failed_tries(target := busy(2))
    rig.crash()
    assert target.tries == [0, 1, 2]
    assert committed_globally(target) == ["a"]


def test_starts_together_have_no_more_tries_than_the_job() -> None:
    rig = with_failed_tries(target := busy(9), commit_retries_max=3)
    rig.crash()
    rig.wait(DELAY_S * 4)
    assert rig.job.result.state == "failed"
    assert target.tries == [0, 1, 2, 3]
    rig.crash()
    # The third failure was in no checkpoint.
    assert target.tries[4:] == [2]


def test_a_start_that_allows_fewer_tries_makes_the_last_one() -> None:
    rig = with_failed_tries(target := busy(9), commit_retries_max=10)
    rig._settings["commit_retries_max"] = 1
    rig.crash()
    assert target.tries == [0, 1, 1]
    assert rig.job.result.state == "failed"


def test_the_count_begins_again_with_the_next_checkpoint() -> None:
    rig = with_failed_tries(target := busy(2))
    rig.wait(DELAY_S * 4)
    rig.give(0, "b")
    rig.checkpoint()
    assert target.tries == [0, 1, 2, 0]


def test_the_pauses_in_a_task_double_up_to_their_limit() -> None:
    target, at = busy(5), list[float]()
    rig = Rig(
        lambda _: TargetSink(target),
        lambda start: 1,
        commit_retry_delay_s=1.0,
        commit_retry_delay_max_s=4.0,
    )
    rig.give(0, "a")
    rig.checkpoint()
    while len(target.calls) < 6:
        if len(target.calls) > len(at):
            at.append(rig.job.clock.now_s())
        rig.wait(0.25)
    at.append(rig.job.clock.now_s())
    assert [after - before for before, after in pairwise(at)] == [1, 2, 4, 4, 4]


# on the driver


@both
def test_the_count_of_the_driver_survives_it(kind: type[TargetSink]) -> None:
    said = {1: [RetryLater("busy") for _ in range(3)]}
    run = Run(kind, {1: list[BaseException](said[1])}, commit_retry_delay_s=DELAY_S)
    run.wait(DELAY_S)
    run.checkpoint()
    run.crash()
    assert [event.tries for event in run.failed] == [0, 1]
    run.wait(DELAY_S * 2)  # the pause after two tries
    assert [event.tries for event in run.failed] == [0, 1, 2]
    run.wait(DELAY_S * 4)
    assert sorted(committed_globally(run.target)) == ["a1", "b1", "c1"]


@both
def test_the_driver_gives_up_after_the_allowed_tries_of_all_starts(kind: type[TargetSink]) -> None:
    errors: list[BaseException] = [RetryLater("busy") for _ in range(9)]
    run = Run(kind, {1: errors}, commit_retry_delay_s=DELAY_S, commit_retries_max=2)
    run.wait(DELAY_S)
    run.checkpoint()
    run.crash()
    run.wait(DELAY_S * 2)
    assert run.job.result.state == "failed"
    assert "failed too often: busy" in (run.job.result.reason or "")
    assert len(errors) == 6


# a task that does not answer


@pytest.mark.parametrize("has_committed", [False, True])
def test_an_attempt_whose_commit_hangs_is_replaced_and_its_successor_commits(
    has_committed: bool,
) -> None:
    target = Target()
    rig = Rig(lambda _: TargetSink(target), commit_timeout_s=30.0, work_warn_s=5.0)
    rig.give(0, "a")
    rig.give(1, "b")
    rig.job.flow()
    hung = rig.identity(0)
    rig.job.master.request_checkpoint()
    while not any(m[0] == "commit" for m in rig.job.transport.processes[hung].to_task):
        assert rig.job._round(), "the commit is asked for"
    rig.job.flow(only=1)
    while has_committed and rig.job.can(("tell", hung)):
        rig.job.step(("tell", hung))
    if has_committed:
        assert target.in_tasks["a"] == 1
    for seconds in (6.0, 25.0):
        rig.job.wait(seconds)
    assert any("the commit of checkpoint 1 in subtask 0" in text for text in rig.warnings)
    rig.wait(1.0)
    assert "commit_timeout_s" in rig.failures[0]
    assert rig.identity(0) != hung
    assert sorted(committed_globally(target)) == ["a", "b"]
    assert set(target.tries) == {0}, "a hang is no failed try"
    report = rig.job.master.report
    assert (report.regional_restarts, report.global_restarts) == (1, 0)


@both
def test_a_commit_of_the_driver_that_hangs_ends_the_job(kind: type[TargetSink]) -> None:
    run = Run(kind, {}, commit_timeout_s=30.0)
    run.job.blocking.hanging.add("commit")
    run.take(2)
    run.wait(31.0)
    assert run.job.result.state == "failed"
    assert "commit_timeout_s" in (run.job.result.reason or "")
    run.crash()
    assert list(run.target.globally) == [1, 2]
