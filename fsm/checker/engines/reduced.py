"""The successors of a state under partial-order reduction, in machine code.

All possible steps are taken, so that no fault in one of them is missed; then those that are left
out are dropped, before the search looks them up.
"""

from __future__ import annotations

from typing import Any

from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.engines.kernels import at
from epochgate.fsm.checker.engines.store_kernels import Bytes, Halves, Shorts, W, Words, unroll
from epochgate.fsm.checker.reduction import stubborn
from epochgate.fsm.checker.reduction.stubborn import choose

# Sizes of a program, replaced when it is compiled.
FANOUT, OF_STEPS, OF_CASES, SCRATCH = 0, 0, 0, 0


def constants(program: Program) -> dict[str, int]:
    """Return what the kernels here and those that choose have to know of a program."""
    assert program.reduction is not None
    tables = program.reduction.tables
    steps, cases = tables[stubborn.STEPS], tables[stubborn.CASES]
    return {
        **stubborn.CONSTANTS,
        "FANOUT": program.fanout,
        "OF_STEPS": steps,
        "OF_CASES": cases,
        "SCRATCH": program.fanout + 3 * steps + 3 * cases + 2 + tables[stubborn.CONDITIONS],
    }


def narrowed(out: Words, act: Shorts, first: int, end: int, chosen: Halves) -> int:
    """Keep the successors by chosen steps; returns the end of these."""
    n = first
    q = first
    while q < end:
        if chosen[act[q]] != 0:
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
    scratch: Halves,
    tables: Halves,
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
    i = 0
    while i < SCRATCH:
        scratch[i] = 0
        i += 1
    q = n
    while q < end:
        scratch[q - n] = rises(state, at(out, q * W), fault, covered)
        q += 1
    is_part = choose(
        act,
        n,
        end,
        scratch,
        holds,
        at(scratch, FANOUT),
        at(scratch, FANOUT + OF_STEPS),
        at(scratch, FANOUT + 2 * OF_STEPS),
        at(scratch, FANOUT + 3 * OF_STEPS),
        at(scratch, FANOUT + 3 * OF_STEPS + OF_CASES),
        at(scratch, FANOUT + 3 * OF_STEPS + 3 * OF_CASES + 2),
        at(scratch, FANOUT + 3 * OF_STEPS + 2 * OF_CASES + 2),
        tables,
    )
    if is_part == 0:
        return end
    kept = narrowed(out, act, n, end, at(scratch, FANOUT))
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


def rises(before: Any, after: Any, fault: Any, covered: Any) -> int:
    """Whether the second state comes after the first one in the order of states."""
    raise NotImplementedError
