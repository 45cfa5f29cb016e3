"""The answers of a committer in a task on a committable: every signal, and every error."""

from __future__ import annotations

from typing import Any

import pytest

from epochgate.runtime import (
    CommitImpossible,
    CommittableBatch,
    CommittableOperator,
    Committables,
    FailedForKnownReason,
    RetryLater,
    Warned,
)
from epochgate.runtime.observing.run_summary import RunSummary
from tests.runtime.committing.rig import Rig
from tests.runtime.committing.sinks import Counting, Target, TargetSink
from tests.runtime.committing.test_committing import committed_globally


def in_tasks(target: Target, **settings: Any) -> Rig:
    rig = Rig(lambda _: TargetSink(target), **settings)
    rig.give(0, "a", "b")
    rig.give(1, "c")
    return rig


def summary(rig: Rig) -> RunSummary:
    found = RunSummary()
    for event in rig.heard.events:
        found.apply({**event.to_json(), "at": 0.0})
    return found


@pytest.mark.parametrize("raises", [False, True])
def test_a_committable_to_be_retried_is_asked_for_again_alone(raises: bool) -> None:
    target = Target(signals={"b": [RetryLater("busy") if raises else ["retry_later", "busy"]]})
    rig = in_tasks(target, commit_retry_delay_s=4.0)
    rig.checkpoint()
    assert ("b" in target.in_tasks, committed_globally(target)) == (False, [])
    assert rig.warnings == ["the commit of checkpoint 1 will be tried again: subtask 0: busy"]
    rig.wait(3.9)
    assert len(target.calls) == 2
    rig.wait(0.1)
    # An error is a signal of each one without another; "a" was committed before it was raised.
    asked = ["a", "b"] if raises else ["b"]
    assert target.calls[2:] == [(1, 0, asked)]
    assert sorted(committed_globally(target)) == ["a", "b", "c"]


def test_one_that_an_earlier_commit_had_committed_goes_on_as_any_other() -> None:
    target = Target(in_tasks={"a": 1})
    rig = in_tasks(target)
    rig.checkpoint()
    assert sorted(committed_globally(target)) == ["a", "b", "c"]
    assert rig.warnings == rig.failures == []


@pytest.mark.parametrize("raises", [False, True])
def test_one_that_fails_for_a_known_reason_is_left_out_with_a_warning(raises: bool) -> None:
    reason = "its file is damaged"
    said = FailedForKnownReason(reason) if raises else ["failed", reason]
    target = Target(signals={"a": [said]})
    rig = in_tasks(target)
    rig.checkpoint()
    lost = ["a", "b"] if raises else ["a"]
    assert sorted(committed_globally(target)) == sorted({"a", "b", "c"} - set(lost))
    warned = [event.text for event in rig.heard.of(Warned)]
    assert warned == [
        f"subtask 0: checkpoint 1 goes on without committable '{row}' of subtask 0, whose rows "
        f"are lost: {reason}"
        for row in lost
    ]
    assert summary(rig).warnings_count == len(lost)
    rig.finish()
    assert rig.job.result.state == "finished"
    assert "a" not in target.in_tasks


def test_of_many_that_fail_a_few_are_told() -> None:
    rows = [f"row-{number:03}" for number in range(20)]
    target = Target(signals={row: [["failed", "gone"]] for row in rows})
    rig = Rig(lambda _: TargetSink(target), lambda start: 1)
    rig.give(0, *rows, "good")
    rig.checkpoint()
    assert committed_globally(target) == ["good"]
    assert len(rig.warnings) == 4
    assert rig.warnings[-1].endswith("checkpoint 1 goes on without further committables")


def test_what_is_put_in_the_place_of_a_committable_is_what_is_tried_again_and_goes_on() -> None:
    target = Target(signals={"b": [["update_and_retry_later", "b-rest", "half of it"]]})
    rig = in_tasks(target)
    rig.checkpoint()
    rig.wait(1.0)
    assert target.calls[2:] == [(1, 0, ["b-rest"])]
    assert sorted(committed_globally(target)) == ["a", "b-rest", "c"]
    assert rig.warnings == ["the commit of checkpoint 1 will be tried again: subtask 0: half of it"]


def test_what_is_put_in_its_place_is_stored_with_the_next_checkpoint() -> None:
    target = Target(signals={"b": [["update_and_retry_later", "b-rest"]]})
    rig = in_tasks(target, commit_retry_delay_s=50.0)
    rig.checkpoint()
    rig.checkpoint()
    rig.crash()
    assert [rows for _, s, rows in target.calls if s == 0] == [["a", "b"], ["b-rest"]]
    assert sorted(committed_globally(target)) == ["a", "b-rest", "c"]


def test_any_other_error_fails_the_attempt_whose_successor_commits_again() -> None:
    target = Target(signals={"b": [OSError("no answer")]})
    rig = in_tasks(target)
    rig.checkpoint()
    assert "OSError: no answer" in rig.failures[0]
    rig.wait(1.0)
    assert [rows for _, s, rows in target.calls if s == 0] == [["a", "b"], ["a", "b"]]
    assert sorted(committed_globally(target)) == ["a", "b", "c"]
    report = rig.job.master.report
    assert (report.regional_restarts, report.global_restarts) == (1, 0)


def test_one_that_can_never_be_committed_fails_the_job() -> None:
    rig = in_tasks(Target(signals={"b": [CommitImpossible("the table is gone")]}))
    rig.checkpoint()
    assert rig.job.result.state == "failed"
    assert "the table is gone" in (rig.job.result.reason or "")


def test_after_the_allowed_tries_the_job_fails_and_says_why() -> None:
    target = Target(signals={"b": [["retry_later", "busy"]] * 9})
    rig = in_tasks(target, commit_retries_max=2, commit_retry_delay_s=1.0)
    rig.checkpoint()
    for pause_s in (1.0, 2.0):
        assert not rig.job.is_over
        rig.wait(pause_s)
    assert rig.job.result.state == "failed"
    assert "subtask 0: busy" in (rig.job.result.reason or "")
    assert [rows for _, s, rows in target.calls if s == 0] == [["a", "b"], ["b"], ["b"]]


class Refusing(Counting):
    """Cannot process its first batch yet."""

    def __init__(self, errors: list[Exception]) -> None:
        super().__init__("refusing", None)
        self._errors = errors

    def process(self, batch: CommittableBatch) -> Committables:
        if self._errors:
            raise self._errors.pop()
        return super().process(batch)


@pytest.mark.parametrize("place", ["pre", "post"])
def test_an_operator_in_a_task_that_is_to_be_called_later_fails_its_attempt_alone(
    place: str,
) -> None:
    target, errors = Target(), list[Exception]([RetryLater("no answer")])

    class WithOperator(TargetSink):
        def pre_commit_topology(self) -> list[CommittableOperator]:
            return [Refusing(errors)] if place == "pre" else []

        def post_commit_topology(self) -> list[CommittableOperator]:
            return [Refusing(errors)] if place == "post" else []

    rig = Rig(lambda _: WithOperator(target))
    rig.give(0, "a")
    rig.checkpoint()
    assert rig.failures == ["no answer"]
    rig.wait(2.0)
    assert committed_globally(target) == ["a"]
    report = rig.job.master.report
    assert (report.regional_restarts, report.global_restarts) == (1, 0)
