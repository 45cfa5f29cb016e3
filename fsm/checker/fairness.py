"""Fairness as a demand on what recurs in runs, and the sets of states in which all is fulfilled.

A run is weakly fair to some steps if it takes one of them for ever again, or comes for ever again
to states where none is possible; it is strongly fair to them if it takes one for ever again, or
comes only finitely often to states where one is possible. A step that changes nothing is neither
possible nor taken (`WF_v` and `SF_v` of TLA+, with all fields as v).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.demands import Demand
from epochgate.fsm.checker.graph import Graph


class Recurrence:
    """A demand on the states that a run comes back to for ever: if `cause` holds in one of them,
    then `effect` in one of them, or one of the transitions between them is among `edges`.
    """

    cause: Any = None
    """Where the demand is made; None for everywhere."""

    def effect(self) -> Any:
        """The states that fulfil the demand; None for none."""

    def edges(self) -> Any:
        """The numbers of the transitions that fulfil it."""
        return np.zeros(0, np.int64)


class OfSteps(Recurrence):
    """Fairness to some steps."""

    def __init__(self, graph: Graph, program: Program, demand: Demand) -> None:
        self._graph, self.demand = graph, demand
        meant = set(demand.steps)
        self.steps = [n for n, step in enumerate(program.steps) if step.label in meant]
        self._is_meant = np.zeros(1 << 16, bool)
        self._is_meant[self.steps] = True

    def edges(self) -> Any:
        found = self._graph
        return np.flatnonzero(self._is_meant[found.steps] & ~found.stutters)

    def possible(self) -> Any:
        """The states in which one of the steps is possible, and changes something."""
        is_possible = np.zeros(self._graph.states, bool)
        is_possible[self._graph.sources[self.edges()]] = True
        return is_possible

    @property
    def cause(self) -> Any:
        return self.possible() if self.demand.is_strong else None

    def effect(self) -> Any:
        return None if self.demand.is_strong else ~self.possible()


class OfStates(Recurrence):
    """Some states are come back to."""

    def __init__(self, states: Any) -> None:
        self._states = states

    def effect(self) -> Any:
        return self._states


def fair_components(graph: Graph, inside: Any, demands: Sequence[Recurrence]) -> Any:
    """For each state the number, from 1, of a set of states among those inside in which a run can
    stay and do what is demanded; 0 for a state of none.

    Each set is as large as it can be: within the strongly connected component of a state without
    what forbids the state (Emerson and Lei, 1987). Where a strongly connected component does not
    fulfil a demand, the states that cause it are left out, and what remains is divided once more.
    """
    found, count = np.zeros(graph.states, np.int64), 0
    left = inside.copy()
    while left.any():
        component = graph.components(left)
        sizes = int(component.max()) + 1
        is_lost = np.zeros(graph.states, bool)
        for demand in demands:
            is_lost |= _causes(graph, component, sizes, demand)
        is_hurt = np.bincount(component[is_lost], minlength=sizes) > 0
        is_hurt[0] = True
        whole = ~is_hurt[component]
        found[whole] = component[whole] + count
        count += sizes
        left &= ~whole & ~is_lost
    return found


def _causes(graph: Graph, component: Any, count: int, demand: Recurrence) -> Any:
    """The states that cause a demand which their component does not fulfil."""
    is_kept = np.zeros(count, bool)
    is_kept[0] = True
    effect = demand.effect()
    if effect is not None:
        is_kept |= np.bincount(component[effect], minlength=count) > 0
    edges = demand.edges()
    here, there = component[graph.sources[edges]], component[graph.targets[edges]]
    is_kept |= np.bincount(here[here == there], minlength=count) > 0
    broken = ~is_kept[component]
    cause = demand.cause
    return broken if cause is None else broken & cause
