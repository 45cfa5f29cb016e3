"""A shortest way to a state of a search in machine code, which keeps levels and no predecessors.

Backward, level by level, the states of the level before are expanded, and those that lead to a goal
are the next goals. Forward, the way goes by the first step that leads to a goal: of all the
shortest ways it is the first in the order of steps, whatever the threads or the tables were.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from epochgate.fsm.checker.engines import kernels as k
from epochgate.fsm.checker.engines.functions import address

if TYPE_CHECKING:
    from epochgate.fsm.checker.engines.keeping import Keeping

COLLECTED_MAX = 1 << 22
"""States that are looked for in one pass over the tables, unless one level has more."""

UNBOUNDED = 1 << 62
"""A counterexample is told even if the budget is used up."""


class KeysChanged(Exception):
    """All states have got other keys: those that were noted before belong to none."""


def way_to(search: Keeping, state: int) -> list[int]:
    """The states on the way from an initial one, both included.

    To expand states takes numbers, for which a search may go over to another plan, and all keys
    change. The way is then sought once more from its end.
    """
    end = np.array([state], np.int64)
    try:
        while True:
            search.sought = [end]
            try:
                return _way_to(search, int(end[0]))
            except KeysChanged:
                continue
    finally:
        search.sought = []


def _way_to(search: Keeping, state: int) -> list[int]:
    """As `way_to`; raises KeysChanged."""
    values, end = search.values, search.sought[0]
    goals = [np.array([state], np.int64)]
    for candidates in search.levels_before(state):
        found = []
        for some in candidates:
            search.sought = [end, some, goals[-1]]
            found.append(leading(search, some, goals[-1]))
            if search.values is not values:
                raise KeysChanged
        goals.append(np.sort(np.concatenate(found)))
    search.sought = [end]
    goals.reverse()
    first = {*goals[0].tolist()}
    way = [next(key for key in search.initial if key in first)]
    for following in goals[1:]:
        wanted = {*following.tolist()}
        way.append(next(key for key in _successors(search, way[-1]) if key in wanted))
    return way


def levels_before(search: Keeping, state: int) -> Iterator[list[Any]]:
    """The states of the levels below that of a state, from the highest on."""
    table = search.tables[int(search.owners(np.array([state]))[0])]
    level = table.level(state, search.kernels)
    if level == 0:
        return
    sizes = _sizes(search, level)
    highest = level - 1
    while highest >= 0:
        lowest, states = highest, int(sizes[highest])
        while lowest > 0 and states + sizes[lowest - 1] <= COLLECTED_MAX:
            lowest -= 1
            states += int(sizes[lowest])
        found = [
            part
            for table in search.tables
            for part in table.collected(search.kernels, lowest, highest)
        ]
        keys = np.concatenate([keys for keys, _ in found])
        levels = np.concatenate([levels for _, levels in found])
        order = np.argsort(levels, kind="stable")
        keys, levels = keys[order], levels[order]
        for one in range(highest, lowest - 1, -1):
            start, end = np.searchsorted(levels, [one, one + 1])
            yield [keys[start:end]]
        highest = lowest - 1


def _sizes(search: Keeping, level: int) -> Any:
    """Return the number of states of each level below `level`."""
    sizes = np.zeros(level, np.int64)
    for table in search.tables:
        for _, levels in table.collected(search.kernels, 0, level - 1):
            sizes += np.bincount(levels, minlength=level)
    return sizes


def leading(search: Keeping, candidates: Any, goals: Any) -> Any:
    """The candidates with a successor among the goals, both in arrays that `live` names."""
    worker = search.workers[0]
    marks = np.zeros(len(candidates), np.uint8)
    done = 0
    while done < len(candidates):
        search.have_numbers(worker, spare_bytes=UNBOUNDED)
        values = search.values
        done = search.kernels.precede(
            address(candidates),
            done,
            len(candidates),
            address(goals),
            len(goals),
            *values.arguments,
            values.slots.address,
            worker.at["status"],
            worker.at["scratch"],
            worker.at["out"],
            worker.at["act"],
            address(marks),
            search.fanout,
            worker.at["covered"],
        )
    return candidates[marks == 1]


def _successors(search: Keeping, state: int) -> list[int]:
    """The keys of the successors of one state, in the order of the steps; raises KeysChanged."""
    worker, values = search.workers[0], search.values
    search.have_numbers(worker, spare_bytes=UNBOUNDED)
    if search.values is not values:
        raise KeysChanged
    part = np.array([state], np.int64)
    worker.filled[:] = 0
    worker.status[[k.HEAD, k.END]] = 0, 1
    search.gather(worker, part, are_all=True, boxes=1)
    worker.status[k.FAULT] = -1
    return [int(key) for key in worker.boxes.array[: worker.filled[0]]]
