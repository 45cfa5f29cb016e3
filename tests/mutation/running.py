"""The runtime's side: whether a mutant is found where it runs.

The production runtime goes with the broken machine in simulation: along the schedule of the
checker's counterexample, by itself and beside the right machines; through the scenarios; through
what the fuzzer can do to a job, in the situations that it looks for, held against a record that
looks at no machine; and through the tests that are named for it. The machines of other systems than
the job and its task go through scenarios alone, and through their own tests (`by_test`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import product, zip_longest
from pathlib import Path
from typing import Any

import pytest

from epochgate.fsm import Machine, Outcome, Row, System
from epochgate.fsm.checker.result import Counterexample
from epochgate.fsm.checker.schedule import ClaimBroken, play_on
from epochgate.fsm.closed import ClosedSystem
from epochgate.models import Job
from epochgate.models.closed.committing import CommittingInSteps
from epochgate.models.closed.job import ClosedJob
from epochgate.models.committing_job import CommittingJob
from epochgate.models.compaction import Compactions
from epochgate.models.control_update import ControlUpdates
from epochgate.models.discovery import Discoveries
from epochgate.models.in_flight import RecordsInFlight
from epochgate.models.placement import Placements
from epochgate.models.read_splits import SplitsRead
from epochgate.models.receive_window import ReceiveWindows
from epochgate.models.resident import Residents
from epochgate.models.send_window import SendWindows
from epochgate.models.setting_change import SettingChanges
from epochgate.models.table_owner import TableOwners
from epochgate.models.task import TaskSystem
from epochgate.runtime import JobConfiguration
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.shell import worker
from epochgate.runtime.testing.fuzzing.record import InvariantViolated
from epochgate.runtime.testing.playing import Diverged, ProductionStage, playable
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.checker.side_by_side import again
from tests.mutation.bodies import Case
from tests.mutation.by_name import found_by_name
from tests.mutation.checking import Bounds, Found
from tests.mutation.mutants import AnyMutant
from tests.mutation.planted import bounded_queues, planted
from tests.mutation.seen import Seen as Seen
from tests.playing import job_committing_walks as committing
from tests.playing.job_committing_stage import PlainSteps
from tests.runtime import test_receipts as receipts
from tests.runtime.letters import WritingProgram, archive
from tests.scenarios import test_scenarios as scenarios
from tests.scenarios.machines_world import MachinesWorld
from tests.stateful.stateful import DISTURBANCES, GOALS, JobUnderFuzzing

OF_NO_SCENARIO = (
    Compactions,
    ControlUpdates,
    Discoveries,
    Placements,
    Residents,
    RecordsInFlight,
    SettingChanges,
    SplitsRead,
    SendWindows,
    ReceiveWindows,
    TableOwners,
)
SITUATIONS_MAX = 120
OF_PROCESSES = (("kill",), ("cut",), ("intrude",))
REPEATED = {("repeat", tag): tag for tag in ("acknowledge", "confirm")}
TO_THE_PAST = (("to the past",),)
TURNS = 400
WALKS = 10
HELD = ((), ("lose",), ("blocking",))


def found_by_the_runtime(mutant: AnyMutant, found: Found | None) -> Seen | None:
    """Play what the checker has found, disturb jobs, run tests; None if the mutant survives."""
    if mutant.home.system in OF_NO_SCENARIO:
        return None  # it runs in none of the scenarios, and in no job without a source
    looks: list[Callable[[], Seen | None]]
    looks = [lambda: told_otherwise(mutant)]
    if mutant.home.system is CommittingJob:
        looks = [lambda: played(mutant, found), *looks, lambda: _walked(mutant)]
    if mutant.home.system in (Job, TaskSystem):
        looks = [
            lambda: played(mutant, found),
            *looks,
            lambda: _disturbed(mutant),
            lambda: _talked_to(mutant),
            lambda: found_by_name(mutant),
        ]
    return next(filter(None, (look() for look in looks)), None)


def played(mutant: AnyMutant, found: Found | None) -> Seen | None:
    """The way of the checker's counterexample; None if there is none, or if it shows nothing."""
    if found is None or found.counterexample is None:
        return None
    if not issubclass(found.where.system, ClosedJob):
        return None
    way = mutant, found.counterexample, found.where
    return _replayed(*way) or _compared(*way)


