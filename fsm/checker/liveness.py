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
from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.demands import demands
from epochgate.fsm.checker.engines.search import Search
from epochgate.fsm.checker.fairness import OfStates, OfSteps, Recurrence, fair_components
from epochgate.fsm.checker.graph import Graph, graph
from epochgate.fsm.checker.lassos import Loops
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
    search: Search, system: ClosedSystem, program: Program, promises: Sequence[Property]
) -> Judgement:
    """Look for a run that breaks one of the promises."""
    found = graph(search, program)
    demanded = [OfSteps(found, program, one) for one in demands(system)]
    judgement = Judgement()
    is_small = len(found.targets) * len(demanded) * len(promises) <= EXPLAINED_MAX
    for declared in promises:
        promise = _Promise(search, program, found, demanded, declared)
        judgement.lasso = promise.broken()
        if judgement.lasso is not None:
            break
        if is_small:
            judgement.rests[declared.name] = promise.rests_on()
    return judgement


class _Promise:
    """One property on the graph of all states."""

    def __init__(
        self,
        search: Search,
        program: Program,
        found: Graph,
        fair: Sequence[OfSteps],
        promise: Property,
    ) -> None:
        self._search, self._program, self._graph = search, program, found
        self._promise, self._fair = promise, fair
        self._demands: list[Recurrence] = [*fair]
        kept = self._holds(promise.then if promise.kind == "leads_to" else promise.name)
        self._inside = np.ones(found.states, bool) if promise.kind == "eventually_always" else ~kept
        """Where a run that breaks the promise is from its start on."""
        if promise.kind == "eventually_always":
            self._demands.append(OfStates(~kept))
        starts = self._inside
        if promise.kind == "leads_to":
            starts = starts & self._holds(promise.name)
        elif promise.kind == "eventually":
            starts = starts & np.isin(np.arange(found.states), search.initial())
        self._starts = np.flatnonzero(starts)

    def _holds(self, name: str) -> Any:
        bit = [*self._program.properties].index(name)
        return self._graph.marks >> bit & 1 == 1

    def broken(self) -> Lasso | None:
        if not len(self._starts):
            return None
        component = fair_components(self._graph, self._inside, self._demands)
        loops = Loops(self._graph)
        reached = loops.way(self._starts, component > 0, self._inside)
        if reached is None:
            return None
        start, path = reached
        chain = self._search.chain(start)
        prefix = [*loops.along(chain), *path]
        entry = loops.target(prefix[-1]) if prefix else chain[0]
        cycle = loops.cycle(entry, component == component[entry], self._demands)
        steps = tuple(int(self._graph.steps[edge]) for edge in [*prefix, *cycle])
        told = loops.told(entry, len(prefix), cycle, self._fair, self._program)
        lost = None
        if self._promise.kind == "eventually_always":
            kept = self._holds(self._promise.name)[loops.states(entry, cycle)]
            lost = len(prefix) + int(np.argmin(kept))
        return Lasso(self._promise, chain[0], steps, len(prefix), tuple(told), lost)

    def rests_on(self) -> str:
        """The fairness without any part of which this promise would be broken, as text."""
        needed = [*self._demands]
        for one in reversed(self._fair):
            left = [other for other in needed if other is not one]
            component = fair_components(self._graph, self._inside, left)
            if Loops(self._graph).way(self._starts, component > 0, self._inside) is None:
                needed = left
        kinds: dict[str, list[str]] = {}
        for of_steps in (one for one in self._fair if one in needed):
            kinds.setdefault(of_steps.demand.kind, []).append(of_steps.demand.told)
        told = [f"{kind} fairness of {', '.join(names)}" for kind, names in kinds.items()]
        return f"with {' and '.join(told)}" if told else "without any fairness"
