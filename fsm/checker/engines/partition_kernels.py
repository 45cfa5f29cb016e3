"""The inner loops of a search whose states are spread over partitions, compiled for each system.

A state belongs to the partition that the low half of its hash names. A partition has a pool of its
states, W words each, and a hash table: a slot holds the upper 32 bits of a hash and the number of a
state in the pool plus 1. Whole states are compared, so none is lost to a collision. What belongs to
another partition is collected in a box for it, unless it was sent a moment ago.

Functions here are translated by `epochgate.fsm.checker.compiler.kernel`; they never run as Python.
"""

from __future__ import annotations

from epochgate.fsm.checker.engines.kernels import (
    at,
    canonical,
    expand,
    inspect,
    is_final,
    prefetch,
)
from epochgate.fsm.checker.engines.store_kernels import Bytes, Shorts, Words, unroll

# Constants of a program, replaced when it is compiled.
W, BLOCKS, FIRST, WIDTH = 1, 0, 0, 0

BATCH = 1024
"""States that are looked up together, which hides the memory's delay."""

# Where things stand in the status of a partition.
HEAD, END, NEXT, ROOM, TRANSITIONS, STUCK, SHIFT, MASK = 0, 1, 2, 3, 4, 5, 6, 7
FAULT, STEP, OWN, PARTS, BOX, VERDICT, SENT_SHIFT, IS_SENDING = 8, 10, 11, 12, 13, 14, 15, 16
STATUS_WORDS = 17

# What a function returns.
DONE, FULL, BOXED, VIOLATED, DEADLOCKED = 0, 1, 2, 3, 4

TAG = 0xFFFFFFFF00000000
LOW = 0xFFFFFFFF

CONSTANTS = {
    name: value for name, value in list(globals().items()) if name.isupper() and type(value) is int
}


def mix(states: Words, i: int) -> int:
    """Mix all words of a state into 64 bits."""
    h = 0x9E3779B97F4A7C15
    for k in unroll(W):
        h = (h ^ states[i * W + k]) * 0xFF51AFD7ED558CCD
        h = h ^ (h >> 32)
    h = h * 0xC4CEB9FE1A85EC53
    return h ^ (h >> 29)


def equal(one: Words, i: int, other: Words, j: int) -> int:
    """Whether all words of two states agree."""
    differing = 0
    for k in unroll(W):
        differing = differing | (one[i * W + k] ^ other[j * W + k])
    return differing == 0


def copy(source: Words, i: int, destination: Words, j: int) -> int:
    """Copy a state."""
    for k in unroll(W):
        destination[j * W + k] = source[i * W + k]
    return 0


def admit_one(
    pool: Words, table: Words, shift: int, mask: int, n: int, out: Words, q: int, h: int
) -> int:
    """Add a state as the n-th unless it is known; returns the number of the next one to come."""
    j = h >> shift
    while True:
        e = table[j]
        if e == 0:
            copy(out, q, pool, n)
            table[j] = (h & TAG) | (n + 1)
            return n + 1
        if ((e ^ h) >> 32) == 0:
            if equal(pool, (e & LOW) - 1, out, q):
                return n
        j = (j + 1) & mask


def index(pool: Words, first: int, end: int, table: Words, shift: int, mask: int) -> int:
    """Enter states of the pool, all different, into the table."""
    i = first
    while i < end:
        h = mix(pool, i)
        j = h >> shift
        while table[j] != 0:
            j = (j + 1) & mask
        table[j] = (h & TAG) | (i + 1)
        i += 1
    return 0


def widen(old: Words, slots: int, table: Words, shift: int, mask: int) -> int:
    """Enter what a table holds into a larger one."""
    i = 0
    while i < slots:
        e = old[i]
        if e != 0:
            j = (e & TAG) >> shift
            while table[j] != 0:
                j = (j + 1) & mask
            table[j] = e
        i += 1
    return 0


def successors(
    pool: Words,
    table: Words,
    status: Words,
    out: Words,
    act: Shorts,
    hashes: Words,
    owners: Words,
    sent: Words,
    covered: Bytes,
) -> int:
    """Make successors until there are BATCH, and ask for their slots; returns how many there are.

    status[VERDICT] is then DONE, or says why to stop at the state status[HEAD].
    """
    head = status[HEAD]
    end = status[END]
    shift = status[SHIFT]
    own = status[OWN]
    parts = status[PARTS]
    sent_shift = status[SENT_SHIFT]
    m = 0
    while head < end and m < BATCH:
        before = m
        m = expand(at(pool, head * W), out, act, m, at(status, FAULT), covered)
        q = before
        while q < m:
            if BLOCKS > 1:
                canonical(out, q)
            h = mix(out, q)
            owner = ((h & LOW) * parts) >> 32
            hashes[q] = h
            owners[q] = owner
            if owner == own:
                prefetch(table, h >> shift)
            else:
                prefetch(sent, (h >> sent_shift) * W)
            q += 1
        if status[FAULT] >= 0:
            status[VERDICT] = VIOLATED
            break
        if m == before:
            if is_final(at(pool, head * W), at(status, FAULT), covered) == 0:
                status[VERDICT] = DEADLOCKED
                break
            status[STUCK] = status[STUCK] + 1
        head += 1
    status[HEAD] = head
    return m


