"""The checker's side: whether a mutant is found on all interleavings of the closed systems that are
made of the machines that run, in small bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from epochgate.fsm.closed import ClosedSystem
from epochgate.fsm.explore import Result, Verdict, check
from epochgate.fsm.explore.result import Counterexample
from epochgate.models.closed_job import ClosedJob, EndingJob, LiveJob, ResumingJob, TalkingJob
from epochgate.models.commit import Commit
from epochgate.models.overlapping import Overlapping
from tests.mutation.mutants import Mutant

ENGINE = "python"
"""Nothing is translated to machine code for a few thousand states."""
SECONDS_MAX = 30.0


@dataclass(frozen=True)
class Bounds:
    """One closed system in small bounds."""

    system: type[ClosedSystem]
    constants: tuple[tuple[str, int], ...] = ()

    def of(self, mutant: Mutant | None) -> ClosedSystem:
        """The system, with one of its machines broken."""
        system = self.system if mutant is None else mutant.in_system(self.system)
        assert issubclass(system, ClosedSystem)
        return system(**dict(self.constants))

    def __str__(self) -> str:
        constants = ", ".join(f"{name}={value}" for name, value in self.constants)
        return f"{self.system.__name__}({constants})"


def bounds(system: type[ClosedSystem], **constants: int) -> Bounds:
    return Bounds(system, tuple(constants.items()))


SYSTEMS = (
    bounds(ClosedJob, subtasks=1),
    bounds(LiveJob, subtasks=1),
    bounds(ClosedJob, subtasks=1, coordinators=2, wanted=1),
    bounds(TalkingJob, wanted=1),
    bounds(ResumingJob),
    bounds(EndingJob, slow_commits=0),
    bounds(EndingJob),
    bounds(LiveJob),
)
"""Tried in this order."""
LARGER = (
    bounds(ClosedJob, subtasks=3, wanted=1, F=0),
    bounds(ClosedJob, subtasks=1, coordinators=2, F=0),
    bounds(ClosedJob, subtasks=1, F=2),
    bounds(TalkingJob),
)
"""For what none of these comes to, or shows."""
PARTS = {
    "committer": (bounds(Commit),),
    "gateway": (bounds(Overlapping),),
    "snapshot": (bounds(Overlapping),),
}
"""Systems around some of the job's machines; other names mean other machines in them."""


@dataclass(frozen=True)
class Found:
    """What the checker has against a mutant."""

    where: Bounds
    claim: str
    counterexample: Counterexample | None
    """None where something does not happen any more that should sometimes happen."""

    def __str__(self) -> str:
        if self.counterexample is None:
            return f"{self.where}: {self.claim}"
        return f"{self.where}, {len(self.counterexample.steps)} steps: {self.claim}"


def found_by_the_checker(mutant: Mutant) -> Found | None:
    """Search the systems until a claim fails; then see whether they have another number of states,
    which the tests of the systems hold too. None if the mutant makes no difference to them.
    """
    results = []
    for where in exercising(mutant):
        results.append((where, check(where.of(mutant), engine=ENGINE, max_seconds=SECONDS_MAX)))
        if found := _claim_broken(*results[-1]):
            return found
    return next(filter(None, (_counted(*each) for each in results)), None)


def exercising(mutant: Mutant) -> list[Bounds]:
    """The systems that come to a state in which the mutant does something else."""
    affected = {(mutant.machine, row.trigger, row.because) for row in mutant.affected}
    systems = (*SYSTEMS, *PARTS.get(mutant.machine, ()), *LARGER)
    return [where for where in systems if affected & _taken(where)]


def _claim_broken(where: Bounds, result: Result) -> Found | None:
    if result.counterexample is not None:
        return Found(where, result.counterexample.message, result.counterexample)
    if missing := sorted(_never(result) - _never_by_nature(where)):
        return Found(where, f"never: {missing[0]}", None)
    return None


def _counted(where: Bounds, result: Result) -> Found | None:
    right = _unbroken(where)
    if (result.states, result.transitions) == (right.states, right.transitions):
        return None
    told = f"{result.states:,} states and {result.transitions:,} transitions"
    return Found(where, f"{told}, and not {right.states:,} and {right.transitions:,}", None)


def _never(result: Result) -> set[str]:
    """The claims of something that happens which were not seen to."""
    return {p.claim for p in result.properties if p.verdict is not Verdict.PASS}


@cache
def _unbroken(where: Bounds) -> Result:
    return check(where.of(None), engine=ENGINE)


def _never_by_nature(where: Bounds) -> set[str]:
    return _never(_unbroken(where))


@cache
def _taken(where: Bounds) -> frozenset[tuple[str, str, str]]:
    rows = _unbroken(where).coverage
    return frozenset((row.machine, row.trigger, row.because) for row in rows if row.is_taken)
