"""Searches one system in every way that there is, and says where two of them differ.

The engines are compared in three spaces: the whole one, the one up to symmetry, and the one that
partial-order reduction leaves; then the two smaller ones with the whole one. A space that is too
large for an engine is searched down to a level, by the fastest engine too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any

import pytest

from epochgate.fsm.checker import Result, Verdict, check
from epochgate.fsm.checker.checking import WITHOUT_ORDER, CannotCheck
from epochgate.fsm.checker.engines.compiled import CompiledSearch
from epochgate.fsm.checker.engines.python_search import PlainSearch
from epochgate.fsm.checker.engines.search import size
from epochgate.fsm.checker.symmetry import NotSymmetric
from epochgate.fsm.closed import ClosedSystem
from epochgate.spark.checking.search import ClusterSearch
from tests.agreement.systems import Make


@dataclass(frozen=True)
class Budget:
    """The bounds of a space: in states for what is compiled, and in steps that are tried, which
    are states times steps of instances, for Python and for the machines themselves.
    """

    states: int
    python: int
    machines: int


QUICK = Budget(2_000, 20_000, 2_000)
USUAL = Budget(20_000, 30_000, 5_000)
DEEP = Budget(20_000_000, 300_000, 20_000)


@dataclass(frozen=True)
class Seen:
    """The outcome of a search; where it found a violation, that alone, since searches differ in how
    much they have looked at by then.
    """

    verdict: Verdict
    broken: tuple[str, str, int, int | None] | None
    """The kind and the text of what is broken, the steps to it, and where a loop begins."""
    states: int = 0
    transitions: int = 0
    terminal_states: int = 0
    levels: tuple[int, ...] = ()
    """How many states each level has."""
    claims: tuple[tuple[str, Verdict], ...] = ()
    rows: tuple[tuple[bool, tuple[str, ...]], ...] = ()
    """Whether each row was taken, and in which states it was not."""

    @property
    def is_bounded(self) -> bool:
        return self.verdict is Verdict.BOUNDED

    def differs(self, other: Seen, *left_out: str) -> str:
        """The differences from another search, in words."""
        names = [field.name for field in fields(self) if field.name not in left_out]
        pairs = [(name, getattr(self, name), getattr(other, name)) for name in names]
        return "; ".join(f"{name}: {one} and {two}" for name, one, two in pairs if one != two)


def seen(result: Result, levels: list[int]) -> Seen:
    """Keep what searches are compared by."""
    found = result.counterexample
    if found is not None:
        text = found.property or found.message
        return Seen(result.verdict, (found.kind, text, len(found.steps), found.cycle))
    return Seen(
        result.verdict,
        None,
        result.states,
        result.transitions,
        result.terminal_states,
        tuple(levels),
        tuple((claim.name, claim.verdict) for claim in result.properties),
        tuple((row.is_taken, row.untaken_from) for row in result.coverage),
    )


@contextmanager
def levels_noted() -> Iterator[list[int]]:
    """Note the size of each level that a search expands."""
    noted: list[int] = []

    def noting(usual: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(usual)
        def expand(self: Any, level: Any, pause: Any) -> Any:
            noted.append(size(level))
            return usual(self, level, pause)

        return expand

    with pytest.MonkeyPatch.context() as patch:
        for kind in (CompiledSearch, PlainSearch, ClusterSearch):
            patch.setattr(kind, "expand", noting(kind.expand))
        yield noted


def searched(system: ClosedSystem, **options: Any) -> Seen:
    """Search on one machine."""
    with levels_noted() as levels:
        return seen(check(system, **options), levels)


def without_promises(system: ClosedSystem) -> ClosedSystem:
    """Leave out the claims that are not about single states or steps."""
    kept = tuple(claim for claim in system.properties() if claim.kind in WITHOUT_ORDER)
    system.properties = lambda: kept  # type: ignore[method-assign]
    return system


def down_to(levels: tuple[int, ...], states: int) -> int:
    """The last level with which there are no more states than these."""
    total, depth = 0, -1
    for number in levels:
        total += number
        if total > states:
            break
        depth += 1
    return max(depth, 1)


WHOLE, SYMMETRY, PARTIAL_ORDER = "whole", "symmetry", "partial order"
TWO_WORKERS, DEPTH_FIRST = "two workers", "depth first"


def within(states: int, system: ClosedSystem, **options: Any) -> tuple[Seen, dict[str, Any]]:
    """Search to the end, or down to the last level within this number of states; return what that
    came to, and the options of it.
    """
    found = searched(system, max_states=states, **options)
    if found.is_bounded:
        options = {**options, "max_depth": down_to(found.levels, states)}
        found = searched(system, **options)
    return found, options


Way = Callable[..., Seen]
WAYS: Mapping[str, Way] = {
    TWO_WORKERS: lambda system, **options: searched(system, workers=2, **options),
    DEPTH_FIRST: lambda system, **options: searched(system, order="depth", **options),
    "python": lambda system, **options: searched(system, engine="python", **options),
    "machines": lambda system, **options: searched(system, engine="interpreted", **options),
}
"""The ways to search beside the compiled engine with one worker."""
UNORDERED = "levels", "broken"
"""What a depth-first search does not tell."""


class Comparison:
    """The searches of one system, and where they differ."""

    def __init__(self, make: Make, budget: Budget, ways: Mapping[str, Way] = WAYS) -> None:
        self._make, self._budget, self._ways = make, budget, ways
        self.found: list[str] = []
        """The differences of two searches, in words."""

    def run(self) -> list[str]:
        """Search in all ways; return where they differ."""
        bare = without_promises(self._make())
        whole = self._space(WHOLE, bare, {})
        try:
            folded = self._space(SYMMETRY, bare, {"symmetry": True})
        except (NotSymmetric, CannotCheck):
            folded = None
        if folded is not None:
            self._compare_spaces(SYMMETRY, whole, folded)
        reduced = self._space(PARTIAL_ORDER, bare, {"partial_order": True})
        self._compare_spaces(PARTIAL_ORDER, whole, reduced)
        if len(bare.properties()) < len(self._make().properties()):
            self._promises(whole)
        return self.found

    def _space(self, space: str, system: ClosedSystem, options: dict[str, Any]) -> Seen:
        """Search one space in all ways; returns what the fastest engine came to."""
        first, options = within(self._budget.states, system, **options)
        for way, search in self._ways.items():
            is_left_out = space != WHOLE if way == TWO_WORKERS else "max_depth" in options
            if is_left_out and way in (TWO_WORKERS, DEPTH_FIRST):
                continue
            bounded, expected = self._bounded(way, system, options, first)
            left_out = UNORDERED if way == DEPTH_FIRST else ()
            self._compare(f"{space}, {way}", expected, search(system, **bounded), *left_out)
        return first

    def _bounded(
        self, way: str, system: ClosedSystem, options: dict[str, Any], first: Seen
    ) -> tuple[dict[str, Any], Seen]:
        """The options for a way to search within its budget, and what is expected then."""
        steps = {"python": self._budget.python, "machines": self._budget.machines}.get(way)
        if steps is None or first.broken is not None:
            return options, first
        states = steps // max(1, len(system.step_instances()))
        if first.states <= states:
            return options, first
        bounded = {**options, "max_depth": down_to(first.levels, states)}
        return bounded, searched(system, **bounded)

    def _compare(self, what: str, one: Seen, other: Seen, *left_out: str) -> None:
        if difference := one.differs(other, *left_out):
            self.found.append(f"{what}: {difference}")

    def _compare_spaces(self, space: str, whole: Seen, smaller: Seen) -> None:
        """Hold a smaller space to the whole one."""
        if whole.is_bounded or smaller.is_bounded:
            return
        if space == SYMMETRY:
            left_out = ["states", "transitions", "levels", "terminal_states", "rows"]
            if len(smaller.levels) != len(whole.levels):
                self.found.append(f"{space}: {len(whole.levels)} levels and {len(smaller.levels)}")
        else:
            # The shortest way to a violation may be among those that are left out.
            left_out = ["states", "transitions", "levels", *(["broken"] if whole.broken else ())]
            if whole.broken and smaller.broken and smaller.broken[:2] != whole.broken[:2]:
                self.found.append(f"{space}: {whole.broken} and {smaller.broken}")
        self._compare(space, whole, smaller, *left_out)
        if smaller.states > whole.states or smaller.transitions > whole.transitions:
            self.found.append(f"{space}: {whole.states} states, and {smaller.states}")

    def _promises(self, bare: Seen) -> None:
        """Compare the verdicts on claims about runs without end."""
        instances = max(1, len(self._make().step_instances()))
        if bare.is_bounded:
            return
        first = searched(self._make())
        engines = {"python": self._budget.python, "interpreted": self._budget.machines}
        for engine, steps in engines.items():
            if bare.states * instances <= steps:
                self._compare(f"promises, {engine}", first, searched(self._make(), engine=engine))
        if bare.states * instances <= self._budget.python:
            try:
                folded = searched(self._make(), symmetry=True)
            except (NotSymmetric, CannotCheck):
                return
            if folded.verdict is not first.verdict:
                self.found.append(f"promises, symmetry: {first.verdict} and {folded.verdict}")


def differences(make: Make, budget: Budget, ways: Mapping[str, Way] = WAYS) -> list[str]:
    """Search a system in all ways within a budget; return where they differ, in words."""
    return Comparison(make, budget, ways).run()
