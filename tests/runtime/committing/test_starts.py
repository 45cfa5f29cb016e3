"""The start of a job whose sink or code is another than that of an earlier one with commits under
way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pytest

from epochgate.runtime import (
    CommittableOperator,
    Committables,
    Committer,
    FailedForKnownReason,
    OperatorContext,
    RetryLater,
    Sink,
    SinkStart,
    SinkWriter,
    UpdateAndRetryLater,
)
from epochgate.runtime.shell.fitting import StageMismatch, StepMissing
from tests.runtime.committing.rig import Rig
from tests.runtime.committing.sinks import Counting, DirectSink, Target, TargetSink
from tests.runtime.committing.test_committing import committed_globally

PAUSE_S = 1000.0


def pending(target: Target, sink: Callable[[int], Sink], **starts: Callable[[int], int]) -> Rig:
    """A job that has not committed "a" in the tasks, and has stored that with its second
    checkpoint.
    """
    target.signals["a"] = [["retry_later", "busy"]]
    rig = Rig(sink, commit_retry_delay_s=PAUSE_S, **starts)
    rig.give(0, "a", "b")
    rig.give(1, "c")
    rig.checkpoint()
    rig.checkpoint()
    assert "a" not in target.in_tasks
    return rig


# parallelism


@pytest.mark.parametrize(
    ("subtasks", "asked"),
    [(1, [(1, 0, ["a"])]), (3, [(1, 0, ["a"])])],
)
def test_another_parallelism_commits_what_is_left_and_all_of_it_goes_on(
    subtasks: int, asked: list[tuple[int, int, list[str]]]
) -> None:
    target = Target()
    rig = pending(target, lambda _: TargetSink(target), parallelism=lambda s: (2, subtasks)[s])
    before = len(target.calls)
    rig.crash()
    assert target.calls[before:] == asked
    rig.finish()
    assert sorted(committed_globally(target)) == ["a", "b", "c"]
    assert sorted(target.in_tasks) == ["a", "b", "c"]


def test_with_fewer_subtasks_one_commits_the_shares_of_several() -> None:
    target = Target()
    target.signals["c"] = [["retry_later", "busy"]]
    rig = pending(target, lambda _: TargetSink(target), parallelism=lambda s: 2 - s)
    before = len(target.calls)
    rig.crash()
    assert target.calls[before:] == [(1, 0, ["a", "c"])]
    assert target.globally[1] == {0: ["b", "a"], 1: ["c"]}


def test_with_more_subtasks_each_commits_its_own_again() -> None:
    target = Target()
    target.signals["c"] = [["retry_later", "busy"]]
    rig = pending(target, lambda _: TargetSink(target), parallelism=lambda s: 2 + s)
    before = len(target.calls)
    rig.crash()
    assert sorted(target.calls[before:]) == [(1, 0, ["a"]), (1, 1, ["c"])]
    assert sorted(committed_globally(target)) == ["a", "b", "c"]


class WithWriterState(TargetSink):
    """The writers' state is a text of their own."""

    def create_writer(self, context: OperatorContext, state: bytes | None) -> SinkWriter:
        made = super().create_writer(context, state)
        made.snapshot = lambda checkpoint_id: b"own"  # type: ignore[method-assign]
        return made


def test_another_parallelism_redistributes_the_writers_state_alone() -> None:
    target, given = Target(), list[dict[int, bytes]]()

    def redistribute(states: Mapping[int, bytes], subtasks: int) -> dict[int, bytes | None]:
        given.append(dict(states))
        return dict.fromkeys(range(subtasks))

    rig = Rig(lambda _: WithWriterState(target, operators=True), lambda start: 2 - start)
    rig.redistribute = redistribute
    rig.give(0, "a")
    rig.checkpoint()
    rig.crash()
    assert given == [{0: b"own", 1: b"own"}]
    assert committed_globally(target) == ["a"]


# a sink that changes its steps


def test_a_sink_without_its_committers_in_the_tasks_is_refused_while_they_have_work() -> None:
    target = Target()
    rig = pending(target, lambda start: (DirectSink if start == 1 else TargetSink)(target))
    with pytest.raises(StepMissing) as refused:
        rig.crash()
    assert str(refused.value) == (
        "checkpoint 2 holds committables of checkpoint 1 on their way through the committers in "
        "the tasks, which the sink does not have. Start with the sink that the checkpoint was "
        "taken with until its commits are done, and then with the other one"
    )
    rig.crash()
    rig.finish()
    assert sorted(committed_globally(target)) == ["a", "b", "c"]


def test_once_its_commits_are_done_a_sink_may_do_without_them() -> None:
    target = Target()
    rig = Rig(lambda start: (TargetSink, DirectSink)[start](target))
    rig.give(0, "a")
    rig.checkpoint()
    rig.checkpoint()
    rig.crash()
    rig.give(0, "b")
    rig.finish()
    assert committed_globally(target) == ["a", "b"]
    assert list(target.in_tasks) == ["a"]


@pytest.mark.parametrize("combines", [False, True])
def test_what_a_sink_had_not_committed_on_the_driver_alone_goes_through_its_new_steps(
    combines: bool,
) -> None:
    target = Target()
    rig = Rig(lambda start: TargetSink(target, combines=combines) if start else DirectSink(target))
    rig.give(0, "a")
    rig.job.flow()
    rig.job.blocking.hanging.add("commit")
    for _ in range(2):
        rig.job.master.request_checkpoint()
        rig.job.flow()
    rig.crash()
    assert committed_globally(target) == ["a"]
    assert list(target.in_tasks) == ["a"]


# operators


