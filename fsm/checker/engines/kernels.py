"""The inner loops of the searches, compiled for each system.

A search goes in rounds. `gather` makes the successors of states of a level and puts their keys into
boxes, one for each worker; `receive` then enters the keys of a box into that worker's table, and
lists those that are new. So a table is written to by one thread alone. The slots of many keys are
asked for before they are looked at, because a search waits for memory more than for anything else.

Functions here are translated by `epochgate.fsm.checker.compiler.kernel`; they never run as
Python.
"""

from __future__ import annotations

from typing import Any

from epochgate.fsm.checker.engines import store_kernels
from epochgate.fsm.checker.engines.store_kernels import (
    LEVEL_MAX,
    LOW,
    ONCE,
    PARALLEL,
    STORES,
    STORES_INLINED,
    VALUE_END,
    VALUE_NEXT,
    Bytes,
    Halves,
    Shorts,
    W,
    Words,
    enter,
    find,
    fold,
    level_at,
    only_compiled,
    place_of,
    scrambled,
    unfold,
    unroll,
)

# Constants of a program, replaced when it is compiled.
BLOCKS, FIRST, WIDTH = 0, 0, 0

BATCH = 512
"""Keys that are entered together: enough to hide the memory's delay, and few enough to stay in the
fast cache.
"""
RECENT_SHIFT = 50
"""Most successors were others' successors a moment ago: one of the last 2 ** (64 - RECENT_SHIFT)
keys is not put into a box once more, and no table is asked for it.
"""

SKETCH_BITS = 11
"""The groups of hashes that a sketch of states has, as a power of 2: an error of 2 %."""

RETURNS_MAX = 64
"""A random walk that has come back to a state so often only goes round."""

# Where things stand in the status of a worker; those of the words and pairs follow.
HEAD, END, NEXT, ROOM, TRANSITIONS = 0, 1, 2, 3, 4
FAULT, LEFT_OUT, STEP, STUCK, STACK = 8, 9, 10, 11, 12
STATUS_WORDS = 24

# What a search returns.
DONE, FULL, NO_VALUES, VIOLATED, DEADLOCKED = 0, 1, 2, 3, 4

CONSTANTS = store_kernels.CONSTANTS | {
    name: value for name, value in list(globals().items()) if name.isupper() and type(value) is int
}


def canonical(out: Words, q: int) -> int:
    """Sort the blocks of interchangeable instances."""
    for sweep in unroll(BLOCKS - 1):
        for block in unroll(BLOCKS - 1 - sweep):
            base = q * W + FIRST + block * WIDTH
            order = 0
            for k in unroll(WIDTH):
                if order == 0:
                    order = (out[base + k] > out[base + WIDTH + k]) - (
                        out[base + k] < out[base + WIDTH + k]
                    )
            if order > 0:
                for k in unroll(WIDTH):
                    word = out[base + k]
                    out[base + k] = out[base + WIDTH + k]
                    out[base + WIDTH + k] = word
    return 0


def gather(
    level: Words,
    values: Words,
    plan: Words,
    slots: Words,
    status: Words,
    scratch: Words,
    out: Words,
    act: Shorts,
    recent: Words,
    are_all: int,
    boxes: Words,
    box: int,
    filled: Words,
    workers: int,
    fanout: int,
    covered: Bytes,
) -> int:
    """Put the successors of the states from status[HEAD] to status[END] into boxes, all or those
    that were not put there lately; NO_VALUES if there may be too many new words and pairs, FULL if
    a box may be too small.
    """
    head = status[HEAD]
    end = status[END]
    room = box - fanout
    verdict = DONE
    while head < end:
        if status[VALUE_END] - status[VALUE_NEXT] < fanout * 2 * W:
            verdict = NO_VALUES
            break
        unfold(level[head], values, plan, at(scratch, W), scratch)
        m = expand(scratch, out, act, 0, at(status, FAULT), covered)
        is_full = 0
        q = 0
        while q < m:
            if BLOCKS > 1:
                canonical(out, q)
            key = fold(
                out, q, scratch, at(scratch, W), at(scratch, 3 * W), values, plan, slots, status
            )
            mixed = key * ONCE
            place = mixed >> RECENT_SHIFT
            is_recent = 0
            if are_all == 0:
                is_recent = recent[place] == key
                recent[place] = key
            to = 0
            if PARALLEL:
                to = (((mixed ^ (key >> 32)) & LOW) * workers) >> 32
            # Written in any case: whether a key is a recent one cannot be foreseen.
            n = filled[to]
            boxes[to * box + n] = key
            filled[to] = n + 1 - is_recent
            is_full = is_full | (n >= room)
            q += 1
        status[TRANSITIONS] = status[TRANSITIONS] + m
        if status[FAULT] >= 0:
            verdict = VIOLATED
            break
        if m == 0:
            if is_final(scratch, at(status, FAULT), covered) == 0:
                verdict = DEADLOCKED
                break
            status[STUCK] = status[STUCK] + 1
        head += 1
        if is_full:
            verdict = FULL
            break
    status[HEAD] = head
    return verdict


