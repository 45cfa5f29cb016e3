"""A start with another parallelism than that of its checkpoint: every split, at its position, is
gone on with by exactly one reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, strategies as st

from epochgate.runtime import (
    JobConfiguration,
    NotRescalable,
    Operator,
    OperatorContext,
    RecreateOnReset,
)
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.source import SourceProvider, SourceSplit, SourceStateRefused
from epochgate.runtime.source.errors import SplitAssignedTwice
from epochgate.runtime.source.reader_state import ReaderState
from epochgate.testing import ScriptedProgram, SimulatedJob
from tests.runtime.source.ranges import SOURCE, NumberCommitter, RangeProgram, RangeSource
from tests.runtime.source.test_simulated import Turmoil

SPLITS, NUMBERS = 9, 5
ALL = SPLITS * NUMBERS


class RescaledJob(SimulatedJob):
    """Each start has the next of `parallelisms`, and the last one from then on."""

    def __init__(self, *parallelisms: int) -> None:
        self.table, self.parallelisms = NumberCommitter(), list(parallelisms)

        def configure(start: int) -> JobConfiguration:
            return JobConfiguration(
                "ranges",
                self.parallelisms[min(start, len(self.parallelisms) - 1)],
                (SourceProvider(SOURCE, RangeSource(SPLITS, NUMBERS)),),
                checkpoint_interval_s=0.5,
                checkpoint_timeout_s=5.0,
                restart_strategy=FixedDelay(1000, 0.1),
            )

        super().__init__(
            configure,
            lambda subtask: RangeProgram(RangeSource(SPLITS, NUMBERS)),
            committer=lambda: self.table,
        )

    def settle_at(self, numbers: int) -> None:
        self.settle(lambda: len(self.table.numbers()) >= numbers)

    def end(self) -> str:
        self.settle(lambda: self.is_over)
        return self.result.state


@pytest.mark.parametrize(("before", "after"), [(1, 4), (4, 1), (2, 3), (3, 2)])
def test_a_start_in_the_middle_goes_on_with_more_or_fewer_readers(before: int, after: int) -> None:
    job = RescaledJob(before, after)
    job.settle_at(NUMBERS)
    assert not job.is_over
    job.crash_driver()
    assert len(job.machines.attempt) == after
    assert job.end() == "finished"
    assert job.table.problems(ALL) == []


@pytest.mark.parametrize("seed", range(25))
def test_every_record_comes_out_once_whatever_fails_and_however_many_read(seed: int) -> None:
    job = RescaledJob(2, 5, 1, 3, 4, 2)
    for _ in job.parallelisms[1:]:
        Turmoil(job, seed).run(60)
        job.crash_driver()
    assert job.end() == "finished", (seed, job.result.reason)
    assert job.table.problems(ALL) == [], seed


def test_a_failover_before_the_next_checkpoint_restores_the_redistributed_splits() -> None:
    job = RescaledJob(3, 2)
    job.settle_at(NUMBERS)
    job.crash_driver()
    restored = job.master.checkpoints.latest
    job.settle(lambda: job.machines.lifecycle.state == "running")
    job.master.queue.post(job.master.job.holder[0].fail_job, "its state is wrong", False)
    job.transport.kill(next(iter(job.transport.processes)))
    assert job.master.checkpoints.latest is restored
    assert job.end() == "finished"
    assert job.table.problems(ALL) == []


positions = st.none() | st.integers(0, 9)
readers = st.lists(st.lists(positions, max_size=5), min_size=1, max_size=5)


@given(readers, st.integers(1, 6))
def test_each_split_is_in_one_new_state_at_its_position(
    old: list[list[int | None]], parallelism: int
) -> None:
    states = {
        subtask: ReaderState(
            [(SourceSplit(f"{subtask}.{n}", [n]), at) for n, at in enumerate(positions)]
        )
        for subtask, positions in enumerate(old)
    }
    provider = RecreateOnReset(SourceProvider(SOURCE, RangeSource(1)))
    new = provider.redistribute({s: state.to_bytes() for s, state in states.items()}, parallelism)
    states_of = [new[subtask] or b"" for subtask in sorted(new)]
    dealt = [ReaderState.from_bytes(state, "a reader").splits for state in states_of]
    assert sorted(new) == list(range(parallelism))
    assert max(map(len, dealt)) - min(map(len, dealt)) <= 1

    def by_id(splits: list[tuple[SourceSplit, Any]]) -> list[tuple[SourceSplit, Any]]:
        return sorted(splits, key=lambda one: one[0].split_id)

    was = [split for state in states.values() for split in state.splits]
    assert by_id([split for splits in dealt for split in splits]) == by_id(was)


class WithReaders(RangeSource):
    """Its readers have states, which are lists."""

    def redistribute_reader_states(self, states: list[Any], parallelism: int) -> list[Any]:
        return [[one for state in states for one in state], *[[]] * (len(states) - 1)]


def redistribute(source: RangeSource, states: Mapping[int, ReaderState], parallelism: int) -> Any:
    packed = {subtask: state.to_bytes() for subtask, state in states.items()}
    return SourceProvider(SOURCE, source).redistribute(packed, parallelism)


def test_states_of_readers_are_redistributed_by_their_source() -> None:
    states = {0: ReaderState(own=[1]), 1: ReaderState(own=[2, 3]), 2: ReaderState()}
    new = redistribute(WithReaders(1), states, 2)
    assert [ReaderState.from_bytes(new[s], "a reader").own for s in (0, 1)] == [[1, 2, 3], []]
    with pytest.raises(NotRescalable, match="made 2 states for 1 readers"):
        redistribute(WithReaders(1), states, 1)
    with pytest.raises(NotRescalable, match=r"override RangeSource\.redistribute_reader_states"):
        redistribute(RangeSource(1), states, 2)


def test_states_that_contradict_each_other_or_cannot_be_read_are_refused() -> None:
    twice = ReaderState([(SourceSplit("a"), 1)])
    with pytest.raises(SplitAssignedTwice, match="Start with the parallelism that the"):
        redistribute(RangeSource(1), {0: twice, 1: twice}, 3)
    with pytest.raises(SourceStateRefused, match="reader 1 of 'ranges' has format 7"):
        SourceProvider(SOURCE, RangeSource(1)).redistribute({1: b"\x92\x07\x90"}, 3)


class CountingJob(SimulatedJob):
    """An operator without a coordinator; `redistribute` says how its states are redistributed."""

    def __init__(self, state: bytes, **options: Any) -> None:
        self.parallelism = 3
        self.opened: dict[int, bytes | None] = {}
        super().__init__(
            lambda start: JobConfiguration(
                "counts", self.parallelism, checkpoint_interval_s=None, **options
            ),
            lambda subtask: ScriptedProgram({"count": Counting(state, self.opened)}),
        )

    def start_again(self, parallelism: int) -> None:
        self.settle()
        self.master.request_checkpoint()
        self.settle()
        self.parallelism = parallelism
        self.opened.clear()
        self.crash_driver()
        self.settle()


class Counting(Operator):
    def __init__(self, state: bytes, opened: dict[int, bytes | None]) -> None:
        self._state, self._opened = state, opened

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        self._opened[context.subtask] = state

    def snapshot(self, checkpoint_id: int) -> bytes:
        return self._state


def test_an_operator_without_state_needs_no_redistribution() -> None:
    job = CountingJob(b"")
    job.start_again(5)
    assert job.opened == dict.fromkeys(range(5), b"")


def test_state_that_is_not_redistributed_is_refused_and_the_message_says_what_to_do() -> None:
    job = CountingJob(b"7")
    with pytest.raises(NotRescalable) as refused:
        job.start_again(2)
    assert str(refused.value) == (
        "checkpoint 1 was taken with parallelism 3, and this start asks for 2, which operator "
        "'count' cannot resume with: subtasks [0, 1, 2] have state. Start with parallelism 3; or "
        "say how its states are redistributed, with JobConfiguration.redistribute['count'] or "
        "CoordinatorProvider.redistribute"
    )


def test_a_job_says_how_the_states_of_an_operator_are_redistributed() -> None:
    def into_the_first(states: Mapping[int, bytes], parallelism: int) -> dict[int, bytes | None]:
        return {0: b"".join(states.values()), 1: None}

    job = CountingJob(b"7", redistribute={"count": into_the_first})
    job.start_again(2)
    assert job.opened == {0: b"777", 1: None}

    job = CountingJob(b"7", redistribute={"count": lambda states, parallelism: states})
    with pytest.raises(NotRescalable, match=r"to subtasks \[2\], and the job has subtasks 0 to 1"):
        job.start_again(2)


def test_a_subtask_that_a_redistribution_leaves_out_refuses_the_start() -> None:
    job = CountingJob(b"7", redistribute={"count": lambda states, parallelism: {0: b"777"}})
    with pytest.raises(
        NotRescalable,
        match=r"'count' were redistributed without subtasks \[1, 2, 3\]. .* its state, or None",
    ):
        job.start_again(4)
