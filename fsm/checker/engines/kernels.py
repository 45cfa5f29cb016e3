"""The inner loops of the searches, compiled for each system.

The pool holds every state found, W words each; a state's number is its place there. A slot of the
hash table holds the upper 32 bits of a state's hash and its number plus 1, so whole states are
compared and none is lost to a collision. A state belongs at the slot that the highest bits of its
hash name, so a table can be doubled by going through the old one in order, without the states.
Successors are made in batches, and their slots and the states there are fetched ahead, because a
search waits for memory more than for anything else.

Functions here are translated by `epochgate.fsm.checker.compiler.kernel`; they never run as
Python.
"""

from __future__ import annotations

from typing import Any

from epochgate.errors import InvariantBroken

# The types of arrays: of 64, 32, 16 and 8 bits.
Words = Any
Halves = Any
Shorts = Any
Bytes = Any

# Constants of a program, replaced when it is compiled.
W, PARALLEL, BLOCKS, FIRST, WIDTH = 1, 0, 0, 0, 0

BATCH = 1024
"""Successors that are looked up together: enough to hide the memory's delay, and few enough to stay
in the fast cache.
"""

SKETCH_BITS = 11
"""The groups of hashes that a sketch of states has, as a power of 2: an error of 2 %."""

RETURNS_MAX = 64
"""A random walk that has come back to a state so often only goes round."""

# Where things stand in the status of a worker.
HEAD, END, NEXT, LIMIT, SPARE, SPARE_END, ROOM, TRANSITIONS = 0, 1, 2, 3, 4, 5, 6, 7
FAULT, STEP, STUCK, VERDICT, SHIFT, MASK, STACK = 8, 10, 11, 12, 13, 14, 15
STATUS_WORDS = 16

# What a search returns.
DONE, FULL, CHUNK, VIOLATED, DEADLOCKED = 0, 1, 2, 3, 4

TAG = 0xFFFFFFFF00000000
LOW = 0xFFFFFFFF

CONSTANTS = {
    name: value for name, value in list(globals().items()) if name.isupper() and type(value) is int
}


def hash_state(states: Words, i: int) -> int:
    """Mix all words of a state into 64 bits."""
    h = 0x9E3779B97F4A7C15
    for k in unroll(W):
        h = (h ^ states[i * W + k]) * 0xFF51AFD7ED558CCD
        h = h ^ (h >> 32)
    h = h * 0xC4CEB9FE1A85EC53
    return h ^ (h >> 29)


def is_same(pool: Words, i: int, out: Words, q: int) -> int:
    """Whether all words agree."""
    differing = 0
    for k in unroll(W):
        differing = differing | (pool[i * W + k] ^ out[q * W + k])
    return differing == 0


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


def enter(
    pool: Words,
    parent: Halves,
    table: Words,
    shift: int,
    mask: int,
    n: int,
    out: Words,
    q: int,
    h: int,
    source: int,
) -> int:
    """Add a state as the n-th unless it is known; returns the number of the next one to come."""
    j = h >> shift
    while True:
        e = table[j]
        if e == 0:
            for k in unroll(W):
                pool[n * W + k] = out[q * W + k]
            parent[n] = source
            if PARALLEL:
                if claim(table, j, (h & TAG) | (n + 1)):
                    return n + 1
            else:
                table[j] = (h & TAG) | (n + 1)
                return n + 1
        else:
            if ((e ^ h) >> 32) == 0:
                # Joined by `and`, both sides would be evaluated.
                if is_same(pool, (e & LOW) - 1, out, q):
                    return n
            j = (j + 1) & mask


def find(pool: Words, table: Words, shift: int, mask: int, out: Words, q: int, h: int) -> int:
    """The number of a state that is known."""
    j = h >> shift
    while True:
        e = table[j]
        if ((e ^ h) >> 32) == 0:
            number = (e & LOW) - 1
            if is_same(pool, number, out, q):
                return number  # type: ignore[no-any-return]  # elements of Words are Any
        j = (j + 1) & mask


def double(old: Words, first: int, end: int, table: Words, shift: int, mask: int) -> int:
    """Enter what some slots of a table hold into a larger one."""
    i = first
    while i < end:
        e = old[i]
        if e != 0:
            j = (e & TAG) >> shift
            if PARALLEL:
                while table[j] != 0 or claim(table, j, e) == 0:
                    j = (j + 1) & mask
            else:
                while table[j] != 0:
                    j = (j + 1) & mask
                table[j] = e
        i += 1
    return 0


def refill(pool: Words, first: int, end: int, table: Words, shift: int, mask: int) -> int:
    """Enter states of the pool, all different, into the table."""
    i = first
    while i < end:
        h = hash_state(pool, i)
        j = h >> shift
        while table[j] != 0:
            j = (j + 1) & mask
        table[j] = (h & TAG) | (i + 1)
        i += 1
    return 0


