"""`@simulate` and `@explore`: make a test from a function of a world."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast, overload

from epochgate.runtime.testing.worlds.claims import Place
from epochgate.runtime.testing.worlds.exploring import Exploration, Explored
from epochgate.runtime.testing.worlds.faults import BY_DEFAULT, known
from epochgate.runtime.testing.worlds.report import SimulationFailed, Vacuous, report
from epochgate.runtime.testing.worlds.schedule import ORDERS
from epochgate.runtime.testing.worlds.searching import Found, NotReplayed, Search
from epochgate.runtime.testing.worlds.settings import CHOSEN
from epochgate.runtime.testing.worlds.world import World


@dataclass(frozen=True)
class Simulation:
    """A simulated test: its body, its number of runs, and the deviations that they may have."""

    body: Callable[..., Any]
    name: str
    runs: int
    faults: tuple[str, ...]
    faults_max: int

    def search(self, **arguments: Any) -> Search:
        """Return the search over its runs; the body gets `arguments` after the world."""

        def body(world: World) -> Any:
            return self.body(world, **arguments)

        return Search(body, (*ORDERS, *self.faults), self.faults_max, self.node)

    @property
    def node(self) -> str:
        """The name of the test in pytest, from the folder in which it runs; empty for a function
        within another.
        """
        code = getattr(self.body, "__code__", None)
        if code is None or "<locals>" in self.name:
            return ""
        return f"{Place(code.co_filename, 0).shown}::{self.name.replace('.', '::')}"

    def check(self, **arguments: Any) -> Found:
        """Run as the command line says. Raises SimulationFailed, Vacuous, NotRepeatable."""
        __tracebackhide__ = True
        search = self.search(**arguments)
        if CHOSEN.token is not None:
            found = search.replay(CHOSEN.token)
        elif CHOSEN.seed is not None:
            found = search.at_random(2, CHOSEN.seed)
        else:
            found = search.at_random(max(2, round(self.runs * CHOSEN.effort)), CHOSEN.first_seed)
        found.is_part = CHOSEN.seed is not None or CHOSEN.effort < 1
        CHOSEN.note(self.name, found)
        self.judge(found)
        return found

    def judge(self, found: Found) -> None:
        """Raise the failure of a search. Raises SimulationFailed, NotReplayed, Vacuous."""
        __tracebackhide__ = True
        if found.failure is not None and found.failure.broken is not None:
            told = report(self.name, found, is_whole=CHOSEN.is_whole)
            has_sides = found.failure.broken.sides is not None  # pytest would tell them once more
            is_enough = has_sides and not CHOSEN.is_whole
            raise SimulationFailed(told) from (None if is_enough else found.failure.cause)
        if found.missed:
            raise NotReplayed(
                f"{self.name}: {found.missed}: the test has changed since the report, or "
                "the token belongs to another test (select one with `pytest -k`)"
            )
        if found.never and found.runs > 1 and not found.is_part:
            raise Vacuous(self.name, found)


class ExploredInPart(UserWarning):
    """The time was up before `explore` had run every schedule within its bound."""


@dataclass(frozen=True)
class Systematic(Simulation):
    """A simulated test that runs every schedule within a bound."""

    delays_max: int = 1
    seconds: float | None = None

    def check(self, **arguments: Any) -> Found:
        """Explore, or run as the command line says; warn if the time was up before the bound was
        reached. Raises SimulationFailed, Vacuous.
        """
        __tracebackhide__ = True
        if CHOSEN.token is not None or CHOSEN.seed is not None:
            return super().check(**arguments)
        found = self.explored(self.seconds, **arguments)
        CHOSEN.note(self.name, found)
        self.judge(found)
        if not found.is_complete:
            warnings.warn(f"{self.name}: {found.told()}", ExploredInPart, stacklevel=3)
        return found

    def explored(self, seconds: float | None, **arguments: Any) -> Explored:
        """Explore until the bound is reached or the time is up."""
        exploration = Exploration(self.search(**arguments), self.faults_max, self.delays_max)
        return exploration.explore(seconds)


class SimulatedTest(Protocol):
    """A test for pytest, made by `@simulate`: the function without its first parameter."""

    simulation: Simulation

    def __call__(self, **arguments: Any) -> None:
        """Run the test. Raises SimulationFailed, Vacuous, NotRepeatable."""
        ...


@overload
def simulate(
    test: Callable[..., Any],
    *,
    runs: int = ...,
    faults: Sequence[str] | None = ...,
    faults_max: int = ...,
) -> SimulatedTest: ...


@overload
def simulate(
    test: None = None,
    *,
    runs: int = ...,
    faults: Sequence[str] | None = ...,
    faults_max: int = ...,
) -> Callable[[Callable[..., Any]], SimulatedTest]: ...


def simulate(
    test: Callable[..., Any] | None = None,
    *,
    runs: int = 300,
    faults: Sequence[str] | None = None,
    faults_max: int = 3,
) -> SimulatedTest | Callable[[Callable[..., Any]], SimulatedTest]:
    """Make a pytest test from a function of a world. Each of its `runs` runs has other faults and
    another schedule; a failure is shrunk to the shortest schedule.

    `faults` names the kinds of faults that are injected: all but those that hang by default, none
    with `()`. A run has
    at most `faults_max` of them. Further parameters of the function are fixtures of pytest, shared
    by all runs. Raises UnknownFault for an unknown name.
    """
    names = known(BY_DEFAULT if faults is None else tuple(faults))

    def decorate(body: Callable[..., Any]) -> SimulatedTest:
        simulation = Simulation(body, body.__qualname__, runs, names, faults_max)
        return simulated(simulation, simulation.check)

    return decorate if test is None else decorate(test)


def explore(
    *,
    faults_max: int = 1,
    delays_max: int = 0,
    faults: Sequence[str] | None = None,
    seconds: float | None = None,
) -> Callable[[Callable[..., Any]], SimulatedTest]:
    """Make a test of a function of a world: every schedule within a bound of faults and delays
    is run, as far as there are `seconds`; pytest's summary says whether that was all.

    A delay lets one step wait, or lets the test's next line happen early. What the test draws is
    the same in all schedules. Raises UnknownFault for a fault that there is not.
    """
    names = known(BY_DEFAULT if faults is None else tuple(faults))

    def decorate(body: Callable[..., Any]) -> SimulatedTest:
        name = body.__qualname__
        simulation = Systematic(body, name, 1, names, faults_max, delays_max, seconds)
        return simulated(simulation, simulation.check)

    return decorate


def simulated(simulation: Simulation, check: Callable[..., Any]) -> SimulatedTest:
    """Make a test function that pytest collects and gives the fixtures of the body."""

    @functools.wraps(simulation.body)
    def run(**arguments: Any) -> None:
        __tracebackhide__ = True
        check(**arguments)

    test = cast(SimulatedTest, run)
    fixtures = list(inspect.signature(simulation.body).parameters.values())[1:]
    run.__signature__ = inspect.Signature(fixtures)  # type: ignore[attr-defined]  # for pytest
    test.simulation = simulation
    return test


def replay(test: SimulatedTest, token: str) -> SimulatedTest:
    """Make a test that replays one schedule of a simulated test, by the token of a report.

    When it runs, it raises TokenMalformed for a damaged token, and NotReplayed if the test has
    changed so that the schedule is no longer possible.
    """
    simulation = test.simulation

    def check(**arguments: Any) -> None:
        __tracebackhide__ = True
        simulation.judge(simulation.search(**arguments).replay(token))

    return simulated(simulation, check)
