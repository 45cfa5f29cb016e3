"""Each rule of commits in several steps, in one short history (section 6 of docs/protocol.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from epochgate.runtime import (
    CommittableBatch,
    CommittableOperator,
    Committables,
    Committer,
    OperatorContext,
    RetryLater,
    SinkStart,
    TaskCommitter,
)
from epochgate.runtime.api.operator import metrics_of
from epochgate.runtime.api.reports import summed
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime.committing.sinks import Manifest, Target, TargetTaskCommitter
from tests.runtime.committing.steady import SteadySink, steady, take


def committed(target: Target) -> dict[int, list[str]]:
    """Return what is committed globally, by checkpoint."""
    return {
        checkpoint: sorted(one for held in committables.values() for one in held)
        for checkpoint, committables in target.globally.items()
    }


def asked(target: Target, subtask: int) -> list[int]:
    """The checkpoints that a subtask was asked to commit, one after the other."""
    return [checkpoint for checkpoint, of, _ in target.calls if of == subtask]


def test_a_task_is_asked_once_the_checkpoint_is_stored_and_not_before() -> None:
    job = steady(SteadySink(target := Target()))
    job.master.request_checkpoint()
    job.flow(held=("blocking",))
    assert target.calls == []
    job.flow()
    assert sorted(target.calls) == [(1, 0, ["1-0"]), (1, 1, ["1-1"])]


def test_a_task_is_asked_for_the_oldest_checkpoint_first() -> None:
    target = Target(signals={"1-0": [["retry_later"]]})
    job = steady(SteadySink(target))
    take(job, 3)
    assert asked(target, 0) == [1]
    job.wait(60.0)
    job.flow()
    assert asked(target, 0) == [1, 1, 2, 3]
    assert sorted(target.globally) == [1, 2, 3]


def test_between_barrier_and_snapshot_no_task_is_asked() -> None:
    target = Target(signals={"1-0": [["retry_later"]]})
    job = steady(SteadySink(target))
    take(job)
    job.master.request_checkpoint()
    job.flow(only=0)
    job.wait(60.0)
    job.flow(only=0)
    assert asked(target, 0) == [1]
    job.flow()
    job.wait(120.0)
    job.flow()
    assert asked(target, 0) == [1, 1, 2]


def test_an_attempt_commits_again_what_the_completed_checkpoint_does_not_know_as_passed_on() -> (
    None
):
    job = steady(SteadySink(target := Target()))
    take(job, 2)
    assert asked(target, 0) == [1, 2]
    job.transport.kill(process_of(job, 0))
    job.settle()
    assert asked(target, 0) == [1, 2, 2]
    assert asked(target, 1) == [1, 2]
    assert committed(target) == {1: ["1-0", "1-1"], 2: ["2-0", "2-1"]}


def process_of(job: SimulatedJob, subtask: int) -> int:
    [identity] = [i for i, one in job.transport.processes.items() if one.subtask == subtask]
    return identity


def test_tasks_leave_after_they_have_committed_what_the_last_checkpoint_holds() -> None:
    target = Target(signals={"1-1": [["retry_later"]]})
    job = steady(SteadySink(target))
    job.master.stop()
    job.flow()
    assert not job.is_over
    assert len(job.transport.processes) == 2
    job.finish()
    assert committed(target) == {1: ["1-0", "1-1"]}


def test_the_driver_commits_once_the_parts_of_all_subtasks_have_come_out() -> None:
    target = Target(signals={"1-1": [["retry_later"]]})
    job = steady(SteadySink(target))
    take(job, 2)
    assert set(target.in_tasks) == {"1-0", "2-0"}
    assert committed(target) == {}
    job.wait(60.0)
    job.flow()
    assert committed(target) == {1: ["1-0", "1-1"], 2: ["2-0", "2-1"]}


class Numbering(CommittableOperator):
    """Numbers what passes; its state is the number."""

    parallelism = 1

    def open(self, state: bytes | None) -> None:
        self._number = int(state or b"0")

    def process(self, batch: CommittableBatch) -> Committables:
        values = sorted(one for held in batch.committables.values() for one in held)
        self._number += len(values)
        return {0: [f"{self._number - len(values)}+{one}" for one in values]}

    def snapshot(self) -> bytes:
        return str(self._number).encode()


class NumberingSink(SteadySink):
    """The first `Numbering` counts in front of the tasks, the second behind."""

    def pre_commit_topology(self) -> Sequence[CommittableOperator]:
        return [Numbering()]

    def post_commit_topology(self) -> Sequence[CommittableOperator]:
        return [Numbering()]


def test_operators_go_back_with_the_checkpoint_and_each_takes_a_checkpoint_once() -> None:
    job = steady(NumberingSink(target := Target()))
    take(job, 2)
    before = dict(target.globally)
    job.crash_driver()
    job.settle()
    take(job)
    assert {c: target.globally[c] for c in before} == before
    assert [held[0][0] for _, held in sorted(target.globally.items())] == [
        "0+0+1-0",
        "2+2+2-0",
        "4+4+3-0",
    ]


def test_the_signals_of_a_task_are_counted_in_its_figures() -> None:
    said: list[Any] = [["retry_later"], ["already_committed"]]
    target = Target(signals={"1-0": said, "1-1": [["failed", "the row is bad"]]})
    job = steady(SteadySink(target))
    take(job)
    job.wait(60.0)
    job.flow()
    take(job, 2)
    names = ("committed", "already_committed", "retried", "failed")
    programs = [one.worker.program for one in job.transport.processes.values()]
    figures = summed(dict(enumerate(metrics_of(program) for program in programs)))
    assert [figures[f"sink.{name}"] for name in names] == [4, 1, 1, 1]


class Drawn(Manifest):
    """Combines to another value at each call, and is busy at first."""

    numbers = count(1)
    busy = 1

    def combine(self, checkpoint_id: int, committables: Committables) -> Any:
        return f"manifest {next(self.numbers)}"

    def commit_combined(self, checkpoint_id: int, combined: Any) -> bool | None:
        if self.busy:
            self.busy -= 1
            raise RetryLater("it is busy")
        return super().commit_combined(checkpoint_id, combined)


def test_what_was_combined_is_stored_and_committed_by_the_next_driver_too() -> None:
    class Combining(SteadySink):
        def create_committer(self, start: SinkStart) -> Committer:
            return Drawn(self.target)

    job = steady(Combining(target := Target()))
    take(job, 2)
    assert target.globally == {}
    job.crash_driver()
    job.settle()
    assert target.globally[1] == {0: ["manifest 1"]}


@dataclass
class Closing(TargetTaskCommitter):
    """Notes that it is closed."""

    target: Target
    subtask: int
    closed: list[int]

    def __post_init__(self) -> None:
        super().__init__(self.target, self.subtask)

    def close(self) -> None:
        self.closed.append(self.subtask)


def test_the_committer_of_an_attempt_is_closed_with_it() -> None:
    closed: list[int] = []

    class ClosingSink(SteadySink):
        def create_task_committer(self, context: OperatorContext) -> TaskCommitter | None:
            return Closing(self.target, context.subtask, closed)

    job = steady(ClosingSink(Target(signals={"1-0": [ValueError("a fault")]})))
    take(job)
    assert closed == [0]
    job.settle()
    job.master.stop()
    job.finish()
    assert sorted(closed) == [0, 0, 1]


def test_a_summary_counts_what_has_failed() -> None:
    seen: list[tuple[int, ...]] = []

    class Noting(Numbering):
        def process(self, batch: CommittableBatch) -> Committables:
            seen.extend(tuple(one) for _, one in sorted(batch.summaries.items()))
            return batch.committables

    class NotingSink(SteadySink):
        def post_commit_topology(self) -> Sequence[CommittableOperator]:
            return [Noting()]

    job = steady(NotingSink(Target(signals={"1-0": [["failed", "the row is bad"]]})))
    take(job)
    assert seen == [(1, 0, 1, 1), (1, 1, 1, 0)]