def receive(
    keys: Words,
    first: int,
    end: int,
    level: int,
    main: Halves,
    extras: Bytes,
    shape: Words,
    status: Words,
    mixed: Words,
    new: Words,
) -> int:
    """Enter the keys of a box, and list those that are new from new[status[NEXT]] on; returns the
    first key for which there was no room.
    """
    begin = first
    while begin < end and status[ROOM] >= BATCH:
        stop = end
        if begin + BATCH < end:
            stop = begin + BATCH
        q = begin
        while q < stop:
            x = scrambled(keys[q], shape)
            mixed[q - begin] = x
            prefetch(main, place_of(x, shape))
            q += 1
        n = status[NEXT]
        q = begin
        while q < stop:
            found = enter(main, extras, shape, mixed[q - begin], level, 0)
            if found > 0:
                new[n] = keys[q]
                n += 1
            if found < 0:
                break
            q += 1
        status[ROOM] = status[ROOM] - (n - status[NEXT])
        status[NEXT] = n
        if q < stop:
            status[ROOM] = 0
        begin = q
    return begin


def admit(
    packed: Words,
    first: int,
    end: int,
    values: Words,
    plan: Words,
    slots: Words,
    status: Words,
    scratch: Words,
    keys: Words,
) -> int:
    """Make the keys of packed states. What a state shares with the one before is not looked up."""
    for k in unroll(W):
        scratch[k] = -1
    for k in unroll(2 * W):
        scratch[W + k] = -1
    i = first
    while i < end:
        keys[i - first] = fold(
            packed, i, scratch, at(scratch, W), at(scratch, 3 * W), values, plan, slots, status
        )
        for k in unroll(W):
            scratch[k] = packed[i * W + k]
        for k in unroll(2 * W):
            scratch[W + k] = scratch[3 * W + k]
        i += 1
    return 0


def spell(
    keys: Words, first: int, end: int, values: Words, plan: Words, scratch: Words, packed: Words
) -> int:
    """Write out the packed states of some keys."""
    i = first
    while i < end:
        unfold(keys[i], values, plan, scratch, at(packed, (i - first) * W))
        i += 1
    return 0


def precede(
    keys: Words,
    first: int,
    end: int,
    goals: Words,
    goals_count: int,
    values: Words,
    plan: Words,
    slots: Words,
    status: Words,
    scratch: Words,
    out: Words,
    act: Shorts,
    marks: Bytes,
    fanout: int,
    covered: Bytes,
) -> int:
    """Mark the states with a successor among the goals, which are in order; returns the first one
    for which there may be too many new words and pairs.
    """
    i = first
    while i < end and status[VALUE_END] - status[VALUE_NEXT] >= fanout * 2 * W:
        unfold(keys[i], values, plan, at(scratch, W), scratch)
        m = expand(scratch, out, act, 0, at(status, FAULT), covered)
        status[FAULT] = -1
        q = 0
        while q < m:
            if BLOCKS > 1:
                canonical(out, q)
            key = fold(
                out, q, scratch, at(scratch, W), at(scratch, 3 * W), values, plan, slots, status
            )
            low = 0
            high = goals_count
            while low < high:
                middle = (low + high) >> 1
                if goals[middle] < key:
                    low = middle + 1
                else:
                    high = middle
            if low < goals_count:
                if goals[low] == key:
                    marks[i] = 1
            q += 1
        i += 1
    return i


