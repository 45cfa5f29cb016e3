"""Every record of a source exactly once, while processes die, drivers crash and messages get lost;
the record is what a committer was given.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from epochgate.runtime import JobConfiguration, JobResult
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.source import (
    SourceProvider,
    SourceSplit,
    SplitEnumerator,
    SplitEnumeratorContext,
    SplitQueueEnumerator,
    WatermarkAlignment,
)
from epochgate.runtime.testing.faulty_transport import FATES
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime.source.by_hand import HandJob
from tests.runtime.source.ranges import (
    SOURCE,
    NumberCommitter,
    RangeProgram,
    RangeSource,
)

SPLITS, NUMBERS = 7, 6
ALL = SPLITS * NUMBERS


class RangeJob(SimulatedJob):
    """Two readers of ranges; `is_held` says whether a subtask does not read now."""

    def __init__(
        self,
        source: Callable[[], RangeSource],
        *,
        alignment: WatermarkAlignment | None = None,
        is_held: Callable[[int], bool] = lambda subtask: False,
    ) -> None:
        self.table = NumberCommitter()
        self.new_source = source

        def configure(_: int) -> JobConfiguration:
            return JobConfiguration(
                "ranges",
                2,
                (SourceProvider(SOURCE, self.new_source(), alignment=alignment),),
                checkpoint_interval_s=0.5,
                checkpoint_timeout_s=5.0,
                tolerable_checkpoint_failures=2,
                restart_strategy=FixedDelay(1000, 0.1),
            )

        super().__init__(
            configure,
            lambda subtask: RangeProgram(source(), lambda: is_held(subtask)),
            committer=lambda: self.table,
        )

    def settle_at(self, numbers: int) -> None:
        """Let everything happen until `numbers` numbers are committed."""
        self.settle(lambda: len(self.table.numbers()) >= numbers)

    def end(self) -> JobResult:
        """Let everything happen until the job is over."""
        self.settle(lambda: self.is_over)
        return self.result

    def records_read(self, subtask: int) -> int:
        """Return how many records the process of the subtask has read; 0 when there is none."""
        for process in self.transport.processes.values():
            if process.subtask == subtask and process.is_alive:
                return int(process.worker.program.metrics()["records_read"])
        return 0


class Turmoil:
    """Lets one thing after the other happen, drawn from a seed."""

    def __init__(self, job: SimulatedJob, seed: int) -> None:
        self.job, self.chance = job, random.Random(seed)

    def run(self, steps: int) -> None:
        for _ in range(steps):
            if self.job.is_over:
                return
            self._one()

    def _one(self) -> None:
        job, draw = self.job, self.chance.random()
        if draw < 0.86:
            if steps := job.steps():
                job.step(self.chance.choice(steps))
            if self.chance.random() < 0.8:
                job.drain(self.chance.choice((None, 1, 3)))
        elif draw < 0.91:
            job.run_blocking()
        elif draw < 0.96:
            job.advance()
            job.drain()
        elif draw < 0.98:
            tag = self.chance.choice(sorted(FATES))
            job.faults.doom(tag, self.chance.choice(FATES[tag]))
        else:
            self._disaster()

    def _disaster(self) -> None:
        job, draw = self.job, self.chance.random()
        alive = [p.identity for p in job.transport.processes.values() if p.is_alive]
        if draw < 0.1:
            job.crash_driver()
        elif draw < 0.25:
            job.master.queue.post(job.master.job.holder[0].fail_job, "its state is wrong", False)
        elif alive and draw < 0.8:
            job.transport.kill(self.chance.choice(alive))
        elif alive:
            job.transport.cut(self.chance.choice(alive))


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_every_record_comes_out_once_whatever_fails(first: int) -> None:
    for seed in range(first, first + 10):
        job = RangeJob(lambda: RangeSource(SPLITS, NUMBERS, rest_after=2))
        Turmoil(job, seed).run(600)
        assert job.end().state == "finished", (seed, job.result.reason)
        assert job.table.problems(ALL) == [], seed


def followed() -> RangeJob:
    source = RangeSource(SPLITS, NUMBERS, every_s=0.3, looks=4)
    alignment = WatermarkAlignment("ranges", drift=3, every_s=0.2)
    return RangeJob(lambda: source, alignment=alignment)


@pytest.mark.parametrize("first", range(0, 20, 10))
def test_splits_that_appear_while_the_job_runs_are_read_once(first: int) -> None:
    for seed in range(first, first + 10):
        job = followed()
        Turmoil(job, seed).run(600)
        job.settle_at(ALL)
        job.master.stop()
        assert job.end().state == "finished", (seed, job.result.reason)
        assert job.table.problems(ALL) == [], seed


def test_all_splits_are_read_and_the_job_ends() -> None:
    job = RangeJob(lambda: RangeSource(SPLITS, NUMBERS))
    assert job.end().state == "finished"
    assert job.table.problems(ALL) == []
    figures = job.result.report.coordinator_metrics[SOURCE]
    assert dict(figures) == {
        "splits_assigned": SPLITS,
        "splits_taken_back": 0,
        "splits_unassigned": 0,
    }


def test_a_start_after_the_end_reads_just_the_splits_that_are_new() -> None:
    splits = [SPLITS]
    job = RangeJob(lambda: RangeSource(splits[0], NUMBERS))
    job.end()
    for splits[0] in (SPLITS, SPLITS + 3, SPLITS + 3):
        job.crash_driver()
        assert job.end().state == "finished"
        assert job.table.problems(splits[0] * NUMBERS) == []
    assert job.result.report.coordinator_metrics[SOURCE]["splits_assigned"] == 0


def test_a_start_in_the_middle_reads_what_is_left_and_what_is_new() -> None:
    splits = [SPLITS]
    job = RangeJob(lambda: RangeSource(splits[0], NUMBERS))
    job.settle_at(NUMBERS)
    assert not job.is_over
    splits[0] = SPLITS + 3
    job.crash_driver()
    assert job.end().state == "finished"
    assert job.table.problems(splits[0] * NUMBERS) == []


def test_a_start_from_an_earlier_release_that_had_looked_looks_again() -> None:
    job = HandJob().started()
    source = RangeSource(3)
    state = [[], ["split-0", "split-1"], True]
    enumerator = SplitQueueEnumerator(job.enumerator.context, state, source.look)
    enumerator.add_found(source.look())
    assert enumerator.snapshot_state(1) == [
        [["split-2", [20, 30]]],
        ["split-0", "split-1", "split-2"],
    ]


def test_a_reader_far_ahead_waits_for_the_slowest_through_its_restart() -> None:
    held: set[int] = set()
    job = RangeJob(
        lambda: RangeSource(2, 50),
        alignment=WatermarkAlignment("ranges", drift=10, every_s=0.1),
        is_held=lambda subtask: subtask in held,
    )

    def go_on(until: Callable[[], bool]) -> None:
        for _ in range(400):
            if until():
                return
            job.wait(0.05)
            job.settle(lambda: True)
        raise AssertionError(job.account())

    go_on(lambda: job.records_read(1) == 3)
    held.add(1)
    end_s = job.clock.now_s() + 3.0
    go_on(lambda: job.clock.now_s() >= end_s)
    # The slowest is at watermark 2, so the other stops at the first that is above 2 + 10.
    assert (job.records_read(0), job.records_read(1)) == (14, 3)
    job.transport.kill(max(p.identity for p in job.transport.processes.values() if p.subtask == 1))
    end_s = job.clock.now_s() + 3.0
    go_on(lambda: job.clock.now_s() >= end_s)
    assert (job.records_read(0), job.records_read(1)) == (14, 0)
    held.clear()
    go_on(lambda: job.is_over)
    assert job.table.problems(100) == []
    assert job.result.report.global_restarts == 0
    assert job.result.report.regional_restarts == 1


class BrokenSource(RangeSource):
    """Raises where it is told to, once for each error."""

    def __init__(self, **errors: list[Exception]) -> None:
        super().__init__(SPLITS, NUMBERS)
        self.errors = errors

    def look(self) -> list[SourceSplit]:
        self._at("look")
        return super().look()

    def create_enumerator(self, context: SplitEnumeratorContext, state: Any) -> SplitEnumerator:
        self._at("create" if state is None else "restore")
        return super().create_enumerator(context, state)

    def _at(self, where: str) -> None:
        if errors := self.errors.get(where):
            raise errors.pop(0)


def test_an_enumerator_that_cannot_be_made_is_tried_again() -> None:
    source = BrokenSource(create=[OSError("no such bucket")])
    job = RangeJob(lambda: source)
    assert job.end().state == "finished"
    failures = [failure.reason for failure in job.master.report.failures]
    (failure,) = [failure.split("\n") for failure in failures]
    assert failure[0] == "coordinator 'ranges' could not start: OSError('no such bucket')"
    assert f'File "{__file__}"' in failure[1]


def test_a_look_that_raises_takes_the_job_back_and_the_next_enumerator_looks_again() -> None:
    source = BrokenSource(look=[OSError("no such bucket"), OSError("again")])
    job = RangeJob(lambda: source)
    assert (job.end().state, job.table.problems(ALL)) == ("finished", [])
    assert job.result.report.global_restarts == 2
    assert "no such bucket" in job.result.report.failures[0].reason


@pytest.mark.parametrize("is_new_driver", [False, True])
def test_an_enumerator_that_cannot_be_restored_is_restored_again(is_new_driver: bool) -> None:
    source = BrokenSource()
    job = RangeJob(lambda: source, is_held=lambda subtask: not job.master.checkpoints.latest)
    job.settle(lambda: job.master.checkpoints.latest is not None)
    source.errors["restore"] = [OSError("no such bucket"), OSError("again")]
    if is_new_driver:
        job.crash_driver()
    else:
        job.master.queue.post(job.master.job.holder[0].fail_job, "its state is wrong", False)
    assert (job.end().state, job.table.problems(ALL)) == ("finished", [])
    assert source.errors["restore"] == []


def test_a_state_that_cannot_be_read_ends_the_job() -> None:
    job = RangeJob(lambda: RangeSource(SPLITS, NUMBERS), is_held=lambda subtask: True)
    job.settle(lambda: job.master.checkpoints.latest is not None)
    job.new_source = NewerSource
    job.crash_driver()
    assert job.end().state == "failed"
    assert "state of version 1 of NewerSource, which reads version 2" in str(job.result.reason)
    assert job.result.report.global_restarts == 0


class NewerSource(RangeSource):
    state_version = 2

    def __init__(self) -> None:
        super().__init__(SPLITS, NUMBERS)