def gather(
    pool: Words,
    table: Words,
    status: Words,
    out: Words,
    act: Shorts,
    source: Words,
    hashes: Words,
    covered: Bytes,
) -> int:
    """Make successors until there are BATCH, and ask for their slots; returns how many there are.

    status[VERDICT] is then DONE, or says why to stop at the state status[HEAD].
    """
    head = status[HEAD]
    end = status[END]
    shift = status[SHIFT]
    m = 0
    while head < end and m < BATCH:
        before = m
        m = expand(at(pool, head * W), out, act, m, at(status, FAULT), covered)
        q = before
        while q < m:
            source[q] = head
            if BLOCKS > 1:
                canonical(out, q)
            h = hash_state(out, q)
            hashes[q] = h
            prefetch(table, h >> shift)
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


def settle(
    pool: Words,
    parent: Halves,
    table: Words,
    status: Words,
    out: Words,
    source: Words,
    hashes: Words,
    m: int,
) -> int:
    """Enter m successors, whose slots are at hand; returns how many of them are new."""
    n = status[NEXT]
    limit = status[LIMIT]
    shift = status[SHIFT]
    mask = status[MASK]
    new = 0
    q = 0
    while q < m:
        h = hashes[q]
        e = table[h >> shift]
        if e != 0 and ((e ^ h) >> 32) == 0:
            prefetch(pool, ((e & LOW) - 1) * W)
        q += 1
    q = 0
    while q < m:
        after = enter(pool, parent, table, shift, mask, n, out, q, hashes[q], source[q])
        new = new + (after - n)
        n = after
        if PARALLEL and n == limit:
            n = status[SPARE]
            limit = status[SPARE_END]
            status[SPARE] = -1
        q += 1
    status[NEXT] = n
    status[LIMIT] = limit
    return new


def search(
    pool: Words,
    parent: Halves,
    table: Words,
    status: Words,
    out: Words,
    act: Shorts,
    source: Words,
    hashes: Words,
    covered: Bytes,
    fanout: int,
) -> int:
    """Expand the states from status[HEAD] to status[END] as far as table and pool allow."""
    status[VERDICT] = DONE
    while status[HEAD] < status[END] and status[VERDICT] == DONE:
        if status[ROOM] < BATCH + fanout:
            return FULL
        if PARALLEL and status[LIMIT] - status[NEXT] < BATCH + fanout and status[SPARE] < 0:
            return CHUNK
        m = gather(pool, table, status, out, act, source, hashes, covered)
        new = settle(pool, parent, table, status, out, source, hashes, m)
        status[ROOM] = status[ROOM] - new
        status[TRANSITIONS] = status[TRANSITIONS] + m
    return status[VERDICT]  # type: ignore[no-any-return]  # elements of Words are Any


def descend(
    pool: Words,
    parent: Halves,
    table: Words,
    status: Words,
    out: Words,
    act: Shorts,
    stack: Halves,
    covered: Bytes,
    fanout: int,
) -> int:
    """Expand the newest state first; status[STACK] is the height of the stack."""
    n = status[NEXT]
    shift = status[SHIFT]
    mask = status[MASK]
    height = status[STACK]
    verdict = DONE
    while height > 0:
        if status[ROOM] < fanout + 1:
            verdict = FULL
            break
        height = height - 1
        head = stack[height]
        m = expand(at(pool, head * W), out, act, 0, at(status, FAULT), covered)
        status[TRANSITIONS] = status[TRANSITIONS] + m
        q = 0
        while q < m:
            if BLOCKS > 1:
                canonical(out, q)
            h = hash_state(out, q)
            after = enter(pool, parent, table, shift, mask, n, out, q, h, head)
            if after > n:
                stack[height] = n
                height += 1
                n = after
                status[ROOM] = status[ROOM] - 1
            q += 1
        status[HEAD] = head
        if status[FAULT] >= 0:
            verdict = VIOLATED
            break
        if m == 0:
            if is_final(at(pool, head * W), at(status, FAULT), covered) == 0:
                verdict = DEADLOCKED
                break
            status[STUCK] = status[STUCK] + 1
    status[NEXT] = n
    status[STACK] = height
    return verdict


def scan(
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


SEARCHES = (double, refill, search, descend, scan)
INLINED = (hash_state, is_same, canonical, enter, find, gather, settle)


# What the translator knows by itself, or what is compiled from the system.


def _only_compiled(name: str) -> InvariantBroken:
    return InvariantBroken(
        f"kernels.{name} was called as a Python function and has no Python body: the compiler puts "
        f"machine code in its place; run the search with the engine 'llvm', or take engine "
        f"'python' (PlainSearch), which needs no kernels"
    )


def unroll(count: int) -> range:
    """A loop that is unrolled when it is compiled."""
    return range(count)


def at(array: Any, index: int) -> Any:
    """The part of an array that begins at `index`."""
    return array[index:]


def prefetch(array: Any, index: int) -> None:
    """Ask the processor to have this element at hand soon."""


def claim(array: Any, index: int, value: int) -> int:
    """Put `value` where 0 is, at once; 1 unless another thread was faster."""
    raise _only_compiled("claim")


def expand(state: Any, out: Any, act: Any, n: int, fault: Any, covered: Any) -> int:
    """Append the successors of one state to the n that are there; returns the new number."""
    raise _only_compiled("expand")


def inspect(state: Any, fault: Any, covered: Any) -> int:
    """A bit for each property that holds in a state."""
    raise _only_compiled("inspect")


def is_final(state: Any, fault: Any, covered: Any) -> int:
    """Whether the system may end in a state."""
    raise _only_compiled("is_final")
