"""Runs without end on the graph of all states: a way into a loop, and the loop, which is fair.

A path is a list of transitions, by their numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.fairness import OfSteps, Recurrence
from epochgate.fsm.checker.graph import Graph
from epochgate.fsm.checker.outcome import told_after

Path = list[int]
NAMES_MAX = 8
"""Steps that are told of one kind; of more, how many there are."""


class Loops:
    """Paths on one graph."""

    def __init__(self, found: Graph) -> None:
        self._graph = found

    def target(self, edge: int) -> int:
        return int(self._graph.targets[edge])

    def _source(self, edge: int) -> int:
        return int(np.searchsorted(self._graph.begins, edge, "right")) - 1

    def _edges(self, state: int) -> range:
        return range(int(self._graph.begins[state]), int(self._graph.begins[state + 1]))

    def way_to(self, state: int) -> Path:
        """A shortest way from an initial state."""
        found = self._graph
        home = np.arange(found.states) == state
        reached = self.way(np.array([*found.initial]), home, np.ones(found.states, bool))
        assert reached is not None  # each state was found from an initial one
        return reached[1]

    def states(self, path: Path, start: int) -> list[int]:
        """The states of a path from `start`, or of the empty one that stays there."""
        first = self._source(path[0]) if path else start
        return [first, *map(self.target, path)]

    def _leaving(self, states: Any) -> Any:
        """The transitions that leave some states, in the order of the states."""
        begins = self._graph.begins
        first, counts = begins[states], begins[states + 1] - begins[states]
        before = np.cumsum(counts) - counts
        return np.arange(counts.sum()) + np.repeat(first - before, counts)

    def way(self, starts: Any, is_goal: Any, inside: Any) -> tuple[int, Path] | None:
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
            path.append(edge)
            state = self._source(edge)
        return state, path[::-1]

    def _way_from(self, state: int, is_goal: Any, inside: Any) -> Path:
        found = self.way(np.array([state]), is_goal, inside)
        assert found is not None  # all states inside can be reached from each other
        return found[1]

    def cycle(self, entry: int, inside: Any, demands: Sequence[Recurrence]) -> Path:
        """A way from a state back to it, through states that a run can go round in, that does what
        is demanded; empty where standing still does.
        """
        path: Path = []
        home = np.arange(self._graph.states) == entry
        while True:
            state = self.target(path[-1]) if path else entry
            cycle = [*path, *self._way_from(state, home, inside)]
            open_ = next((one for one in demands if not self._is_met(one, entry, cycle)), None)
            if open_ is None:
                return cycle
            path += self._towards(state, open_, inside)

    def _is_met(self, demand: Recurrence, entry: int, cycle: Path) -> bool:
        states = self.states(cycle, entry)[: len(cycle) or 1]
        cause, effect, edges = demand.found()
        if cause is not None and not cause[states].any():
            return True
        if effect is not None and effect[states].any():
            return True
        return bool(np.isin(cycle, edges).any())

    def _towards(self, state: int, demand: Recurrence, inside: Any) -> Path:
        """The shortest path that does what is demanded."""
        found = self._graph
        _, effect, edges = demand.found()
        edges = edges[inside[found.targets[edges]]]
        goals = np.zeros(found.states, bool) if effect is None else effect.copy()
        goals[found.sources[edges]] = True
        path = self._way_from(state, goals & inside, inside)
        state = self.target(path[-1]) if path else state
        if effect is None or not effect[state]:
            path.append(next(edge for edge in self._edges(state) if edge in edges))
        return path

    def told(
        self,
        entry: int,
        before: int,
        cycle: Path,
        demands: Sequence[OfSteps],
        program: Program,
    ) -> list[str]:
        """Tell how a loop that begins after `before` steps is fair, and steps it never takes."""
        states = self.states(cycle, entry)[: len(cycle) or 1]
        groups: dict[str, list[str]] = {}
        demanded: set[int] = set()
        for one in demands:
            demanded.update(one.steps)
            name = f"{one.demand.told} ({one.demand.kind})"
            edges = self._graph.by(one.steps)
            taken = np.flatnonzero(np.isin(cycle, edges))
            possible = np.isin(states, self._graph.sources[edges])
            if len(taken):
                groups.setdefault("taken in the loop", []).append(
                    f"{name} in step {before + int(taken[0]) + 1}"
                )
            elif possible.any():
                # Weak fairness alone lets a step be missed that is possible now and then.
                where = told_after(before + int(np.flatnonzero(~possible)[0]))
                groups.setdefault(MISSED, []).append(f"{name}, not possible {where}")
            else:
                groups.setdefault("never possible in the loop", []).append(name)
        taken_steps = {int(self._graph.steps[edge]) for edge in cycle}
        for position, state in enumerate(states):
            for edge in self._edges(state):
                step = int(self._graph.steps[edge])
                if step not in demanded | taken_steps and not self._graph.stutters(edge):
                    demanded.add(step)
                    told = f"{program.steps[step].label}, possible {told_after(before + position)}"
                    groups.setdefault(UNFAIR, []).append(told)
        return [f"{kind}: {_listed(groups[kind])}" for kind in ORDER if kind in groups]


MISSED = "possible again and again and never taken, which strong fairness would exclude"
UNFAIR = "possible and never taken, and no fairness is demanded"
ORDER = (MISSED, UNFAIR, "taken in the loop", "never possible in the loop")


def _listed(names: list[str]) -> str:
    more = len(names) - NAMES_MAX
    return "; ".join(names[:NAMES_MAX]) + (f"; and {more} more" if more > 0 else "")