def distribute(
    pool: Words,
    table: Words,
    status: Words,
    out: Words,
    hashes: Words,
    owners: Words,
    sent: Words,
    boxes: Words,
    filled: Words,
    m: int,
) -> int:
    """Enter those of m successors that belong here, and put the others into their boxes."""
    n = status[NEXT]
    shift = status[SHIFT]
    mask = status[MASK]
    own = status[OWN]
    box = status[BOX]
    sent_shift = status[SENT_SHIFT]
    q = 0
    while q < m:
        if owners[q] == own:
            h = hashes[q]
            e = table[h >> shift]
            if e != 0 and ((e ^ h) >> 32) == 0:
                prefetch(pool, ((e & LOW) - 1) * W)
        q += 1
    q = 0
    while q < m:
        owner = owners[q]
        h = hashes[q]
        if owner == own:
            n = admit_one(pool, table, shift, mask, n, out, q, h)
        else:
            if status[IS_SENDING]:
                slot = h >> sent_shift
                if equal(sent, slot, out, q) == 0:
                    copy(out, q, sent, slot)
                    copy(out, q, boxes, owner * box + filled[owner])
                    filled[owner] = filled[owner] + 1
        q += 1
    status[ROOM] = status[ROOM] - (n - status[NEXT])
    status[NEXT] = n
    return 0


def spread(
    pool: Words,
    table: Words,
    status: Words,
    out: Words,
    act: Shorts,
    hashes: Words,
    owners: Words,
    sent: Words,
    boxes: Words,
    filled: Words,
    covered: Bytes,
    fanout: int,
) -> int:
    """Expand the states from status[HEAD] to status[END] as far as pool, table and boxes allow."""
    status[VERDICT] = DONE
    while status[HEAD] < status[END] and status[VERDICT] == DONE:
        if status[ROOM] < BATCH + fanout:
            return FULL
        part = 0
        while part < status[PARTS]:
            if status[BOX] - filled[part] < BATCH + fanout:
                return BOXED
            part += 1
        m = successors(pool, table, status, out, act, hashes, owners, sent, covered)
        distribute(pool, table, status, out, hashes, owners, sent, boxes, filled, m)
        status[TRANSITIONS] = status[TRANSITIONS] + m
    return status[VERDICT]  # type: ignore[no-any-return]  # elements of Words are Any


def take(pool: Words, table: Words, status: Words, states: Words, hashes: Words) -> int:
    """Enter the states from status[HEAD] to status[END] of `states` as far as there is room."""
    shift = status[SHIFT]
    mask = status[MASK]
    head = status[HEAD]
    n = status[NEXT]
    while head < status[END]:
        if status[ROOM] < BATCH:
            return FULL
        m = status[END] - head
        if m > BATCH:
            m = BATCH
        q = 0
        while q < m:
            h = mix(states, head + q)
            hashes[q] = h
            prefetch(table, h >> shift)
            q += 1
        q = 0
        while q < m:
            h = hashes[q]
            e = table[h >> shift]
            if e != 0 and ((e ^ h) >> 32) == 0:
                prefetch(pool, ((e & LOW) - 1) * W)
            q += 1
        q = 0
        while q < m:
            n = admit_one(pool, table, shift, mask, n, states, head + q, hashes[q])
            q += 1
        head = head + m
        status[HEAD] = head
        status[ROOM] = status[ROOM] - (n - status[NEXT])
        status[NEXT] = n
    return DONE


def look(
    pool: Words, first: int, end: int, demanded: int, found: Words, fault: Words, covered: Bytes
) -> int:
    """The first state in which not all demanded properties hold, or a property fails; else `end`.

    found[0] collects the properties that held somewhere, found[1] is what held in the last state.
    """
    i = first
    while i < end:
        holding = inspect(at(pool, i * W), fault, covered)
        found[0] = found[0] | holding
        found[1] = holding
        if (demanded & holding) != demanded or fault[0] >= 0:
            return i
        i += 1
    return end


def precede_one(
    pool: Words, count: int, wanted: Words, out: Words, act: Shorts, fault: Words, covered: Bytes
) -> int:
    """The first state that has the wanted one among its successors; else `count`."""
    i = 0
    while i < count:
        m = expand(at(pool, i * W), out, act, 0, fault, covered)
        q = 0
        while q < m:
            if BLOCKS > 1:
                canonical(out, q)
            if equal(wanted, 0, out, q):
                return i
            q += 1
        i += 1
    return count


KERNELS = (index, widen, spread, take, look, precede_one)
INLINED = (canonical, mix, equal, copy, admit_one, successors, distribute)
