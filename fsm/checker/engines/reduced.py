"""The successors of a state under partial-order reduction, in machine code.

All possible steps are taken, so that no fault in one of them is missed; then those that are left
out are dropped, before the search looks them up.
"""

from __future__ import annotations

from typing import Any

from epochgate.fsm.checker.engines.store_kernels import Bytes, Shorts, W, Words, unroll
from epochgate.fsm.checker.reduction import stubborn
from epochgate.fsm.checker.reduction.stubborn import choose_steps, is_in

CHOSEN = 0
"""Replaced when it is compiled."""


def narrowed(out: Words, act: Shorts, first: int, end: int, sets: Words) -> int:
    """Keep the successors by chosen steps; returns the end of these."""
    n = first
    q = first
    while q < end:
        if is_in(sets, CHOSEN, act[q]):
            if n != q:
                act[n] = act[q]
                for k in unroll(W):
                    out[n * W + k] = out[q * W + k]
            n += 1
        q += 1
    return n


def reduced(
    state: Words,
    out: Words,
    act: Shorts,
    n: int,
    fault: Words,
    covered: Bytes,
    holds: Words,
    sets: Words,
    tables: Words,
) -> int:
    """Append successors of one state to the n that are there; returns the new number.

    fault[1] counts those that are left out.
    """
    end = successors(state, out, act, n, fault, covered)
    if fault[0] >= 0:
        return end
    if end - n < 2:
        return end
    look(state, holds, fault, covered)
    if choose_steps(state, out, act, n, end, fault, covered, holds, sets, tables) == 0:
        return end
    kept = narrowed(out, act, n, end, sets)
    fault[1] = fault[1] + (end - kept)
    return kept


INLINED = (*stubborn.INLINED, narrowed, reduced)


# Compiled from the system.


def successors(state: Any, out: Any, act: Any, n: int, fault: Any, covered: Any) -> int:
    """Append the successors of one state by all possible steps; returns the new number."""
    raise NotImplementedError


def look(state: Any, holds: Any, fault: Any, covered: Any) -> int:
    """Write a bit for each condition that holds in a state."""
    raise NotImplementedError
