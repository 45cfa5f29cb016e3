"""The returns and errors of operators between commits, and what is told of the steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from epochgate.runtime import (
    CommittableBatch,
    CommittableOperator,
    Committables,
    JobEvent,
    JobListener,
    JobStarted,
    RetryLater,
    Sink,
)
from tests.runtime.committing.sinks import Counting, Target
from tests.runtime.committing.steady import SteadySink, steady, take

DRIVER, TASK = 1, None


class Returning(CommittableOperator):
    """Returns a fixed value in the place of the committables."""

    def __init__(self, parallelism: int | None, value: Any) -> None:
        self.parallelism, self._value = parallelism, value

    def process(self, batch: CommittableBatch) -> Committables:
        returned: Committables = self._value
        return returned


@pytest.mark.parametrize("parallelism", [DRIVER, TASK])
@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "is a `return` missing?"),
        ({"0": []}, "must be a dict of subtasks and lists of plain values"),
        ({0: [object]}, "has values that are not plain"),
    ],
)
def test_what_an_operator_returns_that_is_no_committable_fails_the_job_by_name(
    parallelism: int | None, value: Any, said: str
) -> None:
    class Wrong(SteadySink):
        def post_commit_topology(self) -> Sequence[CommittableOperator]:
            return [Returning(parallelism, value)]

    job = steady(Wrong(Target()))
    take(job)
    job.rest(until=lambda: job.is_over)
    assert job.result.state == "failed"
    assert "committing.test_operators.Returning" in str(job.result.reason)
    assert said in str(job.result.reason)


@pytest.mark.parametrize("error", [ValueError("a fault"), RetryLater("busy")], ids=str)
def test_an_error_of_an_operator_in_a_task_costs_its_attempt_alone(error: Exception) -> None:
    errors = [error]

    class Raising(CommittableOperator):
        def process(self, batch: CommittableBatch) -> Committables:
            if errors:
                raise errors.pop()
            return batch.committables

    class Wrong(SteadySink):
        def pre_commit_topology(self) -> Sequence[CommittableOperator]:
            return [Raising()]

    job = steady(Wrong(target := Target()))
    take(job)
    job.settle()
    assert (job.master.report.regional_restarts, job.master.report.global_restarts) == (1, 0)
    assert sorted(target.globally) == [1]


class Plain(SteadySink):
    """Without a committer in the tasks."""

    create_task_committer = Sink.create_task_committer


class InSteps(SteadySink):
    """With a step of each kind."""

    def pre_commit_topology(self) -> Sequence[CommittableOperator]:
        return [Counting("1", DRIVER), Counting("2", DRIVER), Counting("3", TASK)]

    def post_commit_topology(self) -> Sequence[CommittableOperator]:
        return [Counting("4", TASK), Counting("5", DRIVER)]


WORDS: list[tuple[SteadySink, str]] = [
    (Plain(Target()), "the committer on the driver"),
    (SteadySink(Target()), "a committer in each task -> the committer on the driver"),
    (Plain(Target(), combines=True), "the combining committer on the driver"),
    (
        InSteps(Target(), combines=True),
        "2 operators on the driver -> 1 operator, a committer, 1 operator in each task -> "
        "1 operator on the driver -> the combining committer on the driver",
    ),
]


@pytest.mark.parametrize(("sink", "words"), WORDS)
def test_a_job_tells_the_steps_of_its_commits_as_it_starts(sink: SteadySink, words: str) -> None:
    heard: list[JobEvent] = []

    class Hearing(JobListener):
        def on_event(self, event: JobEvent) -> None:
            heard.append(event)

    job = steady(sink, listeners=[Hearing()])
    assert str(job.master.configuration.topology) == words
    [started] = [event for event in heard if isinstance(event, JobStarted)]
    assert started.topology == words
    assert started.commit_on_input is job.master.configuration.commits_on_input
