"""Goes over to another plan for the keys of all states: to fewer parts when the numbers of words
and pairs are to be larger, or to better pairs once more states are known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from epochgate.errors import InvariantBroken
from epochgate.fsm.checker.engines import store_kernels as s
from epochgate.fsm.checker.engines.functions import NO_KEY
from epochgate.fsm.checker.engines.plan import parts_for, plan
from epochgate.fsm.checker.engines.store import Table, Values

if TYPE_CHECKING:
    from epochgate.fsm.checker.engines.keeping import Keeping

SAMPLE_MAX = 1 << 14
"""States by which a plan is made."""
TOGETHER = 1 << 10
"""States that get new keys together."""


class TooManyNumbers(Exception):
    """The parts of a key are too narrow for the numbers of words and pairs."""


def replan(search: Keeping) -> None:
    """Give every state another key; no box may hold any."""
    sample = search.spelled(_sample(search)).reshape(-1, search.program.words)
    parts = parts_for(search.program.words, search.values.allocated)
    while not _is_numbered(search, parts, sample):
        parts -= 1
    old_tables, old, count = search.tables, search.former, search.states
    assert old is not None
    search.tables = [
        Table(search.key_bits, search.values.plan, table.slots, table.level_bits)
        for table in old_tables
    ]
    for table in search.tables:
        table.hold_numbers(search.values.allocated, search.kernels)
    for table in old_tables:
        highest = table.level_max
        for keys, levels in table.collected(search.kernels, 0, highest, is_emptied=True):
            others = renamed(search, old, keys)
            owners = search.owners(others)
            for number, own in enumerate(search.tables):
                is_own = owners == number
                own.put(search.kernels, others[is_own], levels[is_own], search.spare_bytes)
    for part in search.live():
        part[:] = renamed(search, old, part)
    for worker in search.workers:
        worker.recent[:] = NO_KEY
    search.former = None
    if search.states != count:
        raise InvariantBroken(
            f"{count:,} states became {search.states:,} when they got other keys; please report "
            f"this, and check with --engine python"
        )


def _sample(search: Keeping) -> Any:
    """Some keys; where a state is in a table says nothing about it."""
    first = next(search.tables[0].collected(search.kernels, 0, search.tables[0].level_max))[0]
    return first[:SAMPLE_MAX] if len(first) else np.array([], np.int64)


def _is_numbered(search: Keeping, parts: int, sample: Any) -> bool:
    """Number the words and pairs of all states by a plan with `parts` parts, if that is enough."""
    if search.former is None:
        search.former = search.values
    old = search.former
    made = plan(search.program.words, parts, sample)
    search.values = Values(search.numbers_of_a_state, len(search.workers), search.memory_max, made)
    for worker in search.workers:
        worker.status[[s.VALUE_NEXT, s.VALUE_END]] = 0
    try:
        for table in search.tables:
            for keys, _ in table.collected(search.kernels, 0, table.level_max):
                renamed(search, old, keys)
        for part in search.live():
            renamed(search, old, part)
    except TooManyNumbers:
        return False
    return True


def renamed(search: Keeping, old: Values, keys: Any) -> Any:
    """Return the keys by the present plan of states that have these keys by an earlier one."""
    parts = [
        search.admitted(search.spelled(keys[first : first + TOGETHER], old))
        for first in range(0, len(keys), TOGETHER)
    ]
    return np.concatenate(parts) if parts else np.array([], np.int64)
