"""The runtime's side: whether a mutant is found where it runs.

The production runtime goes with the broken machine in simulation: along the schedule of the
checker's counterexample, and through everything that the fuzzer can do to a job, in each of the
situations that it looks for, held against a record that looks at no machine.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product

import pytest

from epochgate.fsm import System
from epochgate.fsm.explore.counterexample import Counterexample
from epochgate.fsm.explore.schedule import ClaimBroken
from epochgate.models import Job
from epochgate.models.task import TaskSystem
from epochgate.runtime import JobConfiguration, worker
from epochgate.runtime.fuzzing import InvariantViolated
from epochgate.runtime.fuzzing.stateful import DISTURBANCES, GOALS, JobUnderFuzzing
from epochgate.runtime.replay import Diverged, play, playable
from epochgate.runtime.restart import FixedDelay
from epochgate.runtime.simulation import SimulatedJob
from tests.mutation.checking import Found
from tests.mutation.mutants import Mutant
from tests.runtime import test_receipts as receipts
from tests.runtime.letters import ArchiveProvider, WritingProgram

SITUATIONS_MAX = 200
OF_PROCESSES = (("kill",), ("cut",), ("intrude",))
STALE = (("repeat", "acknowledge"), ("repeat", "confirm"), ("past",))
TURNS = 400
HELD = ((), ("lose",), ("blocking",))


@dataclass(frozen=True)
class Seen:
    """What the runtime has against a mutant; `how` is `replay`, `disturbance` or `receipts`."""

    how: str
    account: str

    def __str__(self) -> str:
        return f"{self.how}: {self.account}"


def found_by_the_runtime(mutant: Mutant, found: Found | None) -> Seen | None:
    """Play what the checker has found, disturb jobs; None if the mutant survives."""
    return _replayed(mutant, found) or _disturbed(mutant) or _talked_to(mutant)


def _disturbed(mutant: Mutant) -> Seen | None:
    """Each disturbance in each of the situations from which the fuzzer looks for something new."""
    fuzzed = type("BrokenJobUnderFuzzing", (JobUnderFuzzing,), {"job": job_with(mutant)})
    situations = list(product(dict.fromkeys(GOALS), (*DISTURBANCES, *OF_PROCESSES, *STALE), HELD))
    random.Random(0).shuffle(situations)
    for goal, disturbance, held in situations[:SITUATIONS_MAX]:
        try:
            with workers_with(mutant):
                _disturb(fuzzed(), goal, disturbance, held)
        except InvariantViolated as violated:
            where = f"{' '.join(disturbance)} when {' is '.join(goal)}"
            return Seen("disturbance", f"{where}: {violated}")
    return None


def _disturb(
    job: JobUnderFuzzing, goal: tuple[str, str], disturbance: tuple[str, ...], held: tuple[str, ...]
) -> None:
    """Go there, disturb, let time pass while something is held back, and look how it ends."""
    job.start(
        is_up=True,
        coordinators=2,
        subtasks=2,
        tolerable_failures=len(held),
        restarts_max=1000,
        is_periodic=False,
    )

    def disturb() -> None:
        if disturbance in OF_PROCESSES:
            job.disturb_process(index=0, how=disturbance[0], at_once=True)
        elif disturbance == ("past",):
            job.send_to_the_past(index=0, at_once=True)
        elif disturbance in STALE:
            job.repeat(tag=disturbance[1], index=0)
        else:
            job.disturb(disturbance=disturbance, index=0, at_once=True)

    moves: tuple[Callable[[], None], ...] = (
        lambda: _send(job),
        lambda: job.walk(goal=goal, subtask=0, repeats=1),
        lambda: _send(job),
        *([disturb] * (1 + len(held))),
        lambda: job.flow(held=held, only=None),
        lambda: job.wait(is_long=True, at_once=True),
    )
    try:
        for move in moves:
            if job.is_running():
                move()
            job.holds()
    finally:
        job.teardown()


def _send(job: JobUnderFuzzing) -> None:
    for target in job.under.targets():
        job.under.send(*target, 1)


def _talked_to(mutant: Mutant) -> Seen | None:
    """A job whose operators ask for receipts, which fails now and then."""
    chance = random.Random(0)
    try:
        with workers_with(mutant):
            job = SimulatedJob(
                _letters,
                lambda _: WritingProgram(receipts.LETTERS),
                job=job_with(mutant),
                retained=1000,
            )
            for _ in range(TURNS):
                receipts.turn(job, chance)
                receipts.check_every_checkpoint(job)
            job.settle(lambda: job.is_over)
            assert job.result.state == "finished"
            assert receipts.check_every_checkpoint(job) == 2 * receipts.LETTERS
    except Exception as error:  # noqa: BLE001  whatever it is, the job does not come through
        return Seen("receipts", repr(error))
    return None


def _letters(start: int) -> JobConfiguration:
    return JobConfiguration(
        "letters",
        2,
        (ArchiveProvider(is_slow=False),),
        checkpoint_interval_s=None,
        restart_strategy=FixedDelay(100, 0.5),
    )


def _replayed(mutant: Mutant, found: Found | None) -> Seen | None:
    if found is None or found.counterexample is None:
        return None
    if playable(found.where.system):
        return None
    # A worker's machine goes beside the right one, which it must not differ from.
    system = found.where.of(None if mutant.machine == "task" else mutant)
    example = found.counterexample
    try:
        with workers_with(mutant):
            play(system, *schedule(example), cycle=example.cycle, promise=example.property)
    except ClaimBroken as broken:
        return Seen("replay", str(broken))
    except Diverged as diverged:
        return Seen("replay", str(diverged)) if mutant.machine == "task" else None
    return None


def schedule(example: Counterexample) -> list[str]:
    """The steps of a counterexample by the names that a schedule gives them."""
    return [f"{step.instance}.{step.trigger}" for step in example.steps]


def job_with(mutant: Mutant) -> type[System]:
    """The machines of the driver, one of them broken unless it is the worker's."""
    return Job if mutant.machine == "task" else mutant.in_system(Job)


@contextmanager
def workers_with(mutant: Mutant) -> Iterator[None]:
    """Let the workers made meanwhile have the broken task machine, if it is that one."""
    with pytest.MonkeyPatch.context() as patch:
        if mutant.machine == "task":
            patch.setattr(worker, "TaskSystem", mutant.in_system(TaskSystem))
        yield
