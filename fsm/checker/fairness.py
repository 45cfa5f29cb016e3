"""Fairness as a demand on what recurs in runs, and the sets of states in which all is fulfilled.

A run is weakly fair to some steps if it takes one of them for ever again, or comes for ever again
to states where none is possible; it is strongly fair to them if it takes one for ever again, or
comes only finitely often to states where one is possible. A step that changes nothing is neither
possible nor taken (`WF_v` and `SF_v` of TLA+, with all fields as v).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.demands import Demand
from epochgate.fsm.checker.graph import Graph


class Recurring(NamedTuple):
    """The subject of a demand on one graph: states as an array of truth values or None for none,
    and the numbers of transitions. A `cause` of None is everywhere.
    """

    cause: Any
    effect: Any
    edges: Any


class Recurrence(Protocol):
    """A demand on the states that a run comes back to for ever: if the cause holds in one of them,
    then the effect in one of them, or one of the transitions between them is among the edges.
    """

    def found(self) -> Recurring:
        """Compute it; it is too large to be kept for each demand."""
        ...


class OfSteps:
    """Fairness to some steps."""

    def __init__(self, graph: Graph, program: Program, demand: Demand) -> None:
        self._graph, self.demand = graph, demand
        meant = set(demand.steps)
        self.steps = [n for n, step in enumerate(program.steps) if step.label in meant]

    def found(self) -> Recurring:
        edges = self._graph.by(self.steps)
        is_possible = np.zeros(self._graph.states, bool)
        is_possible[self._graph.sources[edges]] = True
        if self.demand.is_strong:
            return Recurring(is_possible, None, edges)
        return Recurring(None, ~is_possible, edges)


class OfStates:
    """Some states are come back to."""

    def __init__(self, states: Any) -> None:
        self._states = states

    def found(self) -> Recurring:
        return Recurring(None, self._states, np.zeros(0, np.int64))


class Beside(Protocol):
    """Demands that are made on another graph, whose states lie beside those of the first."""

    def lost(self, inside: Any, demands: Sequence[Recurrence]) -> Any:
        """The states of the first graph, of those inside, that cause what is not fulfilled."""
        ...


Demands = tuple[Sequence[Recurrence], Sequence[Recurrence]]
"""Those on the graph itself, and those beside it."""


def fair_components(
    graph: Graph, inside: Any, demands: Demands, beside: Beside | None = None
) -> Any:
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
        parts = int(component.max()) + 1
        is_hurt, is_lost = hurt(graph, component, parts, demands[0])
        if beside is not None and demands[1]:
            more = beside.lost(left, demands[1])
            is_lost |= more
            is_hurt[component[more]] = True
        whole = ~is_hurt[component]
        found[whole] = component[whole] + count
        count += parts
        left &= ~whole & ~is_lost
    return found


def hurt(
    graph: Graph, component: Any, parts: int, demands: Sequence[Recurrence]
) -> tuple[Any, Any]:
    """The components that do not fulfil all they cause, and the states that cause it there."""
    is_hurt, is_lost = np.zeros(parts, bool), np.zeros(graph.states, bool)
    is_gone = np.zeros(parts, bool)
    is_hurt[0] = is_gone[0] = True
    for demand in demands:
        cause, effect, edges = demand.found()
        is_broken = ~is_gone
        if effect is not None:
            is_broken[component[effect]] = False
        here, there = component[graph.sources[edges]], component[graph.targets[edges]]
        is_broken[here[here == there]] = False
        if cause is None:
            is_hurt |= is_broken
            is_gone |= is_broken
            if is_gone.all():
                break
        elif is_broken.any():
            causing = cause & is_broken[component]
            is_lost |= causing
            is_hurt[component[causing]] = True
    return is_hurt, is_lost | is_gone[component]
