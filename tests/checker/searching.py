"""A search by itself, from initial states of a test's choice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from epochgate.fsm.checker.checking import OPTIMISE_FROM
from epochgate.fsm.checker.compiler.lowering import Lowering
from epochgate.fsm.checker.engines import choice
from epochgate.fsm.checker.engines.search import Search, Words, size
from epochgate.fsm.checker.symmetry import symmetric_set
from epochgate.fsm.closed import ClosedSystem

MEMORY_MAX = 256 << 20


@dataclass
class Explored:
    """Everything that can be reached."""

    states: set[Words]
    transitions: int
    levels: list[int]
    search: Search


def made(
    system: ClosedSystem,
    engine: str,
    *,
    workers: int = 1,
    symmetry: bool = False,
    memory_max: int = MEMORY_MAX,
) -> Search:
    """A search that has not begun."""
    lowering = Lowering(system, symmetric_set(system, symmetry))
    setting = choice.Setting(
        system, lowering.program(), lowering.layout, None, workers, memory_max, OPTIMISE_FROM
    )
    return choice.search(engine, setting)


def explored(search: Search, initial: Iterable[Words]) -> Explored:
    """Go on to the end from these states."""
    states: list[Words] = []
    levels: list[int] = []
    level = search.begin(initial)
    while level:
        levels.append(size(level))
        states += [search.words(state) for part in level for state in part]
        following = search.expand(level, lambda: None)
        assert isinstance(following, list), following
        level = following
    assert len(states) == len(set(states)) == search.states
    return Explored(set(states), search.transitions, levels, search)
