"""Readers of several attempts of one subtask: each is given everything that the subtask is."""

from __future__ import annotations

import random

import pytest

from epochgate.runtime import JobConfiguration
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.source import (
    AlignmentAmongAttempts,
    AttemptNotNamed,
    ReaderNotRegistered,
    SourceProvider,
    WatermarkAlignment,
)
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime.source.by_hand import HandContext, HandJob
from tests.runtime.source.ranges import SOURCE, NumberCommitter, RangeProgram, RangeSource


def two_readers() -> HandJob:
    return HandJob(context=HandContext(concurrent_attempts_max=2)).started()


def test_every_attempt_is_given_every_split_and_told_that_there_are_no_more() -> None:
    job = two_readers()
    first, second = job.registered(0, 0), job.registered(0, 1)
    job.enumerator.assign("1", "2", to=0)
    job.enumerator.context.signal_no_more_splits(0)
    assert first.splits == second.splits == ["1", "2"]
    assert first.told == second.told == [["no more"]]
    assert job.enumerator.heard == [("start",), ("reader", 0)]


def test_an_attempt_that_comes_later_is_given_what_the_others_were() -> None:
    job = two_readers()
    job.registered(0, 0)
    job.enumerator.assign("1", to=0)
    job.enumerator.context.signal_no_more_splits(0)
    late = job.registered(0, 1)
    assert (late.splits, late.told) == (["1"], [["no more"]])


def test_splits_come_back_once_no_attempt_has_them() -> None:
    job = two_readers()
    first, second = job.registered(0, 0), job.registered(0, 1)
    job.enumerator.assign("1", to=0)
    job.coordinator.execution_attempt_failed(0, 0, "killed")
    job.enumerator.assign("2", to=0)
    assert (first.splits, second.splits) == (["1"], ["1", "2"])
    job.failed(0, 0, attempt=1)
    assert job.enumerator.heard[-1] == ("back", ["1", "2"], 0)


def test_the_lowest_attempt_represents_its_subtask() -> None:
    job = two_readers()
    job.registered(0, 1)
    job.registered(0, 0)
    context = job.enumerator.context
    assert context.registered_readers[0].attempt == 0
    assert sorted(context.registered_attempts[0]) == [0, 1]
    job.coordinator.execution_attempt_failed(0, 0, "killed")
    assert context.registered_readers[0].attempt == 1


def test_source_events_name_the_attempt() -> None:
    job = two_readers()
    first, second = job.registered(0, 0), job.registered(0, 1)
    context = job.enumerator.context
    with pytest.raises(AttemptNotNamed, match=r"attempt="):
        context.send_event_to_source_reader(0, "x")
    with pytest.raises(ReaderNotRegistered):
        context.send_event_to_source_reader(0, "x", attempt=2)
    context.send_event_to_source_reader(0, "x", attempt=1)
    assert (first.told, second.told) == ([], [["source event", "x"]])
    with pytest.raises(AttemptNotNamed, match="override handle_attempt_source_event"):
        job.say(0, "source event", "y", attempt=1)


def test_alignment_is_refused() -> None:
    with pytest.raises(AlignmentAmongAttempts, match="Leave out one of the two"):
        HandJob(
            context=HandContext(concurrent_attempts_max=2),
            alignment=WatermarkAlignment("group", drift=1),
        )


@pytest.mark.parametrize("seed", range(30))
def test_every_number_is_read_once_whichever_attempt_is_first(seed: int) -> None:
    choice = random.Random(seed)
    source, committer = RangeSource(splits=5, numbers=4), NumberCommitter()
    job = SimulatedJob(
        lambda start: JobConfiguration(
            "ranges",
            2,
            (SourceProvider(SOURCE, source),),
            checkpoint_interval_s=None,
            concurrent_attempts_max=2,
            restart_strategy=FixedDelay(1000, 1.0),
        ),
        lambda subtask: RangeProgram(source),
        committer=lambda: committer,
    )
    for _ in range(300):
        job.drain(choice.choice([1, None]))
        if steps := job.steps():
            job.step(choice.choice(steps))
        if choice.random() < 0.1:
            job.run_blocking()
        if choice.random() < 0.03:
            job.transport.launch(choice.randrange(2))
        alive = [i for i, process in job.transport.processes.items() if process.is_alive]
        if choice.random() < 0.02 and alive:
            job.transport.kill(choice.choice(alive))
    job.settle(until=lambda: job.is_over)
    assert job.result.state == "finished", job.result.reason
    assert committer.problems(20) == []
