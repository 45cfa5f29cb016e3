"""Claims about runs without end, under the fairness of steps.

A promise is broken by a fair run that stays for ever among states where it is not kept; what should
hold for good, by one that comes back for ever to a state where it does not. The states
that such a run comes back to for ever lie in one strongly connected component; `fair_components`
finds the sets of states in which a run can stay and do all that fairness demands. A single state
counts as well: where nothing is demanded, standing still (stuttering) is fair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from epochgate.fsm.checker.annotated import (
    OfEach,
    Pairs,
    annotated,
    divided,
    followed,
    unfolded,
)
from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.demands import Demand, demands
from epochgate.fsm.checker.engines.search import Search, Words
from epochgate.fsm.checker.fairness import Beside, Demands, OfStates, OfSteps, fair_components
from epochgate.fsm.checker.graph import Graph, graph
from epochgate.fsm.checker.lassos import Loops, Path
from epochgate.fsm.checker.outcome import Lasso
from epochgate.fsm.closed import ClosedSystem, Property

EXPLAINED_MAX = 10_000_000
"""Transitions, demands and promises, multiplied, up to which it is found on what a promise rests:
half a second.
"""


@dataclass
class Judgement:
    """The first run that breaks a promise; or for each promise the fairness it rests on."""

    lasso: Lasso | None = None
    rests: dict[str, str] = field(default_factory=dict)


def judged(
    search: Search,
    system: ClosedSystem,
    program: Program,
    promises: Sequence[Property],
    symmetric: str | None = None,
) -> Judgement:
    """Look for a run that breaks one of the promises; with `symmetric`, an index set, the search
    was one up to an exchange of its members.
    """
    made = (
        _Runs(search, system, program)
        if symmetric is None
        else _SymmetricRuns(search, system, program, symmetric)
    )
    judgement = Judgement()
    size = len(made.graph.targets) * len(promises)
    is_small = size * (len(made.alike) + len(made.each)) <= EXPLAINED_MAX
    for declared in promises:
        promise = _Promise(made, declared)
        judgement.lasso = promise.broken()
        if judgement.lasso is not None:
            break
        if is_small:
            judgement.rests[declared.name] = promise.rests_on()
    return judgement


@dataclass
class Around:
    """The way into a loop, and the graph in which it goes round, among the states inside."""

    states: tuple[Words, ...]
    steps: tuple[int, ...]
    graph: Graph
    entry: int
    inside: Any


class _Runs:
    """All runs of a system: the graph of its states, and what fairness demands on it."""

    pairs: Beside | None = None

    def __init__(self, search: Search, system: ClosedSystem, program: Program) -> None:
        self.program, self.demanded = program, list(dict.fromkeys(demands(system)))
        self.each: list[OfEach] = []
        self._make(search, system)

    def _make(self, search: Search, system: ClosedSystem) -> None:
        self.graph: Graph = graph(search, self.program)
        self.alike = self.on(self.graph, self.demanded)

    def on(self, found: Graph, demanded: Sequence[Demand]) -> list[OfSteps]:
        """These demands on a graph."""
        return [OfSteps(found, self.program, one) for one in demanded]

    def components(self, inside: Any, demanded: Demands) -> Any:
        return fair_components(self.graph, inside, demanded, self.pairs)

    def around(self, prefix: Path, entry: int, inside: Any) -> Around:
        """The way to a state from an initial one, and a graph in which to go round there."""
        states = Loops(self.graph).states(prefix, entry)
        words = tuple(map(self.graph.words, states))
        steps = tuple(int(self.graph.steps[edge]) for edge in prefix)
        return Around(words, steps, self.graph, entry, inside)


class _SymmetricRuns(_Runs):
    """Runs up to an exchange of the members of an index set."""

    def __init__(
        self, search: Search, system: ClosedSystem, program: Program, symmetric: str
    ) -> None:
        self._symmetric = symmetric
        super().__init__(search, system, program)

    def _make(self, search: Search, system: ClosedSystem) -> None:
        self._found = annotated(search, self.program)
        self.graph = self._found
        alike, families = divided(system, self.program, self._symmetric, self.demanded)
        self.alike = self.on(self.graph, alike)
        if families:
            pairs = Pairs(self._found, self.program.blocks[0])
            self.pairs = pairs
            self.each = [OfEach(pairs, family, member_of) for family, member_of in families]

    def around(self, prefix: Path, entry: int, inside: Any) -> Around:
        states = Loops(self.graph).states(prefix, entry)
        words, steps = followed(self.program, [*map(self.graph.words, states)])
        loop, is_inside = unfolded(self.program, words[-1], self._found, inside)
        return Around(words, steps, loop, 0, is_inside)


class _Promise:
    """One property on the graph of all states."""

    def __init__(self, made: _Runs, promise: Property) -> None:
        self._made, self._graph, self._promise = made, made.graph, promise
        kept = self._holds(self._graph, promise.then or promise.name)
        self._is_for_good = promise.kind == "eventually_always"
        self._inside = np.ones(len(kept), bool) if self._is_for_good else ~kept
        """Where a run that breaks the promise is from its start on."""
        self._more = [OfStates(~kept)] if self._is_for_good else []
        starts = self._inside.copy()
        if promise.kind == "leads_to":
            starts &= self._holds(self._graph, promise.name)
        elif promise.kind == "eventually":
            starts &= np.isin(np.arange(len(kept)), self._graph.initial)
        self._starts = np.flatnonzero(starts)

    def _holds(self, found: Graph, name: str) -> Any:
        bit = [*self._made.program.properties].index(name)
        return found.marks >> bit & 1 == 1

    def broken(self) -> Lasso | None:
        if not len(self._starts):
            return None
        made, loops = self._made, Loops(self._graph)
        component = made.components(self._inside, ([*made.alike, *self._more], made.each))
        reached = loops.way(self._starts, component > 0, self._inside)
        if reached is None:
            return None
        start, path = reached
        prefix = [*loops.way_to(start), *path]
        entry = loops.target(prefix[-1]) if prefix else start
        return self._lasso(made.around(prefix, entry, component == component[entry]))

    def _lasso(self, around: Around) -> Lasso:
        """The run to the entry of a loop, and round it."""
        made, found, loops = self._made, around.graph, Loops(around.graph)
        fair = made.on(found, made.demanded)
        kept = self._holds(found, self._promise.name)
        more = [OfStates(~kept)] if self._is_for_good else []
        cycle = loops.cycle(around.entry, around.inside, [*fair, *more])
        states = loops.states(cycle, around.entry)
        length = len(around.steps)
        lost = length + int(np.argmin(kept[states])) if self._is_for_good else None
        return Lasso(
            self._promise,
            (*around.states, *map(found.words, states[1:])),
            (*around.steps, *(int(found.steps[edge]) for edge in cycle)),
            length,
            tuple(loops.told(around.entry, length, cycle, fair, made.program)),
            lost,
        )

    def rests_on(self) -> str:
        """The fairness without any part of which this promise would be broken, as text."""
        made = self._made
        alike, each = [*made.alike], [*made.each]
        for one in [*reversed(made.each), *reversed(made.alike)]:
            left = [d for d in alike if d is not one], [d for d in each if d is not one]
            component = made.components(self._inside, ([*left[0], *self._more], left[1]))
            if Loops(self._graph).way(self._starts, component > 0, self._inside) is None:
                alike, each = left
        kinds: dict[str, list[str]] = {}
        needed: list[OfSteps | OfEach] = [*alike, *each]
        for of_steps in needed:
            kinds.setdefault(of_steps.demand.kind, []).append(of_steps.demand.told)
        told = [f"{kind} fairness of {', '.join(names)}" for kind, names in kinds.items()]
        return f"with {' and '.join(told)}" if told else "without any fairness"
