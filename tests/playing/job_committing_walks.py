"""Random walks on the closed systems of commits in several steps.

Each walk has a mind of its own how long each part of a commit takes and how often what fails, so
that checkpoints pile up at one step or another, and is calm until several are stored.
"""

from __future__ import annotations

from epochgate.fsm.closed import ClosedSystem, Step
from epochgate.models.closed.committing import CommittingInSteps
from epochgate.runtime.testing.playing import ProductionStage
from tests.checker.side_by_side import again
from tests.playing.gates import Lie, the_truth
from tests.playing.job_committing_halves import AgainInHalves, InHalves
from tests.playing.job_committing_stage import ALONE, InterleavedSteps, SteppedStage
from tests.playing.swarm import EAGERNESS, Swarm, kind, walk

STEPS_MAX, INTERLEAVED_MAX = 100, 200
SYSTEMS: tuple[ClosedSystem, ...] = (
    InHalves(F=2, wanted=2),
    AgainInHalves(F=1, wanted=3),
    AgainInHalves(F=2, wanted=2, tolerable_failures=0),
    InHalves(F=3),
    InHalves(F=2, wanted=2, task_committers=0),
    InHalves(F=2, wanted=2, operators_before=0, operators_behind=0),
)
ENDS = ("process.end_input", "person.stop")
OF_COMMITS = ("before_it", "behind_it", "sink", "parts")
STEPS = {f"{step.machine}.{step.trigger}" for step in CommittingInSteps.STEPS}


class Leaning(Swarm):
    """Draws each step as often as this walk likes it; with `taken`, first what is not in there."""

    def __init__(self, system: ClosedSystem, seed: int, taken: set[str]) -> None:
        super().__init__(seed, taken)
        assert isinstance(system, CommittingInSteps)
        self._way, self._steps = system.way, list[str]()
        self._calm = self.chance.choice((0, 1, 1, 2))
        """How many checkpoints are stored before anything fails or ends."""
        self._weights: dict[str, float] = {}
        self._quiet: set[str] = set()
        for step, machine in system.step_instances():
            name = step.machine + "".join(f"[{i}]" for i in machine.index) + f".{step.trigger}"
            self._weights[name] = self.chance.choice(_likings(step))
            if step.is_fair and kind(name) not in ENDS:
                self._quiet.add(name)

    def bearable(self, possible: list[str]) -> list[str]:
        """Those that this walk likes to begin now, while events wait."""
        new = self.new(possible)
        return [s for s in possible if s in new or self.chance.random() < self._weights[s]]

    def _drawn(self, possible: list[str], new: list[str]) -> str:
        if new:
            return self.chance.choice(new)
        if self._way.completed < self._calm:
            possible = [step for step in possible if step in self._quiet] or possible
        return self.chance.choices(possible, [self._weights[step] for step in possible])[0]


def _likings(step: Step) -> tuple[float, ...]:
    """Return how often a walk may like a step."""
    if step.is_stuttering:
        return (0.01, 0.002)
    if f"{step.machine}.{step.trigger}" in ENDS:
        return (0.02, 0.002)
    if not step.is_fair:
        return (0.5, 0.1, 0.01) if step.machine in OF_COMMITS else (0.1, 0.02, 0.005)
    if step.machine in OF_COMMITS:
        return (1, 0.1, 0.03)
    return (1, 1, 0.2) if step.trigger in ("tell", "hear") else (1,)


def walked(system: ClosedSystem, seed: int, taken: set[str], lie: Lie = the_truth) -> None:
    """Take random steps, each of which ends before the next one begins."""
    walked_on(SteppedStage(again(system), lie), seed, taken)


def walked_on(stage: ProductionStage, seed: int, taken: set[str] | None = None) -> None:
    """Take random steps on a stage; without `taken` no kind of steps is preferred."""
    swarm = Leaning(stage.system, seed, set(STEPS) if taken is None else taken)
    walk(stage, swarm, STEPS_MAX)


def interleaved(system: ClosedSystem, seed: int, behind: set[str]) -> None:
    """Begin random steps while the events of earlier ones wait."""
    copy = again(system)
    assert isinstance(copy, CommittingInSteps)
    stage, swarm = InterleavedSteps(copy), Leaning(copy, seed, behind)
    for _ in range(INTERLEAVED_MAX):
        every, waits = stage.possible(), bool(stage.waiting)
        possible = swarm.bearable(every) if waits else every
        wanted = [step for step in swarm.new(possible) if kind(step) not in ALONE]
        heard = [step for step in every if step.startswith("process") and ".hear" in step]
        if waits and not wanted and (not possible or swarm.chance.random() < EAGERNESS):
            stage.process()
        elif possible:  # what is wanted begins behind what a process says
            is_first = bool(wanted and heard) and not waits
            stage.begin(swarm.draw(heard if is_first else possible, counts=waits))
    while stage.waiting:
        stage.process()
