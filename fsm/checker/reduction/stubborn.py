"""Chooses which of the possible steps of a state are taken: a stubborn set.

A set of cases is closed if it has, with a case that is possible, all that depend on it, and with a
case that is not possible, all that may make one of its conditions hold. To take the possible steps
of a closed set is enough for every fault, claim and row, if no step is put off for ever. Therefore
one of the steps has to lead upwards in a fixed order of all states, or all steps are taken.

`choose` and `close` run as they stand for the plain engines, and are compiled by
`epochgate.fsm.checker.compiler.kernel` for the other one; `epochgate.fsm.checker.reduction.tables`
writes the tables. In these, a list of lists begins with where each of its lists begins.
"""

from __future__ import annotations

from typing import Any

Words = Any
Halves = Any
Shorts = Any

CONDITIONS_IN_WORD = 32

# Places in the head of the tables.
STEPS, CASES, CONDITIONS, OF_STEP, STEP_OF, ASKED, ENABLING, DEPENDENT = 0, 1, 2, 3, 4, 5, 6, 7
HEAD_WORDS = 8
LISTS = (OF_STEP, STEP_OF, ASKED, ENABLING, DEPENDENT)

CONSTANTS = {
    "OF_STEP": OF_STEP,
    "STEP_OF": STEP_OF,
    "ASKED": ASKED,
    "ENABLING": ENABLING,
    "DEPENDENT": DEPENDENT,
    "STEPS": STEPS,
    "CASES": CASES,
    "CONDITIONS": CONDITIONS,
}


def unmet(case: int, tables: Halves, holds: Words, known: Halves) -> int:
    """The first condition of a case that does not hold, or the number of all conditions."""
    if known[case] == 0:
        i = tables[tables[ASKED] + case]
        end = tables[tables[ASKED] + case + 1]
        found = tables[CONDITIONS]
        while i < end:
            condition = tables[i]
            if ((holds[condition >> 5] >> (condition & 31)) & 1) == 0:
                found = condition
                break
            i += 1
        known[case] = found + 1
    return known[case] - 1  # type: ignore[no-any-return]  # elements of Halves are Any


def demand(
    kind: int,
    of: int,
    stamp: int,
    tables: Halves,
    holds: Words,
    marks: Halves,
    todo: Halves,
    known: Halves,
) -> int:
    """Put the cases of a list among those that are to be looked at: possible ones to the front, of
    which todo[0] says how many there are, the others to the end.
    """
    i = tables[tables[kind] + of]
    end = tables[tables[kind] + of + 1]
    while i < end:
        case = tables[i]
        if marks[case] != stamp:
            if unmet(case, tables, holds, known) == tables[CONDITIONS]:
                marks[case] = stamp
                todo[2 + todo[0]] = case
                todo[0] = todo[0] + 1
            # Of a step that is taken, only the possible cases matter.
            elif kind != OF_STEP:
                marks[case] = stamp
                todo[1 + tables[CASES] - todo[1]] = case
                todo[1] = todo[1] + 1
        i += 1
    return 0


def close(
    seed: int,
    best: int,
    stamp: int,
    tables: Halves,
    holds: Words,
    enabled: Halves,
    taken: Halves,
    marks: Halves,
    todo: Halves,
    asked: Halves,
    known: Halves,
) -> int:
    """Stamp the possible steps of a closed set with the seed in `taken`; returns how many they are,
    or `best` if they are not fewer than that.
    """
    taken[seed] = stamp
    size = 1
    todo[0] = 0
    todo[1] = 0
    demand(OF_STEP, seed, stamp, tables, holds, marks, todo, known)
    while todo[0] + todo[1] > 0:
        # Possible cases first: they soon show where nothing can be left out.
        if todo[0] > 0:
            todo[0] = todo[0] - 1
            case = todo[2 + todo[0]]
            step = tables[tables[tables[STEP_OF]] + case]
            # What an observer waits for, and which holds, is found.
            if step < tables[STEPS]:
                if enabled[step] != 0 and taken[step] != stamp:
                    taken[step] = stamp
                    size += 1
                    if size >= best:
                        return best
                    demand(OF_STEP, step, stamp, tables, holds, marks, todo, known)
                demand(DEPENDENT, case, stamp, tables, holds, marks, todo, known)
        else:
            todo[1] = todo[1] - 1
            condition = unmet(todo[1 + tables[CASES] - todo[1]], tables, holds, known)
            if asked[condition] != stamp:
                asked[condition] = stamp
                demand(ENABLING, condition, stamp, tables, holds, marks, todo, known)
    return size


def choose(
    act: Shorts,
    first: int,
    end: int,
    rises: Halves,
    holds: Words,
    chosen: Halves,
    enabled: Halves,
    taken: Halves,
    marks: Halves,
    todo: Halves,
    asked: Halves,
    known: Halves,
    tables: Halves,
) -> int:
    """Choose among the possible steps act[first] to act[end - 1], of which those rise that lead
    upwards; returns 0 if all are to be taken, else chosen[step] is 1 for those to be taken.

    All of the others are 0 at the beginning.
    """
    count = 0
    q = first
    while q < end:
        step = act[q]
        count = count + (enabled[step] == 0)
        enabled[step] = 1
        q += 1
    best = count
    stamp = 0
    q = first
    while q < end and best > 1:
        stamp += 1
        size = close(act[q], best, stamp, tables, holds, enabled, taken, marks, todo, asked, known)
        if size < best:
            is_rising = 0
            r = first
            while r < end:
                is_rising = is_rising | ((taken[act[r]] == stamp) & (rises[r - first] != 0))
                r += 1
            if is_rising != 0:
                best = size
                r = first
                while r < end:
                    chosen[act[r]] = taken[act[r]] == stamp
                    r += 1
        q += 1
    return best < count


INLINED = (unmet, demand, close, choose)
