"""The inner loops of the breadth-first search, compiled for each system by its number of words W.

The pool holds every state found, in order of discovery; a slot of the hash table holds 32 bits of a
state's hash and its number in the pool plus 1, so whole states are compared and none is lost to a
collision. Successors are made in batches, and their table slots and candidate states are fetched
ahead, because a search waits for memory more than for anything else.
"""

from __future__ import annotations

from epochgate.fsm.compiler.kernel import Bytes, Halves, Words, at, prefetch, unroll

__all__ = ["at", "prefetch", "unroll"]

W = 1
TAG = 0xFFFFFFFF00000000
LOW = 0xFFFFFFFF


def expand(state: Words, out: Words, act: Bytes, n: int, fault: Words, covered: Bytes) -> int:
    """Compiled from the system: appends the successors of one state."""
    raise NotImplementedError


def hash_state(states: Words, i: int) -> int:
    h = 0x9E3779B97F4A7C15
    for k in unroll(W):
        h = (h ^ states[i * W + k]) * 0xFF51AFD7ED558CCD
        h = h ^ (h >> 32)
    h = h * 0xC4CEB9FE1A85EC53
    return h ^ (h >> 29)


def is_same(pool: Words, i: int, out: Words, q: int) -> int:
    differing = 0
    for k in unroll(W):
        differing = differing | (pool[i * W + k] ^ out[q * W + k])
    return differing == 0


def rehash(pool: Words, first: int, count: int, table: Words, mask: int) -> int:
    """Enter the states `first` to `count` of the pool into the table."""
    i = first
    while i < count:
        h = hash_state(pool, i)
        j = h & mask
        while table[j] != 0:
            j = (j + 1) & mask
        table[j] = (h & 0xFFFFFFFF00000000) | (i + 1)
        i += 1
    return 0


def search(
    pool: Words,
    parent: Halves,
    table: Words,
    status: Words,
    out: Words,
    act: Bytes,
    source: Words,
    hashes: Words,
    covered: Bytes,
    fanout: Halves,
) -> int:
    """Expand the states from status[0] to status[1], the end of a level, as far as the table allows.

    status: next state to expand, end of the level, states, transitions, table mask, batch size,
    states at which the table is full, most successors of a state, fault, its step.
    Returns 0 at the end of the level, 1 for a full table, 2 for a fault.
    """
    head = status[0]
    end = status[1]
    n = status[2]
    mask = status[4]
    batch = status[5]
    while head < end:
        if n + batch + status[7] > status[6]:
            status[0] = head
            status[2] = n
            return 1
        m = 0
        while head < end and m < batch and status[8] < 0:
            before = m
            m = expand(at(pool, head * W), out, act, m, at(status, 8), covered)
            fanout[0] = fanout[0] + 0
            while before < m:
                source[before] = head
                before += 1
            head += 1
        q = 0
        while q < m:
            h = hash_state(out, q)
            hashes[q] = h
            prefetch(table, h & mask)
            q += 1
        q = 0
        while q < m:
            h = hashes[q]
            e = table[h & mask]
            if e != 0 and ((e ^ h) >> 32) == 0:
                prefetch(pool, ((e & 0xFFFFFFFF) - 1) * W)
            q += 1
        q = 0
        while q < m:
            h = hashes[q]
            j = h & mask
            found = 0
            while found == 0:
                e = table[j]
                if e == 0:
                    break
                if ((e ^ h) >> 32) == 0:
                    if is_same(pool, (e & 0xFFFFFFFF) - 1, out, q):
                        found = 1
                j = (j + 1) & mask
            if found == 0:
                j = h & mask
                while table[j] != 0:
                    j = (j + 1) & mask
                for k in unroll(W):
                    pool[n * W + k] = out[q * W + k]
                parent[n] = source[q]
                n += 1
                table[j] = (h & 0xFFFFFFFF00000000) | n
            q += 1
        status[3] = status[3] + m
        if status[8] >= 0:
            status[0] = head - 1
            status[2] = n
            return 2
    status[0] = head
    status[2] = n
    return 0
