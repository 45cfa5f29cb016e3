"""Chooses which of the possible steps of a state are taken: a stubborn set.

A set of cases is closed if it has, with a case that is possible, all that depend on it, and with a
case that is not possible, all that may make one of its conditions hold. To take the possible steps
of a closed set is enough for every fault, claim and row, if no step is put off for ever. Therefore
one of the steps has to lead upwards in a fixed order of all states, or all steps are taken.

Sets of cases, of conditions and of steps are bits of words. The functions here are compiled by
`epochgate.fsm.checker.compiler.kernel`, and `bound` makes them run as they stand for the plain
engines; `epochgate.fsm.checker.reduction.tables` writes the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from epochgate.fsm.checker.engines.kernels import at
from epochgate.fsm.checker.engines.store_kernels import lowest, unroll

Words = Any
Shorts = Any
Bytes = Any

WORD_BITS = 64
"""Members of a set in one word."""

# Of a program, replaced where these functions are compiled or bound: the numbers of its steps and
# of the words of sets, and where its tables begin.
STEPS, CASE_WORDS, CONDITION_WORDS, STEP_WORDS, LAST_CONDITIONS = 0, 0, 0, 0, 0
OF_STEP, STEP_OF, ASKED, LEAVING, ENABLING, DEPENDENT = 0, 0, 0, 0, 0, 0
# Where sets lie in the MEMORY of a choice.
POSSIBLE, MARKED, PENDING, WANTED, ENABLED, TAKEN, HOPELESS, FUTILE, CHOSEN = (0,) * 9
W = 0


def words_of(members: int) -> int:
    """Return how many words a set has."""
    return max(1, -(-members // WORD_BITS))


def constants(steps: int, cases: int, conditions: int) -> dict[str, int]:
    """Return the constants of a program, but for where its tables begin."""
    found = {
        "WORD_BITS": WORD_BITS,
        "STEPS": steps,
        "CASE_WORDS": words_of(cases),
        "CONDITION_WORDS": words_of(conditions),
        "STEP_WORDS": words_of(steps),
    }
    found["LAST_CONDITIONS"] = (1 << conditions - WORD_BITS * (found["CONDITION_WORDS"] - 1)) - 1
    sizes = {
        **dict.fromkeys(("POSSIBLE", "MARKED", "PENDING"), found["CASE_WORDS"]),
        "WANTED": found["CONDITION_WORDS"],
        **dict.fromkeys(("ENABLED", "TAKEN", "HOPELESS", "FUTILE", "CHOSEN"), found["STEP_WORDS"]),
    }
    begin = 0
    for name, words in sizes.items():
        found[name] = begin
        begin += words
    return {**found, "MEMORY": begin}


def is_in(sets: Words, first: int, member: int) -> int:
    """Return whether a set has this member."""
    word = sets[first + (member >> 6)]
    return (word >> (member & 63)) & 1  # type: ignore[no-any-return]  # of Any


def include(sets: Words, first: int, member: int) -> int:
    """Add a member to a set."""
    sets[first + (member >> 6)] = sets[first + (member >> 6)] | (1 << (member & 63))
    return 0


def demand(row: int, tables: Words, sets: Words) -> int:
    """Put the cases of a row of the tables among those that are to be looked at."""
    for k in unroll(CASE_WORDS):
        new = tables[row + k] & (sets[MARKED + k] ^ ((1 << WORD_BITS) - 1))
        sets[MARKED + k] = sets[MARKED + k] | new
        sets[PENDING + k] = sets[PENDING + k] | new
    return 0


def take(step: int, tables: Words, sets: Words) -> int:
    """Take a step, of which the possible cases are to be looked at."""
    include(sets, TAKEN, step)
    row = OF_STEP + step * CASE_WORDS
    for k in unroll(CASE_WORDS):
        new = tables[row + k] & sets[POSSIBLE + k] & (sets[MARKED + k] ^ ((1 << WORD_BITS) - 1))
        sets[MARKED + k] = sets[MARKED + k] | new
        sets[PENDING + k] = sets[PENDING + k] | new
    return 0


def following(sets: Words) -> int:
    """Remove a case from those that are to be looked at, a possible one if there is one; returns
    it, or -1. Possible ones soon show where nothing can be left out.
    """
    found = -1
    for k in unroll(CASE_WORDS):
        if found < 0:
            word = sets[PENDING + k] & sets[POSSIBLE + k]
            if word != 0:
                found = k * WORD_BITS + lowest(word)
    for k in unroll(CASE_WORDS):
        if found < 0:
            word = sets[PENDING + k]
            if word != 0:
                found = k * WORD_BITS + lowest(word)
    if found >= 0:
        sets[PENDING + (found >> 6)] = sets[PENDING + (found >> 6)] ^ (1 << (found & 63))
    return found


def wait_for(case: int, tables: Words, holds: Words, sets: Words) -> int:
    """Demand what may make a case possible that is not: what makes its first condition hold that
    does not.
    """
    i = tables[ASKED + case]
    condition = tables[i]
    while (holds[condition >> 6] >> (condition & 63)) & 1:
        i += 1
        condition = tables[i]
    if is_in(sets, WANTED, condition) == 0:
        include(sets, WANTED, condition)
        demand(ENABLING + condition * CASE_WORDS, tables, sets)
    return 0


def close(seed: int, best: int, tables: Words, holds: Words, sets: Words) -> int:
    """Take the possible steps of a closed set with the seed; returns how many they are, or `best`
    if they are not fewer than that.
    """
    for k in unroll(CASE_WORDS):
        sets[MARKED + k] = 0
        sets[PENDING + k] = 0
    for k in unroll(CONDITION_WORDS):
        sets[WANTED + k] = 0
    for k in unroll(STEP_WORDS):
        sets[TAKEN + k] = 0
    size = 1
    take(seed, tables, sets)
    case = 0
    while case >= 0:
        case = following(sets)
        if case < 0:
            break
        if is_in(sets, POSSIBLE, case) == 0:
            wait_for(case, tables, holds, sets)
            continue
        step = tables[STEP_OF + case]
        # What an observer waits for, and which holds, is found.
        if step < STEPS:
            if is_in(sets, ENABLED, step) & (is_in(sets, TAKEN, step) == 0):
                size += 1
                if (size >= best) | is_in(sets, HOPELESS, step):
                    return best
                take(step, tables, sets)
            demand(DEPENDENT + case * CASE_WORDS, tables, sets)
    return size


def look_around(act: Shorts, first: int, end: int, tables: Words, holds: Words, sets: Words) -> int:
    """Note which steps and cases are possible; returns the number of steps."""
    for k in unroll(STEP_WORDS):
        sets[ENABLED + k] = 0
        sets[HOPELESS + k] = 0
        sets[FUTILE + k] = 0
    count = 0
    q = first
    while q < end:
        count = count + (is_in(sets, ENABLED, act[q]) == 0)
        include(sets, ENABLED, act[q])
        q += 1
    for k in unroll(CASE_WORDS):
        sets[POSSIBLE + k] = (1 << WORD_BITS) - 1
    for w in unroll(CONDITION_WORDS):
        missing = holds[w] ^ ((1 << WORD_BITS) - 1)
        if w == CONDITION_WORDS - 1:
            missing = missing & LAST_CONDITIONS
        while missing != 0:
            row = LEAVING + (w * WORD_BITS + lowest(missing)) * CASE_WORDS
            for k in unroll(CASE_WORDS):
                sets[POSSIBLE + k] = sets[POSSIBLE + k] & tables[row + k]
            missing = missing & (missing - 1)
    return count


def choose_steps(
    state: Words,
    out: Words,
    act: Shorts,
    first: int,
    end: int,
    fault: Words,
    covered: Bytes,
    holds: Words,
    sets: Words,
    tables: Words,
) -> int:
    """Choose among the possible steps act[first] to act[end - 1]; returns 0 if all are to be taken,
    else the set at CHOSEN has those to be taken.

    With a step of HOPELESS no closed set is smaller than the best one. The smallest closed set with
    a step of FUTILE is part of one in which no step leads upwards; a larger one may be worth it.
    """
    count = look_around(act, first, end, tables, holds, sets)
    best = count
    q = first
    while q < end and best > 1:
        seed = act[q]
        q += 1
        if is_in(sets, HOPELESS, seed) | is_in(sets, FUTILE, seed):
            continue
        size = close(seed, best, tables, holds, sets)
        if size >= best:
            include(sets, HOPELESS, seed)
            continue
        is_rising = 0
        r = first
        while r < end and is_rising == 0:
            if is_in(sets, TAKEN, act[r]):
                is_rising = rises(state, at(out, r * W), fault, covered)
            r += 1
        if is_rising:
            best = size
            include(sets, HOPELESS, seed)
            for k in unroll(STEP_WORDS):
                sets[CHOSEN + k] = sets[TAKEN + k]
        else:
            for k in unroll(STEP_WORDS):
                sets[FUTILE + k] = sets[FUTILE + k] | sets[TAKEN + k]
    return best < count


INLINED = (is_in, include, demand, take, following, wait_for, close, look_around, choose_steps)


def bound(names: Mapping[str, Any]) -> Callable[..., int]:
    """Return `choose_steps` for one program in plain Python, with these constants and functions."""
    space: dict[str, Any] = {"unroll": range, "lowest": _lowest, **names}
    for function in INLINED:
        space[function.__name__] = FunctionType(function.__code__, space)
    found: Callable[..., int] = space["choose_steps"]
    return found


def _lowest(word: int) -> int:
    return (word & -word).bit_length() - 1


# Compiled from the system.


def rises(before: Any, after: Any, fault: Any, covered: Any) -> int:
    """Return whether the second state comes after the first one in the order of states."""
    raise NotImplementedError