def descend(
    values: Words,
    plan: Words,
    slots: Words,
    main: Halves,
    extras: Bytes,
    shape: Words,
    status: Words,
    scratch: Words,
    out: Words,
    act: Shorts,
    stack: Words,
    stack_max: int,
    fanout: int,
    covered: Bytes,
) -> int:
    """Expand the newest state first; status[STACK] is the height of the stack."""
    height = status[STACK]
    room = status[ROOM]
    verdict = DONE
    while height > 0:
        if status[VALUE_END] - status[VALUE_NEXT] < fanout * 2 * W:
            verdict = NO_VALUES
            break
        head = stack[height - 1]
        level = 1 + level_at(extras, shape, find(main, extras, shape, scrambled(head, shape)))
        if (status[ROOM] < fanout) | (height + fanout > stack_max) | (level > shape[LEVEL_MAX]):
            verdict = FULL
            break
        height = height - 1
        left_out = status[LEFT_OUT]
        unfold(head, values, plan, at(scratch, W), scratch)
        m = expand(scratch, out, act, 0, at(status, FAULT), covered)
        q = 0
        while q < m:
            if BLOCKS > 1:
                canonical(out, q)
            key = fold(
                out, q, scratch, at(scratch, W), at(scratch, 3 * W), values, plan, slots, status
            )
            found = enter(main, extras, shape, scrambled(key, shape), level, 0)
            if found < 0:
                break
            if found > 0:
                stack[height] = key
                height += 1
                status[NEXT] = status[NEXT] + 1
            q += 1
        status[ROOM] = room - status[NEXT]
        if q < m:
            # The state is taken once more, in a larger table; what was found stays known.
            stack[height] = head
            height += 1
            status[FAULT] = -1
            status[LEFT_OUT] = left_out
            status[ROOM] = 0
            verdict = FULL
            break
        status[TRANSITIONS] = status[TRANSITIONS] + m
        status[HEAD] = head
        if status[FAULT] >= 0:
            verdict = VIOLATED
            break
        if m == 0:
            if is_final(scratch, at(status, FAULT), covered) == 0:
                verdict = DEADLOCKED
                break
            status[STUCK] = status[STUCK] + 1
    status[STACK] = height
    return verdict


def scan(
    keys: Words,
    first: int,
    end: int,
    demanded: int,
    values: Words,
    plan: Words,
    scratch: Words,
    found: Words,
    fault: Words,
    covered: Bytes,
) -> int:
    """The first state in which not all demanded properties hold, or a property fails; else `end`.

    found[0] collects the properties that held somewhere, found[1] is what held in the last state.
    """
    i = first
    while i < end:
        unfold(keys[i], values, plan, at(scratch, W), scratch)
        holding = inspect(scratch, fault, covered)
        found[0] = found[0] | holding
        found[1] = holding
        if (demanded & holding) != demanded or fault[0] >= 0:
            return i
        i += 1
    return end


SEARCHES = (*STORES, gather, receive, admit, spell, precede, descend, scan)
INLINED = (*STORES_INLINED, canonical)


# What the translator knows by itself, or what is compiled from the system.


def at(array: Any, index: int) -> Any:
    """The part of an array that begins at `index`."""
    return array[index:]


def prefetch(array: Any, index: int) -> None:
    """Ask the processor to have this element at hand soon."""


def expand(state: Any, out: Any, act: Any, n: int, fault: Any, covered: Any) -> int:
    """Append the successors of one state to the n that are there; returns the new number."""
    raise only_compiled("expand")


def inspect(state: Any, fault: Any, covered: Any) -> int:
    """A bit for each property that holds in a state."""
    raise only_compiled("inspect")


def is_final(state: Any, fault: Any, covered: Any) -> int:
    """1 if the system may end in a state."""
    raise only_compiled("is_final")
