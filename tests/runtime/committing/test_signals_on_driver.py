"""The answers of a committer on the driver on a checkpoint, where it commits alone and behind
others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from epochgate.runtime import (
    CommitFailed,
    CommitImpossible,
    Committables,
    Committed,
    Committer,
    FailedForKnownReason,
    RetryLater,
    SinkStart,
    UpdateAndRetryLater,
)
from tests.runtime.committing.rig import Rig
from tests.runtime.committing.sinks import DirectSink, Target, TargetCommitter, TargetSink
from tests.runtime.committing.test_committing import committed_globally
from tests.runtime.committing.test_signals import summary

Said = dict[int, list[BaseException]]


class SayingCommitter(TargetCommitter):
    """Raises of each checkpoint one after the other."""

    def __init__(self, target: Target, said: Said, asked: list[tuple[int, Committables]]) -> None:
        super().__init__(target)
        self._said, self._asked = said, asked

    def commit(self, checkpoint_id: int, committables: Committables) -> bool | None:
        self._asked.append((checkpoint_id, committables))
        if self._said.get(checkpoint_id):
            raise self._said[checkpoint_id].pop(0)
        return super().commit(checkpoint_id, committables)


class Run(Rig):
    """`kind`: a sink that commits on the driver alone, or in the tasks before."""

    def __init__(self, kind: type[TargetSink], said: Said, **settings: Any) -> None:
        self.target, self.asked = Target(), list[tuple[int, Committables]]()

        target, asked = self.target, self.asked

        class Saying(kind):  # type: ignore[misc,valid-type]  # it is given
            def create_committer(self, start: SinkStart) -> Committer:
                return SayingCommitter(target, said, asked)

        super().__init__(lambda _: Saying(target), **settings)
        self.take(1)

    def take(self, checkpoint: int) -> None:
        self.give(0, f"a{checkpoint}", f"b{checkpoint}")
        self.give(1, f"c{checkpoint}")
        self.checkpoint()

    @property
    def failed(self) -> list[CommitFailed]:
        return self.heard.of(CommitFailed)


KINDS = [DirectSink, TargetSink]
both = pytest.mark.parametrize("kind", KINDS)


@both
def test_a_checkpoint_to_be_retried_is_committed_after_the_pause(kind: type[TargetSink]) -> None:
    run = Run(kind, {1: [RetryLater("busy")]}, commit_retry_delay_s=4.0)
    assert committed_globally(run.target) == []
    run.wait(4.0)
    assert sorted(committed_globally(run.target)) == ["a1", "b1", "c1"]
    assert [event.is_tried_again for event in run.failed] == [True]


@both
def test_the_rest_of_a_checkpoint_is_asked_for_alone(kind: type[TargetSink]) -> None:
    run = Run(kind, {1: [UpdateAndRetryLater({0: ["b1"]}, "b1 is locked")]})
    run.wait(1.0)
    assert run.asked == [(1, {0: ["a1", "b1"], 1: ["c1"]}), (1, {0: ["b1"]})]
    assert run.target.globally == {1: {0: ["b1"]}}
    assert [event.reason for event in run.failed] == ["b1 is locked"]
    assert [event.committables for event in run.heard.of(Committed)] == [1]


@both
def test_the_rest_is_what_later_checkpoints_store(kind: type[TargetSink]) -> None:
    run = Run(kind, {1: [UpdateAndRetryLater({0: ["b1"]})]}, commit_retry_delay_s=50.0)
    run.take(2)
    assert run.job.store.load(2).uncommitted == {1: [[0, ["b1"]]]}
    run.crash()
    run.wait(50.0)
    assert run.target.globally[1] == {0: ["b1"]}
    assert [number for number, _ in run.asked] == [1, 1, 2]


@both
def test_a_rest_that_is_none_fails_the_job_with_what_it_must_be(kind: type[TargetSink]) -> None:
    rest: Any = ["b1"]
    run = Run(kind, {1: [UpdateAndRetryLater(rest)]})
    assert run.job.result.state == "failed"
    assert "the rest of checkpoint 1 in UpdateAndRetryLater is ['b1']" in (
        run.job.result.reason or ""
    )


@both
def test_a_checkpoint_that_fails_for_a_known_reason_is_left_out_and_warned_of(
    kind: type[TargetSink],
) -> None:
    run = Run(kind, {1: [FailedForKnownReason("the schema differs")]})
    assert run.warnings == [
        "commit of checkpoint 1 is left out, and its rows are lost: the schema differs"
    ]
    assert [(e.checkpoint_ids, e.is_left_out, e.is_tried_again) for e in run.failed] == [
        ((1,), True, False)
    ]
    assert summary(run).commit_failures == 1
    run.take(2)
    assert list(run.target.globally) == [2]
    assert run.job.store.load(2).uncommitted == {}
    run.crash()
    run.finish()
    assert sorted(committed_globally(run.target)) == ["a2", "b2", "c2"]


@both
def test_others_in_the_same_commit_are_committed_without_the_one_that_fails(
    kind: type[TargetSink],
) -> None:
    said: Said = {1: [RetryLater("busy"), FailedForKnownReason("gone")]}
    run = Run(kind, said, commit_retry_delay_s=5.0)
    run.take(2)
    run.wait(5.0)
    assert list(run.target.globally) == [2]
    assert [event.checkpoint_ids for event in run.heard.of(Committed)] == [(2,)]


@both
@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OSError("no answer"), "commit of checkpoints [1] failed: OSError: no answer"),
        (CommitImpossible("gone"), "commit of checkpoints [1] is impossible: gone"),
    ],
)
def test_any_other_error_fails_the_job_and_the_next_start_commits_again(
    kind: type[TargetSink], error: BaseException, says: str
) -> None:
    run = Run(kind, {1: [error]})
    assert run.job.result.state == "failed"
    assert says in (run.job.result.reason or "")
    run.crash()
    assert run.target.globally == {1: {0: ["a1", "b1"], 1: ["c1"]}}
    if kind is TargetSink:
        assert {row for _, _, rows in run.target.calls for row in rows} == {"a1", "b1", "c1"}


@both
@pytest.mark.parametrize("error", [None, FailedForKnownReason("gone")])
def test_no_work_is_done_after_a_checkpoint_that_was_left_out(
    kind: type[TargetSink], error: BaseException | None
) -> None:
    worked: list[int] = []

    class Working(Run):
        def after_commit(self) -> Callable[[int, Committables], None]:
            return lambda checkpoint, _: worked.append(checkpoint)

    run = Working(kind, {1: [] if error is None else [error]})
    run.take(2)
    run.job.settle()
    assert worked == [1, 2][error is not None :]


def test_an_event_tells_what_is_left_out() -> None:
    event = CommitFailed(0.0, (4,), 0.5, 0, False, "locked", is_left_out=True)
    assert str(event) == "the commit of checkpoint 4 is left out after try 1: locked"
