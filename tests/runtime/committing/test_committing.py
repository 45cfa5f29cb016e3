"""Commits in several steps: what is committed in the tasks, globally and between, exactly once."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from epochgate.pipeline import FunctionSource, Pipeline
from epochgate.runtime import (
    RetryLater,
)
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime.committing.sinks import DirectSink, Target, TargetSink

ROWS = [f"row-{number:02}" for number in range(24)]


def look() -> list[list[int]]:
    return [[0, 12], [12, 24]]


def read(split: list[int], position: int | None) -> Iterator[tuple[list[str], int]]:
    for number in range(split[0] if position is None else position, split[1]):
        yield [f"row-{number:02}"], number + 1


def job_of(sink: TargetSink, parallelism: Any = 2, **settings: Any) -> SimulatedJob:
    settings = {"checkpoint_interval_s": 1.0, "commit_retry_delay_s": 0.1, **settings}
    pipeline = Pipeline(source=FunctionSource(look, read), sink=sink)
    return SimulatedJob.of(pipeline, parallelism=parallelism, **settings)


def committed_globally(target: Target) -> list[str]:
    found: list[str] = []
    for _, committables in sorted(target.globally.items()):
        for rows in committables.values():
            for one in rows:
                found += one["rows"] if isinstance(one, dict) else [one]
    return found


SINKS: dict[str, Callable[[Target], TargetSink]] = {
    "in the tasks": TargetSink,
    "combined": lambda target: TargetSink(target, combines=True),
    "with operators": lambda target: TargetSink(target, combines=True, operators=True),
    "direct with operators": lambda target: DirectSink(target, combines=True),
}


@pytest.mark.parametrize("kind", SINKS)
def test_each_committable_takes_effect_once_in_the_tasks_and_then_globally(kind: str) -> None:
    target = Target()
    job = job_of(SINKS[kind](target))
    job.finish()
    assert sorted(committed_globally(target)) == ROWS
    if "direct" not in kind:
        assert sorted(target.in_tasks) == ROWS
        assert {s for _, s, _ in target.calls} == {0, 1}


def move(job: SimulatedJob, chance: random.Random) -> None:
    """One elementary step of the job."""
    does = chance.random()
    steps = [step for step in job.steps() if job.can(step)]
    if does < 0.4 and steps:
        job.step(chance.choice(steps))
    elif does < 0.8:
        job.drain(1)
    elif does < 0.95:
        job.run_blocking()
    else:
        job.advance()


def strike(job: SimulatedJob, at: float) -> None:
    """Nothing as a rule."""
    if at < 0.02:
        job.transport.kill(int(at * 100))
    elif at < 0.03:
        job.crash_driver()
    elif at < 0.1:
        job.master.request_checkpoint()


@pytest.mark.parametrize("kind", SINKS)
@pytest.mark.parametrize(
    "seed", [*range(15), *(pytest.param(n, marks=pytest.mark.extended) for n in range(15, 200))]
)
def test_whatever_dies_whenever_nothing_is_lost_or_doubled(kind: str, seed: int) -> None:
    chance = random.Random(f"{kind} {seed}")
    target = Target()
    for row in ROWS:
        said = [["retry_later"], RetryLater("busy"), ["update_and_retry_later", row]]
        target.signals[row] = chance.sample(said, chance.choice((0, 0, 1, 2)))
    job = job_of(
        SINKS[kind](target),
        lambda start: 2 if kind == "with operators" else 2 + start % 2,
        commit_retries_max=50,
    )
    for _ in range(chance.randrange(200, 900)):
        if job.is_over:
            break
        move(job, chance)
        strike(job, chance.random())
    job.finish()
    assert sorted(committed_globally(target)) == ROWS
    if "direct" not in kind:
        assert sorted(target.in_tasks) == ROWS
