"""The compressed store of states, compiled for each system together with the searches.

Nothing is lost: a state is compared as a whole. A state of W words is a tree. Its leaves are the
words, each kept once for all states, with a number. A plan says which numbers are joined to pairs,
which get numbers in the same way, until few are left; these, side by side, are the state's *key*
(with one word the word itself).

A key is scrambled to `x`, by steps that can be undone, and x is kept in an open hash table. The
place in the table tells much of x, so a slot has only what the place does not tell: its *rest*, and
how far the slot lies behind the place where x belongs. The lower 32 bits of that are one array; its
further bits, and the level of the state, are the state's bytes in another, which is read only where
the 32 bits agree. The number of slots is any number, so a table need not double to grow.

Functions here are translated by `epochgate.fsm.checker.compiler.kernel`; they never run as Python.
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
W, PARALLEL, BLOCKS, FIRST, WIDTH, KEY_BITS = 1, 0, 0, 0, 0, 0

# A table's shape.
SLOTS, STEP_BITS, NUMBER_BITS, BITS, STRIDE, EXTRA, LEVEL_MAX, PARTS, PART_BITS = range(9)
SHAPE_WORDS = 9
REACH_BITS = 11
REACH = 2047
"""The farthest that a slot lies behind the place of its state."""

# A plan: how many parts a key has, with how many bits each; how many pairs there are. Then, for
# each pair, the two items that it joins, and the items that are the parts. Items are numbered:
# first the words, then the pairs.
PLAN_PARTS, PLAN_BITS, PLAN_PAIRS, PLAN_FIRST = 0, 1, 2, 3

# Where things stand in the status of a worker, as far as the words and pairs are concerned.
VALUE_NEXT, VALUE_END, VALUE_SHIFT, VALUE_MASK = 16, 17, 18, 19

TAG = 0xFFFFFFFF00000000
LOW = 0xFFFFFFFF
ONCE, TWICE = 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53
"""What a key is multiplied by."""
ONCE_BACK, TWICE_BACK = pow(ONCE, -1, 1 << 64), pow(TWICE, -1, 1 << 64)

CONSTANTS = {
    name: value for name, value in list(globals().items()) if name.isupper() and type(value) is int
}


# Words and pairs


def number_of(values: Words, slots: Words, status: Words, value: int) -> int:
    """The number of a word or pair, which gets the next one if it is new."""
    h = value * ONCE
    h = (h ^ (h >> 32)) * TWICE
    j = h >> status[VALUE_SHIFT]
    mask = status[VALUE_MASK]
    while True:
        e = slots[j]
        if e == 0:
            n = status[VALUE_NEXT]
            values[n] = value
            if PARALLEL:
                if claim(slots, j, (h & TAG) | (n + 1)):
                    status[VALUE_NEXT] = n + 1
                    return n  # type: ignore[no-any-return]  # elements of Words are Any
            else:
                slots[j] = (h & TAG) | (n + 1)
                status[VALUE_NEXT] = n + 1
                return n  # type: ignore[no-any-return]
        else:
            if ((e ^ h) >> 32) == 0:
                # Joined by `and`, both sides would be evaluated.
                if values[(e & LOW) - 1] == value:
                    return (e & LOW) - 1  # type: ignore[no-any-return]
            j = (j + 1) & mask


def double(old: Words, first: int, end: int, slots: Words, shift: int, mask: int) -> int:
    """Enter what some slots of the words and pairs hold into twice as many."""
    i = first
    while i < end:
        e = old[i]
        if e != 0:
            j = (e & TAG) >> shift
            while slots[j] != 0:
                j = (j + 1) & mask
            slots[j] = e
        i += 1
    return 0


def fold(
    out: Words,
    q: int,
    state: Words,
    items: Words,
    made: Words,
    values: Words,
    plan: Words,
    slots: Words,
    status: Words,
) -> int:
    """The key of a state; what it has in common with `state`, of which the numbers of all words and
    pairs are at hand, is not looked up.
    """
    if W == 1:
        return out[q]  # type: ignore[no-any-return]
    for k in unroll(W):
        word = out[q * W + k]
        if word == state[k]:
            made[k] = items[k]
        else:
            made[k] = number_of(values, slots, status, word)
    pairs = plan[PLAN_PAIRS]
    m = 0
    while m < pairs:
        a = plan[PLAN_FIRST + 2 * m]
        b = plan[PLAN_FIRST + 2 * m + 1]
        left = made[a]
        right = made[b]
        if ((left ^ items[a]) | (right ^ items[b])) == 0:
            made[W + m] = items[W + m]
        else:
            made[W + m] = number_of(values, slots, status, (left << 32) | right)
        m += 1
    key = 0
    part = PLAN_FIRST + 2 * pairs
    last = part + plan[PLAN_PARTS]
    while part < last:
        key = (key << plan[PLAN_BITS]) | made[plan[part]]
        part += 1
    return key


def unfold(key: int, values: Words, plan: Words, items: Words, state: Words) -> int:
    """The words of a state, and the numbers of all its words and pairs."""
    if W == 1:
        state[0] = key
        return 0
    m = plan[PLAN_PAIRS]
    first = PLAN_FIRST + 2 * m
    k = first + plan[PLAN_PARTS]
    bits = plan[PLAN_BITS]
    while k > first:
        k = k - 1
        items[plan[k]] = key & ((1 << bits) - 1)
        key = key >> bits
    while m > 0:
        m = m - 1
        pair = values[items[W + m]]
        items[plan[PLAN_FIRST + 2 * m]] = pair >> 32
        items[plan[PLAN_FIRST + 2 * m + 1]] = pair & LOW
    for word in unroll(W):
        state[word] = values[items[word]]
    return 0


# The table of keys


def packed(key: int, shape: Words, before: int, after: int) -> int:
    """The parts of a key side by side with other widths than before."""
    mask = (1 << before) - 1
    k = shape[PARTS]
    at = 0
    found = 0
    while k > 0:
        k = k - 1
        found = found | ((key & mask) << at)
        key = key >> before
        at = at + after
    return found


def scrambled(key: int, shape: Words) -> int:
    """Mix a key, packed into as few bits as the numbers need, into as many bits."""
    x = key
    if W > 1:
        x = packed(key, shape, shape[PART_BITS], shape[NUMBER_BITS])
    bits = shape[BITS]
    mask = (1 << bits) - 1
    half = (bits + 1) >> 1
    x = ((x ^ (x >> half)) * ONCE) & mask
    return ((x ^ (x >> half)) * TWICE) & mask  # type: ignore[no-any-return]


def unscrambled(x: int, shape: Words) -> int:
    """The key that is mixed to x."""
    bits = shape[BITS]
    mask = (1 << bits) - 1
    half = (bits + 1) >> 1
    key = (x * TWICE_BACK) & mask
    key = ((key ^ (key >> half)) * ONCE_BACK) & mask
    key = key ^ (key >> half)
    if W > 1:
        key = packed(key, shape, shape[NUMBER_BITS], shape[PART_BITS])
    return key  # type: ignore[no-any-return]


def place_of(x: int, shape: Words) -> int:
    """Where x belongs: its first 32 bits, as a share of all slots."""
    return ((x >> (shape[BITS] - 32)) * shape[SLOTS]) >> 32  # type: ignore[no-any-return]


def extra_at(extras: Bytes, shape: Words, j: int) -> int:
    """The bytes of a slot: its level, and below it the bits of the rest that did not fit."""
    stride = shape[STRIDE]
    found = 0
    k = stride
    while k > 0:
        k = k - 1
        found = (found << 8) | extras[j * stride + k]
    return found


def level_at(extras: Bytes, shape: Words, j: int) -> int:
    """The level of the state in a slot."""
    return extra_at(extras, shape, j) >> shape[EXTRA]  # type: ignore[no-any-return]


def enter(main: Halves, extras: Bytes, shape: Words, x: int, level: int) -> int:
    """Keep x: 1 if it is new, 0 if it is known, -1 if no slot within reach is free."""
    low = shape[BITS] - 32
    share = (x >> low) * shape[SLOTS]
    j = share >> 32
    rest = (((share & LOW) >> shape[STEP_BITS]) << low) | (x & ((1 << low) - 1))
    wanted = (rest << REACH_BITS) | 1
    extra = shape[EXTRA]
    last = j + REACH
    while j < last:
        e = main[j]
        if e == 0:
            main[j] = wanted
            keep_extra(extras, shape, j, (level << extra) | (wanted >> 32))
            return 1
        if e == (wanted & LOW):
            if extra == 0:
                return 0
            if ((extra_at(extras, shape, j) ^ (wanted >> 32)) & ((1 << extra) - 1)) == 0:
                return 0
        wanted += 1
        j += 1
    return -1


def keep_extra(extras: Bytes, shape: Words, j: int, value: int) -> int:
    """Write the bytes of a slot."""
    stride = shape[STRIDE]
    k = 0
    while k < stride:
        extras[j * stride + k] = value >> (8 * k)
        k += 1
    return 0


def kept_at(main: Halves, extras: Bytes, shape: Words, j: int) -> int:
    """The x that a slot, which is not free, keeps."""
    extra = shape[EXTRA]
    whole = main[j]
    if extra > 0:
        whole = whole | ((extra_at(extras, shape, j) & ((1 << extra) - 1)) << 32)
    place = j + 1 - (whole & REACH)
    rest = whole >> REACH_BITS
    low = shape[BITS] - 32
    share = (place << 32) + ((rest >> low) << shape[STEP_BITS])
    first = (share + shape[SLOTS] - 1) // shape[SLOTS]
    return (first << low) | (rest & ((1 << low) - 1))  # type: ignore[no-any-return]


def move(
    old: Halves,
    old_extras: Bytes,
    old_shape: Words,
    first: int,
    end: int,
    main: Halves,
    extras: Bytes,
    shape: Words,
) -> int:
    """Enter what some slots of a table keep into another one; 0 if one finds no place there."""
    is_alike = old_shape[BITS] == shape[BITS]
    j = first
    while j < end:
        if old[j] != 0:
            x = kept_at(old, old_extras, old_shape, j)
            if is_alike == 0:
                x = scrambled(unscrambled(x, old_shape), shape)
            level = level_at(old_extras, old_shape, j)
            if enter(main, extras, shape, x, level) < 0:
                return 0
        j += 1
    return 1


def find(main: Halves, extras: Bytes, shape: Words, x: int) -> int:
    """The slot of an x that is kept."""
    low = shape[BITS] - 32
    share = (x >> low) * shape[SLOTS]
    j = share >> 32
    rest = (((share & LOW) >> shape[STEP_BITS]) << low) | (x & ((1 << low) - 1))
    wanted = (rest << REACH_BITS) | 1
    extra = shape[EXTRA]
    while True:
        if main[j] == (wanted & LOW):
            if extra == 0:
                return j  # type: ignore[no-any-return]
            if ((extra_at(extras, shape, j) ^ (wanted >> 32)) & ((1 << extra) - 1)) == 0:
                return j  # type: ignore[no-any-return]
        wanted += 1
        j += 1


def slot_of(main: Halves, extras: Bytes, shape: Words, key: int) -> int:
    """The slot of a state that is kept."""
    return find(main, extras, shape, scrambled(key, shape))


def collect(
    main: Halves,
    extras: Bytes,
    shape: Words,
    first: int,
    end: int,
    lowest: int,
    highest: int,
    keys: Words,
    levels: Halves,
) -> int:
    """List the states of some slots with levels from lowest to highest; returns how many."""
    n = 0
    j = first
    while j < end:
        if main[j] != 0:
            level = level_at(extras, shape, j)
            if (level >= lowest) & (level <= highest):
                keys[n] = unscrambled(kept_at(main, extras, shape, j), shape)
                levels[n] = level
                n += 1
        j += 1
    return n


def put(main: Halves, extras: Bytes, shape: Words, keys: Words, levels: Halves, count: int) -> int:
    """Keep keys with their levels; returns how many of them are new."""
    new = 0
    i = 0
    while i < count:
        found = enter(main, extras, shape, scrambled(keys[i], shape), levels[i])
        if found < 0:
            return new
        new = new + found
        i += 1
    return new


STORES = (double, move, put, slot_of, collect)
STORES_INLINED = (
    number_of,
    fold,
    unfold,
    packed,
    scrambled,
    unscrambled,
    place_of,
    extra_at,
    level_at,
    keep_extra,
    enter,
    kept_at,
    find,
)


# What the translator knows by itself.


def only_compiled(name: str) -> InvariantBroken:
    """The error of a function that has no Python body."""
    return InvariantBroken(
        f"kernels.{name} was called as a Python function and has no Python body: the compiler puts "
        f"machine code in its place; run the search with the engine 'llvm', or take engine "
        f"'python' (PlainSearch), which needs no kernels"
    )


def unroll(count: int) -> range:
    """A loop that is unrolled when it is compiled."""
    return range(count)


def claim(array: Any, index: int, value: int) -> int:
    """Put `value` where 0 is, at once; 1 unless another thread was faster."""
    raise only_compiled("claim")
