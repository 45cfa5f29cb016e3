"""Claims about runs without end: `eventually` and `leads_to`, under weak fairness of steps.

A run is fair if no fair step of an instance stays possible for ever without being taken. A promise
is broken by a fair run that stays for ever among states where it is not kept. The states that such
a run comes back to lie in one strongly connected component, and a run can come back to all of them;
so there is one exactly if for every fair step the component has a state where the step is not
possible, or takes it. A single state counts as well: where no fair step is possible, standing still
(stuttering) is fair. A step that changes nothing does not end the standing still, and counts as
taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.engines.search import Search
from epochgate.fsm.checker.graph import Graph, graph
from epochgate.fsm.checker.outcome import Lasso
from epochgate.fsm.closed import Property

Path = list[tuple[int, int]]
"""Steps with the states that they lead to."""


def broken_promise(search: Search, program: Program, promises: Sequence[Property]) -> Lasso | None:
    """A run that breaks the first of the promises that can be broken."""
    found = graph(search, program)
    for promise in promises:
        lasso = _Promise(search, program, found, promise).broken()
        if lasso is not None:
            return lasso
    return None


class _Promise:
    """One property on the graph of all states."""

    def __init__(self, search: Search, program: Program, found: Graph, promise: Property) -> None:
        self._search, self._graph, self._promise = search, found, promise
        self._fair = [number for number, step in enumerate(program.steps) if step.is_fair]
        bits = {name: bit for bit, name in enumerate(program.properties)}
        kept = promise.then if promise.kind == "leads_to" else promise.name
        self._open = found.marks >> bits[kept] & 1 == 0
        """Where the promise is not kept."""
        starts = np.zeros(found.states, bool)
        if promise.kind == "leads_to":
            starts = found.marks >> bits[promise.name] & 1 == 1
        else:
            starts[search.initial()] = True
        self._starts = np.flatnonzero(starts & self._open)

    def broken(self) -> Lasso | None:
        if not len(self._starts):
            return None
        component = self._graph.components(self._open)
        is_fair = self._fair_components(component)
        if not is_fair.any():
            return None
        reached = self._way(self._starts, is_fair[component], self._open)
        if reached is None:
            return None
        start, path = reached
        chain = self._search.chain(start)
        prefix = self._prefix(chain) + path
        entry = prefix[-1][1] if prefix else chain[0]
        cycle = self._cycle(entry, component == component[entry])
        way = [*prefix, *cycle]
        steps, states = (tuple(part) for part in zip(*way, strict=True)) if way else ((), ())
        return Lasso(self._promise, chain[0], steps, states, len(prefix))

    def _fair_components(self, component: Any) -> Any:
        """For each component, by its number, whether a fair run can stay in it."""
        count = int(component.max()) + 1
        sizes = np.bincount(component, minlength=count)
        is_fair = np.ones(count, bool)
        is_fair[0] = False
        sources, targets, steps = self._graph.sources(), self._graph.targets, self._graph.steps
        for step in self._fair:
            edges = np.flatnonzero(steps == step)
            here, there = component[sources[edges]], component[targets[edges]]
            # A step that chooses leads from one state to several.
            possible = np.bincount(component[np.unique(sources[edges])], minlength=count)
            taken = np.bincount(here[here == there], minlength=count)
            is_fair &= (possible < sizes) | (taken > 0)
        return is_fair

    def _edges(self, state: int) -> Iterable[tuple[int, int]]:
        first, end = int(self._graph.begins[state]), int(self._graph.begins[state + 1])
        for edge in range(first, end):
            yield int(self._graph.steps[edge]), int(self._graph.targets[edge])

    def _leaving(self, states: Any) -> Any:
        """The transitions that leave some states, in the order of the states."""
        begins = self._graph.begins
        first, counts = begins[states], begins[states + 1] - begins[states]
        before = np.cumsum(counts) - counts
        return np.arange(counts.sum()) + np.repeat(first - before, counts)

    def _way(self, starts: Any, is_goal: Any, inside: Any) -> tuple[int, Path] | None:
        """A shortest way from one of the starts to a goal through states that are inside; of two
        the one that comes first in the order of starts and transitions.
        """
        found = self._graph
        arrived = np.full(found.states, -1, np.int64)
        """By which transition each state was reached."""
        is_seen = np.zeros(found.states, bool)
        is_seen[starts] = True
        front = starts
        while len(front):
            goals = front[is_goal[front]]
            if len(goals):
                return self._traced(arrived, int(goals[0]))
            edges = self._leaving(front)
            targets = found.targets[edges]
            is_new = inside[targets] & ~is_seen[targets]
            edges, targets = edges[is_new], targets[is_new]
            first = np.sort(np.unique(targets, return_index=True)[1])
            front = targets[first].astype(np.int64)
            arrived[front], is_seen[front] = edges[first], True
        return None

    def _traced(self, arrived: Any, goal: int) -> tuple[int, Path]:
        path: Path = []
        state = goal
        while (edge := int(arrived[state])) >= 0:
            path.append((int(self._graph.steps[edge]), state))
            state = int(np.searchsorted(self._graph.begins, edge, "right")) - 1
        return state, path[::-1]

    def _prefix(self, chain: list[int]) -> Path:
        return [
            (next(step for step, target in self._edges(one) if target == other), other)
            for one, other in pairwise(chain)
        ]

    def _cycle(self, entry: int, inside: Any) -> Path:
        """Steps from a state back to it that neglect no fair step."""
        state, path = entry, list[tuple[int, int]]()
        visited = {entry}
        for fair in self._fair:
            if any(step == fair for step, _ in path) or any(
                all(step != fair for step, _ in self._edges(seen)) for seen in visited
            ):
                continue

            found = self._way(np.array([state]), self._settles(fair, inside), inside)
            assert found is not None  # the component is fair
            path += found[1]
            visited.update(target for _, target in found[1])
            state = path[-1][1] if path else entry
            taken = [(step, to) for step, to in self._edges(state) if step == fair and inside[to]]
            if taken:
                path.append(taken[-1])
                state = taken[-1][1]
                visited.add(state)
        back = self._way(np.array([state]), np.arange(self._graph.states) == entry, inside)
        assert back is not None  # the component is strongly connected
        return path + back[1]

    def _settles(self, fair: int, inside: Any) -> Any:
        """The states where a fair step is not possible, or stays inside."""
        edges = np.flatnonzero(self._graph.steps == fair)
        settles = np.ones(self._graph.states, bool)
        sources = self._graph.sources()[edges]
        settles[sources] = False
        settles[sources[inside[self._graph.targets[edges]]]] = True
        return settles
