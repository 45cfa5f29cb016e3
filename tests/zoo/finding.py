"""Lets each finder look for a bug, and says how far it had to go.

The checker searches a closed system with the broken machine in it; the fuzzer runs a test of a user
as `epochgate fuzz --profile ci` does; the systematic mode runs every schedule of that test within a
bound. Counts are the same each time; seconds are not.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any, Final

from epochgate.fsm.checker import check
from epochgate.fsm.closed import ClosedSystem
from epochgate.models.studies.broken.catalogue import BROKEN
from epochgate.runtime.testing.worlds.exploring import Exploration
from epochgate.runtime.testing.worlds.running import Run
from epochgate.runtime.testing.worlds.searching import Search, token
from epochgate.testing import explore, simulate
from tests.zoo import bodies
from tests.zoo.bugs import Bug
from tests.zoo.plants import Plant, in_the_runtime

CI_RUNS: Final = 4 * 100
"""What the ci profile runs of a test with `runs=100`."""
ENGINE: Final = "python"
EXPLORED_S: Final = 300.0


@dataclass(frozen=True)
class Checked:
    """The checker's counterexample: its steps, and the states that were known by then."""

    where: str
    states: int
    steps: int
    says: str
    seconds: float


@dataclass(frozen=True)
class Fuzzed:
    """The first run of the ci profile that fails, and its seed; None for the default schedule."""

    run: int
    seed: int | None
    says: str
    seconds: float


@dataclass(frozen=True)
class Explored:
    """The first schedule that fails, as a token, or that there is none within the bound."""

    runs: int
    states: int
    is_complete: bool
    token: str | None
    says: str
    seconds: float


def checked(bug: Bug) -> Checked | None:
    """Search the closed system with the plant in it; None if nothing is broken."""
    if not isinstance(bug.plant, Plant) or bug.where is None:
        return None
    return _checked(bug.plant.in_system(bug.where.system)(**dict(bug.where.constants)), bug.where)


def checked_design(bug: Bug) -> Checked | None:
    """Search the variant of a design; None if the bug has none."""
    return _checked(BROKEN[bug.design].system(), bug.design) if bug.design else None


def _checked(system: ClosedSystem, where: object) -> Checked | None:
    began_s = time.perf_counter()
    result = check(system, engine=ENGINE)
    found = result.counterexample
    if found is None:
        return None
    seconds = time.perf_counter() - began_s
    return Checked(str(where), result.states, len(found.steps), found.message, seconds)


def fuzzed(bug: Bug) -> Fuzzed | None:
    """The runs of the ci profile up to the first that fails; None if none does."""
    assert bug.plant is not None
    with in_the_runtime(bug.plant):
        found = _search(bug).scan(range(CI_RUNS - 1))
    if found.first is None:
        return None
    seed = found.seed if found.runs > 1 else None
    return Fuzzed(found.runs, seed, told(found.first), found.seconds)


def fuzzed_again(bug: Bug, seed: int | None) -> str:
    """Return what the run of one seed says."""
    assert bug.plant is not None
    with in_the_runtime(bug.plant):
        found = _search(bug).scan([] if seed is None else [seed])
    return told(found.first)


def explored(bug: Bug) -> Explored:
    """Every schedule within the bound, up to the first that fails."""
    assert bug.plant is not None
    with in_the_runtime(bug.plant):
        found = Exploration(_short(bug), *bug.bound).explore(EXPLORED_S)
    word = None if found.failure is None else token(found.failure)
    return Explored(
        found.runs, found.states, found.is_complete, word, told(found.failure), found.seconds
    )


def explored_again(bug: Bug, word: str) -> str:
    """Return what the schedule of this token says."""
    assert bug.plant is not None
    with in_the_runtime(bug.plant):
        return told(_short(bug).replay(word).failure)


def _search(bug: Bug) -> Search:
    return simulate(bug.body).simulation.search()


def _short(bug: Bug) -> Search:
    body = bodies.once if bug.body is bodies.numbers else bug.body
    return explore(faults=bug.faults)(bug.short or body).simulation.search()


def told(run: Run | None) -> str:
    """Return which claim a run breaks; empty if none."""
    return "" if run is None or run.broken is None else f"{run.broken.kind}: {run.broken.claim}"


def measured(bug: Bug) -> dict[str, Any]:
    """Return what all finders come to, as plain values."""
    plain = {
        "checked": checked(bug),
        "design": checked_design(bug),
        "fuzzed": None if bug.plant is None else fuzzed(bug),
        "explored": None if bug.plant is None else explored(bug),
    }
    return {name: None if found is None else asdict(found) for name, found in plain.items()}