def _walked(mutant: AnyMutant) -> Seen | None:
    """The broken runtime beside the right machines of commits in several steps, on random walks."""
    broken = job_with(mutant)

    class BrokenSteps(PlainSteps):
        def machines_of(self, system: type[ClosedJob]) -> type[Job]:
            return broken

    for seed, system in product(range(WALKS), committing.SYSTEMS):
        try:
            committing.walked_on(BrokenSteps(again(system)), seed)
        except Exception as error:  # noqa: BLE001  whatever it is, the walk has not gone on unnoticed
            return Seen("walk", f"{seed} on {type(system).__name__}: {error!r}")
    return None


def _disturbed(mutant: AnyMutant) -> Seen | None:
    """Each disturbance in each of the situations from which the fuzzer looks for something new."""
    fuzzed = type("BrokenJobUnderFuzzing", (JobUnderFuzzing,), {"job": job_with(mutant)})
    situations = list(
        product(dict.fromkeys(GOALS), (*DISTURBANCES, *OF_PROCESSES, *REPEATED, *TO_THE_PAST), HELD)
    )
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
        elif disturbance in TO_THE_PAST:
            job.send_to_the_past(index=0, at_once=True)
        elif disturbance in REPEATED:
            job.repeat(tag=REPEATED[disturbance], index=0)
        else:
            job.disturb(disturbance=disturbance, index=0, at_once=True)

    moves: tuple[Callable[[], None], ...] = (
        lambda: _send(job),
        lambda: job.walk(goal=goal, subtask=0, repeats=1),
        lambda: _send(job),
        *([disturb] * (1 + len(held))),
        lambda: job.flow(held=held, only=None),
        lambda: job.wait(is_long=True, at_once=True),
        lambda: _send(job),
        lambda: job.send_to_the_past(index=0, at_once=True),
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


def _talked_to(mutant: AnyMutant) -> Seen | None:
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
        (archive(is_slow=False),),
        checkpoint_interval_s=None,
        restart_strategy=FixedDelay(100, 0.5),
    )


def told_otherwise(mutant: AnyMutant, claim: str = "") -> Seen | None:
    """A scenario that comes out otherwise, of all or the one of a claim."""
    telling = [
        each
        for each in _scenarios_that_hold()
        if claim in ("", each.claim) and each.tells_of(mutant)
    ]
    with planted(mutant):
        for scenario in telling:
            try:
                different = scenario.first_difference()
            except Exception as error:  # noqa: BLE001  whatever it is, the scenario does not hold
                different = repr(error)
            if different:
                return Seen("scenario", f"{scenario.claim}: {different}")
    return None


@dataclass(frozen=True)
class Scenario:
    """A file of tests/scenarios."""

    claim: str
    text: str
    taken: frozenset[Case] | None
    """The rows that are taken in it; None where it has more machines than the world's own."""
    refused: frozenset[str] = frozenset()
    """The triggers that no row takes somewhere in it."""

    def tells_of(self, mutant: AnyMutant) -> bool:
        """Return whether it comes to where a mutant does something else: to one of its rows, or to
        where no row is, and a mutant may have one.
        """
        if self.taken is None or self.taken & mutant.affected:
            return True
        # A mutant that only allows more affects no row of the right machine.
        triggers = {trigger for _, trigger, _ in mutant.affected}
        return bool(self.refused & triggers if triggers else self.refused)

    def first_difference(self) -> str:
        """Return where it comes out otherwise; empty if it does not."""
        expected = self.text.rstrip("\n").split("\n\n")
        for old, new in zip(expected, scenarios.paragraphs_of(self.text), strict=True):
            if old != new:
                return _first_difference(old, new)
        return ""


@cache
def _scenarios_that_hold() -> tuple[Scenario, ...]:
    """Those that come out as they should while nothing is broken, the quick ones first."""
    read = [_scenario(path) for path in scenarios.FILES]
    holding = [each for each in read if not each.first_difference()]
    return tuple(sorted(holding, key=lambda each: (each.taken is None, len(each.text))))


