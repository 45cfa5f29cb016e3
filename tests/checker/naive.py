"""Runs without end by their definitions, over all sets of states: slow, and simple to believe.

What a run comes back to for ever is a set of states that reach each other by steps within it, or
one state in which it stands still. A graph maps each state to its steps: a name and a target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations

Graph = dict[str, set[tuple[str, str]]]
Demand = tuple[str, frozenset[str]]
"""weak or strong, and the steps that count as one."""


def reachable(graph: Graph, starts: Iterable[str], inside: set[str]) -> set[str]:
    """Return what can be reached from the starts without leaving `inside`."""
    found = {*starts} & inside
    while new := {to for at in found for _, to in graph[at] if to in inside} - found:
        found |= new
    return found


def recurring(graph: Graph, inside: set[str]) -> Iterator[set[str]]:
    """Yield each set of states among those inside that a run can come back to for ever."""
    for size in range(1, len(inside) + 1):
        for one in combinations(sorted(inside), size):
            states = {*one}
            if all(reachable(graph, [at], states) == states for at in states):
                yield states


def is_fair(graph: Graph, states: set[str], demand: Demand) -> bool:
    """Tell whether the run that takes all steps within these states for ever is fair to some."""
    kind, steps = demand

    def possible(at: str) -> bool:
        return any(step in steps and to != at for step, to in graph[at])

    if any(step in steps and to in states - {at} for at in states for step, to in graph[at]):
        return True
    if kind == "strong":
        return not any(map(possible, states))
    return not all(map(possible, states))


def stays(
    graph: Graph,
    starts: Iterable[str],
    inside: set[str],
    demands: Iterable[Demand],
    recurs: Callable[[set[str]], bool] = lambda states: True,
) -> bool:
    """Tell whether a fair run from one of the starts stays inside for ever, and what it comes back
    to is as it has to be.
    """
    within = reachable(graph, starts, inside)
    asked = [*demands]
    return any(
        recurs(states) and all(is_fair(graph, states, demand) for demand in asked)
        for states in recurring(graph, within)
    )
