"""Claims about runs without end: `eventually` and `leads_to`, under the fairness of steps.

A promise is broken by a fair run that stays for ever among states where it is not kept. The states
that such a run comes back to for ever lie in one strongly connected component; `fair_components`
finds the sets of states in which a run can stay and do all that fairness demands. A single state
counts as well: where nothing is demanded, standing still (stuttering) is fair.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.engines.search import Search
from epochgate.fsm.checker.fairness import Fairness, OfSteps, fair_components, fairness
from epochgate.fsm.checker.graph import Graph, graph
from epochgate.fsm.checker.lassos import Loops
from epochgate.fsm.checker.outcome import Lasso
from epochgate.fsm.closed import ClosedSystem, Property


def broken_promise(
    search: Search, system: ClosedSystem, program: Program, promises: Sequence[Property]
) -> Lasso | None:
    """A run that breaks the first of the promises that can be broken."""
    found = graph(search, program)
    demanded = fairness(system, program)
    for promise in promises:
        lasso = _Promise(search, program, found, demanded, promise).broken()
        if lasso is not None:
            return lasso
    return None


class _Promise:
    """One property on the graph of all states."""

    def __init__(
        self,
        search: Search,
        program: Program,
        found: Graph,
        demanded: Sequence[Fairness],
        promise: Property,
    ) -> None:
        self._search, self._program, self._graph = search, program, found
        self._promise = promise
        self._fair = [OfSteps(found, one) for one in demanded]
        bits = {name: bit for bit, name in enumerate(program.properties)}
        kept = promise.then if promise.kind == "leads_to" else promise.name
        self._open = found.marks >> bits[kept] & 1 == 0
        """Where the promise is not kept."""
        starts = np.zeros(found.states, bool)
        if promise.kind == "leads_to":
            starts = found.marks >> bits[promise.name] & 1 == 1
        else:
            starts[0] = True
        self._starts = np.flatnonzero(starts & self._open)

    def broken(self) -> Lasso | None:
        if not len(self._starts):
            return None
        component = fair_components(self._graph, self._open, self._fair)
        loops = Loops(self._graph)
        reached = loops.way(self._starts, component > 0, self._open)
        if reached is None:
            return None
        start, path = reached
        chain = self._search.chain(start)
        prefix = [*loops.along(chain), *path]
        entry = loops.target(prefix[-1]) if prefix else chain[0]
        cycle = loops.cycle(entry, component == component[entry], self._fair)
        steps = tuple(int(self._graph.steps[edge]) for edge in [*prefix, *cycle])
        told = loops.told(entry, len(prefix), cycle, self._fair, self._program)
        return Lasso(self._promise, steps, len(prefix), tuple(told))