@dataclass(frozen=True)
class Between(TargetSink):
    """`pre`, `post`: the parallelism of each operator."""

    pre: tuple[int | None, ...] = ()
    post: tuple[int | None, ...] = ()

    def pre_commit_topology(self) -> Sequence[CommittableOperator]:
        return [Counting(f"pre {n}", p) for n, p in enumerate(self.pre)]

    def post_commit_topology(self) -> Sequence[CommittableOperator]:
        return [Counting(f"post {n}", p) for n, p in enumerate(self.post)]


class DirectBetween(Between):
    create_task_committer = Sink.create_task_committer


def with_state(target: Target, first: Sink, then: Sink) -> Rig:
    rig = Rig(lambda start: then if start == 1 else first)
    rig.give(0, "a")
    rig.give(1, "b")
    for _ in range(2):
        rig.checkpoint()
    return rig


@pytest.mark.parametrize("then", [Between, DirectBetween])
@pytest.mark.parametrize(("pre", "post"), [((1,), ()), ((), (1,)), ((1, 1), ())])
def test_states_of_other_operators_on_the_driver_refuse_the_start(
    pre: tuple[int, ...], post: tuple[int, ...], then: type[Between]
) -> None:
    target = Target()
    rig = with_state(target, then(target, pre=pre, post=post), then(target))
    with pytest.raises(StageMismatch) as refused:
        rig.crash()
    assert str(refused.value) == (
        f"checkpoint 2 holds states of {len(pre + post)} operators with parallelism 1 between its "
        "commits, and the sink has 0: start with the operators that it was taken with"
    )
    rig.crash()
    rig.finish()
    assert sorted(committed_globally(target)) == ["a", "b"]


@pytest.mark.parametrize(
    ("then", "has"),
    [(Between(Target(), pre=(None,)), "the sink has 1"), (DirectSink(Target()), "DirectSink has")],
)
def test_states_of_other_operators_in_the_tasks_fail_the_job(then: Sink, has: str) -> None:
    target = Target()
    rig = with_state(target, Between(target, pre=(None,), post=(None,)), then)
    rig.crash()
    assert rig.job.result.state == "failed"
    reason = rig.job.result.reason or ""
    assert "holds states of 2 operators between the commits in the tasks" in reason
    assert has in reason


def test_operators_are_restored_by_a_restart_of_a_task_of_the_job_and_of_the_driver() -> None:
    target = Target()
    sink = Between(target, pre=(1, None), post=(None, 1))
    rig = Rig(lambda _: sink)
    # An operator that is given a row which its state holds raises.
    for number in range(4):
        rig.give(0, f"a{number}")
        rig.give(1, f"b{number}")
        rig.checkpoint()
        if number == 0:
            rig.job.transport.kill(rig.identity(0))
        elif number == 1:
            rig.job.master.job.lifecycle.fail_globally("everything goes back")
        elif number == 2:
            rig.crash()
        rig.job.rest()
    rig.finish()
    assert len(committed_globally(target)) == 8
    assert [text for text in rig.failures if "seen one twice" in text] == []


# several sinks


def labelled_rig(first: Sink, then: Sink) -> Rig:
    rig = Rig({"rows": first, "log": then}, commit_retry_delay_s=5.0)
    rig.give(0, "rows:1", "log:1")
    rig.give(1, "rows:2", "log:2")
    return rig


def test_of_several_sinks_one_commits_in_the_tasks_and_each_globally() -> None:
    rows, log = Target(signals={"rows:2": [["retry_later", "busy"]]}), Target()
    rig = labelled_rig(TargetSink(rows), DirectSink(log))
    rig.checkpoint()
    assert (rows.globally, log.globally) == ({}, {}), "a checkpoint goes on once it is whole"
    rig.wait(5.0)
    assert sorted(rows.in_tasks) == ["rows:1", "rows:2"]
    assert log.calls == []
    assert rows.globally == {1: {0: ["rows:1"], 1: ["rows:2"]}}
    assert log.globally == {1: {0: ["log:1"], 1: ["log:2"]}}
    rig.crash()
    rig.finish()
    assert sorted(committed_globally(log)) == ["log:1", "log:2"]


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize(
    "error", [UpdateAndRetryLater({0: ["rows:1"]}), FailedForKnownReason("gone"), RetryLater("no")]
)
def test_what_one_sink_says_on_the_driver_changes_nothing_for_the_other(
    is_first: bool, error: Exception
) -> None:
    rows, log, said = Target(), Target(), [error]

    class Saying(DirectSink):
        def create_committer(self, start: SinkStart) -> Committer:
            made = super().create_committer(start)
            commit = made.commit

            def saying(checkpoint_id: int, committables: Committables) -> bool | None:
                if said:
                    raise said.pop()
                return commit(checkpoint_id, committables)

            made.commit = saying  # type: ignore[method-assign]  # for this test
            return made

    both = [Saying(rows), TargetSink(log)]
    names = ["rows", "log"]
    order = [0, 1] if is_first else [1, 0]
    rig = Rig({names[n]: both[n] for n in order}, commit_retry_delay_s=5.0)
    rig.give(0, "rows:1", "log:1")
    rig.give(1, "rows:2", "log:2")
    rig.checkpoint()
    rig.wait(5.0)
    expected = {
        UpdateAndRetryLater: ["rows:1"],
        FailedForKnownReason: [],
        RetryLater: ["rows:1", "rows:2"],
    }
    assert sorted(committed_globally(rows)) == expected[type(error)]
    assert sorted(committed_globally(log)) == ["log:1", "log:2"]
    assert not rig.job.is_over
