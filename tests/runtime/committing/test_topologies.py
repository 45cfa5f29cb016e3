"""The steps that a sink's commits may take, what a job's settings say of them, and what a sink does
in a job that takes no checkpoints by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from epochgate.runtime import (
    CommittableOperator,
    CommitterOfSinks,
    CommitTopology,
    JobConfiguration,
    JobMisconfigured,
    SinkStart,
    TopologyRefused,
)
from tests.runtime.committing.rig import Rig
from tests.runtime.committing.sinks import Counting, DirectSink, Target, TargetSink
from tests.runtime.committing.test_committing import committed_globally

START = SinkStart("job", "run", None)


@dataclass(frozen=True)
class Steps(DirectSink):
    """With these operators."""

    pre: tuple[Any, ...] = ()
    post: tuple[Any, ...] = ()

    def pre_commit_topology(self) -> Sequence[CommittableOperator]:
        return [Counting("pre", one) if one in (1, None) else one for one in self.pre]

    def post_commit_topology(self) -> Sequence[CommittableOperator]:
        return [Counting("post", one) if one in (1, None) else one for one in self.post]


class InTasks(Steps):
    create_task_committer = TargetSink.create_task_committer


NAME = f"{Steps.__module__}.Steps"


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        (
            {"pre": (None, 1)},
            f"pre_commit_topology of {NAME} has an operator with parallelism 1 behind one in the "
            "tasks; put those with parallelism 1 first",
        ),
        (
            {"post": (1, None)},
            f"post_commit_topology of {NAME} has an operator in the tasks behind one with "
            "parallelism 1; put those in the tasks first",
        ),
        (
            {"pre": ("no operator",)},
            f"{NAME} has 'no operator' between its commits, and parallelism None; give a "
            "CommittableOperator whose parallelism is None, that of the tasks, or 1",
        ),
    ],
)
def test_an_order_of_steps_that_there_is_not_is_refused(steps: Any, says: str) -> None:
    with pytest.raises(TopologyRefused) as refused:
        CommitTopology.of(Steps(Target(), **steps))
    assert str(refused.value) == says


@pytest.mark.parametrize("parallelism", [0, 2, "1"])
@pytest.mark.parametrize("place", ["pre", "post"])
def test_an_operator_runs_in_each_task_or_once(place: str, parallelism: Any) -> None:
    steps: dict[str, Any] = {place: (Counting("between", parallelism),)}
    with pytest.raises(TopologyRefused, match=f"and parallelism {parallelism!r}; give a Commit"):
        CommitTopology.of(Steps(Target(), **steps))


def test_a_topology_says_where_its_steps_are() -> None:
    target = Target()
    assert CommitTopology.of(Steps(target)).is_direct
    in_tasks = CommitTopology.of(InTasks(target, pre=(1, 1, None), post=(None, 1)))
    assert (in_tasks.in_tasks, in_tasks.operators_before, in_tasks.operators_behind) == (True, 2, 1)
    on_driver = CommitTopology.of(Steps(target, pre=(1,), post=(1,)))
    assert (on_driver.in_tasks, on_driver.is_direct) == (False, False)
    assert CommitTopology.of(Steps(target, post=(None,))).in_tasks
    combining = Steps(target, combines=True)
    combined = CommitTopology.of(combining, combining.create_committer(START))
    assert (combined.in_tasks, combined.operators_behind) == (False, 1)


def test_of_several_sinks_none_combines() -> None:
    made = Steps(Target(), combines=True).create_committer(START)
    with pytest.raises(TopologyRefused, match=r"the committer of sink 'log' is a CombiningComm"):
        CommitterOfSinks({"log": made})


SINKS = {
    "direct": Steps(Target()),
    "on the driver": Steps(Target(), pre=(1,)),
    "in the tasks": InTasks(Target()),
    "operators in the tasks": Steps(Target(), post=(None,)),
}


def configured(kind: str, **settings: Any) -> JobConfiguration:
    return JobConfiguration("job", 2, topology=CommitTopology.of(SINKS[kind]), **settings)


@pytest.mark.parametrize("interval_s", [None, 1.0])
@pytest.mark.parametrize("kind", SINKS)
def test_whether_the_driver_commits_on_its_input_follows_from_the_job(
    kind: str, interval_s: float | None
) -> None:
    expected = interval_s is None or "in the tasks" in kind
    assert configured(kind, checkpoint_interval_s=interval_s).commits_on_input == expected
    configured(kind, checkpoint_interval_s=interval_s, commit_on_input=expected)
    with pytest.raises(JobMisconfigured) as refused:
        configured(kind, checkpoint_interval_s=interval_s, commit_on_input=not expected)
    said = str(refused.value)
    assert said.startswith(f"commit_on_input is {not expected}, and must be {expected} here: ")
    assert said.endswith(". Leave commit_on_input out")
    why = (
        "the tasks commit first"
        if "in the tasks" in kind
        else "the job takes no checkpoints by itself"
        if interval_s is None
        else "must not commit what may be aborted"
    )
    assert why in said


@pytest.mark.parametrize("kind", SINKS)
def test_attempts_side_by_side_never_commit_in_the_tasks(kind: str) -> None:
    settings = {"checkpoint_interval_s": None, "concurrent_attempts_max": 2}
    if "in the tasks" not in kind:
        configured(kind, **settings)
        return
    with pytest.raises(JobMisconfigured) as refused:
        configured(kind, **settings)
    assert str(refused.value) == (
        "concurrent_attempts_max is 2, and the sink commits in the tasks: two attempts of a "
        "subtask would commit at once. Leave concurrent_attempts_max at 1, or take a sink that "
        "commits on the driver"
    )


@pytest.mark.parametrize("kind", ["direct", "in the tasks", "with operators"])
def test_without_checkpoints_a_sink_commits_once_at_the_end_of_the_input(kind: str) -> None:
    target = Target()
    sinks = {
        "direct": DirectSink(target),
        "in the tasks": TargetSink(target),
        "with operators": TargetSink(target, combines=True, operators=True),
    }
    rig = Rig(lambda _: sinks[kind])
    rig.give(0, "a", "b")
    rig.give(1, "c")
    rig.job.flow()
    rig.wait(1000.0)
    assert (target.in_tasks, target.globally) == ({}, {})
    rig.finish()
    assert list(rig.job.shelf.checkpoints) == [1]
    assert list(target.globally) == [1]
    assert sorted(committed_globally(target)) == ["a", "b", "c"]
    if kind != "direct":
        assert target.in_tasks == {"a": 1, "b": 1, "c": 1}
        assert {checkpoint for checkpoint, _, _ in target.calls} == {1}
    assert rig.job.master.report.checkpoints_completed == 1


@pytest.mark.parametrize("kind", ["direct", "in the tasks"])
def test_without_checkpoints_a_lost_task_begins_again_and_nothing_is_doubled(kind: str) -> None:
    target = Target()
    rig = Rig(lambda _: (TargetSink if kind == "in the tasks" else DirectSink)(target))
    rig.give(0, "a", "b")
    rig.give(1, "c")
    rig.job.flow()
    rig.job.transport.kill(rig.identity(0))
    rig.finish()
    assert list(target.globally) == [1]
    assert sorted(committed_globally(target)) == ["a", "b", "c"]
