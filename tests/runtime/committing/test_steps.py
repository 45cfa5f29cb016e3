"""Each rule of commits in several steps, in one short history (section 6 of docs/protocol.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest

from epochgate.runtime import (
    CommittableBatch,
    CommittableOperator,
    Committables,
    Committer,
    CommitTopology,
    FailedForKnownReason,
    JobConfiguration,
    JobMisconfigured,
    OperatorContext,
    RetryLater,
    Sink,
    SinkStart,
    TaskCommitter,
)
from epochgate.runtime.api.operator import metrics_of
from epochgate.runtime.api.reports import summed
from epochgate.runtime.shell.fitting import StageMismatch, StepMissing
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime.committing.sinks import Manifest, Target, TargetTaskCommitter
from tests.runtime.committing.steady import SteadySink, steady, take


def committed(target: Target) -> dict[int, list[str]]:
    """What is committed globally, by checkpoint."""
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


def test_the_count_of_a_tasks_tries_survives_its_process_and_the_driver() -> None:
    target = Target(signals={"1-0": [["retry_later", "it is busy"] for _ in range(4)]})
    job = steady(SteadySink(target), commit_retries_max=3)
    take(job)
    job.wait(60.0)
    job.transport.kill(process_of(job, 0))
    job.flow()
    job.wait(60.0)
    job.flow()
    take(job)
    job.crash_driver()
    job.rest(until=lambda: job.is_over)
    assert job.result.state == "failed"
    assert "it is busy" in str(job.result.reason)
    assert asked(target, 0) == [1, 1, 1, 1]


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


def test_operators_of_another_number_than_the_checkpoint_has_are_refused() -> None:
    job = steady(NumberingSink(target := Target()))
    take(job, 2)
    with pytest.raises(StageMismatch, match="holds states of 1 operators"):
        on_the_checkpoints_of(job, SteadySink(target))


def test_committables_in_a_step_that_the_sink_lacks_are_refused() -> None:
    class Direct(SteadySink):
        create_task_committer = Sink.create_task_committer

    target = Target(signals={"1-0": [["retry_later"]]})
    job = steady(SteadySink(target))
    take(job, 2)
    with pytest.raises(StepMissing, match=r"committables of checkpoint 1 .* the committers"):
        on_the_checkpoints_of(job, Direct(target))


def on_the_checkpoints_of(job: SimulatedJob, sink: Sink) -> SimulatedJob:
    """A start of another sink on the checkpoints that a job has left."""
    job.shelf.end_driver()
    committer = sink.create_committer(SinkStart("job", "again"))
    topology = CommitTopology.of(sink, committer)
    return SimulatedJob(
        lambda start: JobConfiguration("job", 2, topology=topology),
        lambda _: pytest.fail("no task starts"),
        committer=lambda: committer,
        shelf=job.shelf,
    )


@pytest.mark.parametrize("raised", [False, True])
def test_what_fails_in_a_task_for_a_known_reason_is_left_out_and_told(raised: bool) -> None:
    said = FailedForKnownReason("the row is bad") if raised else ["failed", "the row is bad"]
    job = steady(SteadySink(target := Target(signals={"1-0": [said]})))
    take(job)
    assert committed(target) == {1: ["1-1"]}
    [warning] = job.master.report.warnings
    assert "goes on without committable '1-0' of subtask 0" in warning
    assert "the row is bad" in warning


def test_a_rest_of_a_task_takes_the_place_of_the_committable() -> None:
    target = Target(signals={"1-0": [["update_and_retry_later", "1-0 rest"]]})
    job = steady(SteadySink(target))
    take(job)
    job.wait(60.0)
    job.flow()
    assert committed(target) == {1: ["1-0 rest", "1-1"]}


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


IN_TASKS = CommitTopology.of(SteadySink(Target()))


@pytest.mark.parametrize(
    ("topology", "interval_s", "expected"),
    [
        (CommitTopology(), 2.0, False),
        (CommitTopology(), None, True),
        (IN_TASKS, 2.0, True),
        (IN_TASKS, None, True),
    ],
)
def test_whether_commits_come_with_the_input_follows_from_the_job(
    topology: CommitTopology, interval_s: float | None, expected: bool
) -> None:
    def job(commit_on_input: bool | None) -> JobConfiguration:
        return JobConfiguration(
            "job",
            2,
            topology=topology,
            checkpoint_interval_s=interval_s,
            commit_on_input=commit_on_input,
        )

    assert job(None).commits_on_input is job(expected).commits_on_input is expected
    with pytest.raises(JobMisconfigured, match=f"must be {expected} here: .* Leave commit_on"):
        job(not expected)


def test_a_job_without_periodic_checkpoints_commits_all_at_its_end() -> None:
    job = steady(SteadySink(target := Target()), checkpoint_interval_s=None)
    job.wait(7200.0)
    job.flow()
    assert target.calls == []
    job.master.stop()
    job.finish()
    assert committed(target) == {1: ["1-0", "1-1"]}


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


def test_any_other_error_of_a_task_costs_its_attempt_alone() -> None:
    job = steady(SteadySink(target := Target(signals={"1-0": [ValueError("a fault")]})))
    take(job)
    job.settle()
    assert committed(target) == {1: ["1-0", "1-1"]}
    assert (job.master.report.regional_restarts, job.master.report.global_restarts) == (1, 0)
    [failure] = job.master.report.failures
    assert "a fault" in failure.reason


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
