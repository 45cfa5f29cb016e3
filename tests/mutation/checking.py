"""The checker's side: whether a mutant is found on all interleavings of the closed systems that are
made of the machines that run, in small bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from epochgate.fsm.closed import ClosedSystem
from epochgate.fsm.explore import Result, Verdict, check
from epochgate.fsm.explore.result import Counterexample
from epochgate.models.closed_job import ClosedJob, EndingJob, LiveJob, TalkingJob
from epochgate.models.commit import Commit
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
    bounds(EndingJob),
    bounds(LiveJob),
)
"""Tried in this order."""
LARGER = (bounds(TalkingJob),)
"""For what none of these comes to."""
COMMITS = (bounds(Commit), *SYSTEMS)


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
    """Search the systems until one shows that the mutant is wrong; None if none does."""
    return next(filter(None, (_found(where, mutant) for where in exercising(mutant))), None)


def exercising(mutant: Mutant) -> list[Bounds]:
    """The systems that come to a state in which the mutant does something else."""
    affected = {(mutant.machine, row.trigger, row.because) for row in mutant.affected}
    small = COMMITS if mutant.machine == "committer" else SYSTEMS
    found = [where for where in small if affected & _taken(where)]
    return found or [where for where in LARGER if affected & _taken(where)]


def _found(where: Bounds, mutant: Mutant) -> Found | None:
    result = check(where.of(mutant), engine=ENGINE, max_seconds=SECONDS_MAX)
    if result.counterexample is not None:
        return Found(where, result.counterexample.message, result.counterexample)
    if missing := sorted(_never(result) - _never_by_nature(where)):
        return Found(where, f"never: {missing[0]}", None)
    return None


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
