"""The coordinator of examples/committing_coordinator.py commits each row once, whatever dies."""

from __future__ import annotations

import json
import random
import runpy
from collections.abc import Callable
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from epochgate.runtime import JobConfiguration
from epochgate.runtime.testing.simulation import SimulatedJob

EXAMPLE = Path(__file__).parents[3] / "examples" / "committing_coordinator.py"
TASKS, ROWS, PER_FILE = 2, 5, 2


@cache
def shown() -> dict[str, Any]:
    """The names of the example, whose rows take no time here."""
    names = runpy.run_path(str(EXAMPLE))
    names["Writer"].work.__globals__["time"] = Timeless
    return names


class Timeless:
    """Stands for the module `time`."""

    @staticmethod
    def sleep(seconds: float) -> None:
        """Return at once."""


def job_in(folder: Path, rows: int = ROWS) -> SimulatedJob:
    names = shown()
    return SimulatedJob(
        lambda start: JobConfiguration(
            "table", TASKS, (names["TableProvider"](folder),), checkpoint_interval_s=1.0
        ),
        lambda subtask: names["Writer"](folder, subtask, rows, PER_FILE),
    )


def moves(job: SimulatedJob) -> bool:
    """One elementary step, the oldest one of each kind in turn; a checkpoint now and then."""
    for step in job.steps():
        if job.can(step) and job.step(step):
            return True
    return job.drain(1) > 0 or job.run_blocking() or job.advance() is not None


def run(folder: Path, at: int, strike: Callable[[SimulatedJob], object]) -> int:
    """Run the job, struck before step `at`; how many steps it took without a strike."""
    job = job_in(folder)
    for step in count():
        if job.is_over:
            break
        if step == at:
            strike(job)
        if step % 5 == 0:
            job.master.request_checkpoint()
        moves(job)
    job.finish()
    assert sorted(shown()["read"](folder)) == list(range(TASKS * ROWS))
    return step


def kill(*subtasks: int) -> Callable[[SimulatedJob], None]:
    def strike(job: SimulatedJob) -> None:
        for identity, process in list(job.transport.processes.items()):
            if process.subtask in subtasks:
                job.transport.kill(identity)

    return strike


def lose_driver_after_save(job: SimulatedJob) -> None:
    """A checkpoint is stored, and the driver dies before any coordinator is notified."""
    job.run_blocking("store")
    job.crash_driver()


STRIKES: dict[str, Callable[[SimulatedJob], object]] = {
    "the driver dies": SimulatedJob.crash_driver,
    "the driver dies between save and notice": lose_driver_after_save,
    "a task dies": kill(0),
    "all tasks die": kill(0, 1),
    "the job goes back": lambda job: job.master.job.lifecycle.fail_globally("it goes back"),
}


@pytest.mark.parametrize("what", STRIKES)
def test_each_row_is_committed_once_whatever_happens_at_any_step(tmp_path: Path, what: str) -> None:
    steps = run(tmp_path / "calm", -1, STRIKES[what])
    assert steps > 40
    for at in range(steps):
        run(tmp_path / f"{at}", at, STRIKES[what])


@pytest.mark.parametrize(
    "seed", [*range(40), *(pytest.param(n, marks=pytest.mark.extended) for n in range(40, 150))]
)
def test_each_row_is_committed_once_in_whatever_order_things_happen(
    tmp_path: Path, seed: int
) -> None:
    chance, job = random.Random(seed), job_in(tmp_path, 20)
    for _ in range(chance.randrange(100, 500)):
        if job.is_over:
            break
        steps = [step for step in job.steps() if job.can(step)]
        does = chance.random()
        if does < 0.6 and steps:
            job.step(chance.choice(steps))
        elif does < 0.9:
            job.drain(1)
        elif does < 0.93:
            job.run_blocking()
        elif does < 0.97:
            job.master.request_checkpoint()
        elif does < 0.98:
            job.advance()
        elif does < 0.99:
            chance.choice(list(STRIKES.values()))(job)
    job.finish()
    assert sorted(shown()["read"](tmp_path)) == list(range(TASKS * 20))


def test_an_entry_that_is_written_again_has_the_same_files(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    for _ in range(4):
        job.flow(held=("work",))
        for step in [step for step in job.steps() if step[0] == "work"]:
            job.step(step)
        job.master.request_checkpoint()
        job.flow(held=("work",))
    entries = sorted((tmp_path / "log").glob("*.json"))
    newest = json.loads(entries[-1].read_text())
    assert newest
    entries[-1].unlink()
    job.crash_driver()
    job.settle(until=lambda: entries[-1].exists())
    assert json.loads(entries[-1].read_text()) == newest