def _scenario(path: Path) -> Scenario:
    claim, text = f"{path.parent.name}/{path.stem}", path.read_text(encoding="utf-8")
    world = scenarios.world_of(text)
    if not isinstance(world, type) or not issubclass(world, MachinesWorld):
        return Scenario(claim, text, None)
    names = {machine: name for name, machine in world.SYSTEM.MACHINES.items()}
    taken: set[Case] = set()
    refused: set[str] = set()

    def note(machine: Machine, _: str, row: Row, __: tuple[Any, ...]) -> None:
        taken.add((names[type(machine)], row.trigger, row.because))

    def watched(world: MachinesWorld) -> System:
        system: System = new(world)
        system.observer = note
        return system

    def heard(world: MachinesWorld, *fired: Any) -> Outcome | None:
        outcome = fire(world, *fired)
        refused.update(
            line.rpartition(": ")[2] for line in world.lines if line.startswith("refused in ")
        )
        return outcome

    new, fire = world._new, world._fire
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world, "_new", watched)
        patch.setattr(world, "_fire", heard)
        scenarios.replayed(text)
    return Scenario(claim, text, frozenset(taken), frozenset(refused))


def _first_difference(expected: str, really: str) -> str:
    pairs = zip_longest(expected.splitlines(), really.splitlines())
    return next(f"{new!r} instead of {old!r}" for old, new in pairs if old != new)


def _replayed(mutant: AnyMutant, example: Counterexample, where: Bounds) -> Seen | None:
    """The runtime goes the way of the counterexample, and breaks the same claim."""
    if not is_playable(where.system) or mutant.machine == "task":
        return None
    stage, way = stage_of(where.of(mutant)), schedule(example)
    try:
        play_on(stage, way, cycle=example.cycle, promise=example.property)
    except ClaimBroken as broken:
        return Seen("replay", str(broken))
    except Diverged:
        # The model has left its bounds, and the runtime has none.
        return None
    return None


def _compared(mutant: AnyMutant, example: Counterexample, where: Bounds) -> Seen | None:
    """The broken runtime beside the right machines, on the same way: they must not differ."""
    system: ClosedSystem = ClosedJob(subtasks=where.of(None).constants["subtasks"])
    if is_playable(where.system):
        system = where.of(None)
    stage = stage_of(system)
    assert isinstance(system, ClosedJob)
    with workers_with(mutant):
        stage.job = stage.scripted(system, job_with(mutant))
        steps = [step for step in schedule(example) if step in stage.steps]
        try:
            play_on(stage, steps)
        except (ClaimBroken, Diverged) as different:
            return Seen("comparison", str(different))
    return None


def is_playable(system: type[ClosedSystem]) -> bool:
    """Return whether a stage has an action for each of its steps."""
    return issubclass(system, CommittingInSteps) or not playable(system)


def stage_of(system: ClosedSystem) -> ProductionStage:
    """The stage on which schedules of a system are played."""
    kind = PlainSteps if isinstance(system, CommittingInSteps) else ProductionStage
    return kind(system)


def schedule(example: Counterexample) -> list[str]:
    """The steps of a counterexample by the names that a schedule gives them."""
    return [f"{step.instance}.{step.trigger}" for step in example.steps]


def job_with(mutant: AnyMutant) -> type[Job]:
    """The machines of the driver, one of them broken unless it is the worker's."""
    runs_in = CommittingJob if mutant.home.system is CommittingJob else Job
    broken = Job if mutant.machine == "task" else mutant.in_system(runs_in)
    assert issubclass(broken, Job)

    class BoundedJob(broken):  # type: ignore[misc, valid-type]  # a class made a line above
        def _queues(self) -> Any:
            return bounded_queues()

    return BoundedJob


@contextmanager
def workers_with(mutant: AnyMutant) -> Iterator[None]:
    """Let the workers made meanwhile have the broken task machine, if it is that one."""
    with pytest.MonkeyPatch.context() as patch:
        if mutant.machine == "task":
            patch.setattr(worker, "TaskSystem", mutant.in_system(TaskSystem))
        yield
