"""The compressed store of states, compiled for each system together with the searches.

Nothing is lost: a state is compared as a whole. A state of W words is a tree. Its leaves are the
words, each kept once for all states, with a number. A plan says which numbers are joined to pairs,
which get numbers in the same way, until few are left; these, side by side, are the state's *key*
(with one word the word itself).

A key is scrambled to `x`, by steps that can be undone, and x is kept in an open hash table of
groups of slots. The group tells much of x, so a slot has only what the group does not tell: its
*rest*, and how far the group lies behind the one where x belongs. The lower 32 bits of that are one
array, in which a group is a line of the cache and compared at once; its further bits, and the level
of the state, are the state's bytes in another, which is read only where the 32 bits agree. The
number of groups is any number, so a table need not double to grow.

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
GROUPS, STEP_BITS, NUMBER_BITS, BITS, STRIDE, EXTRA, LEVEL_MAX, PARTS, PART_BITS = range(9)
SHAPE_WORDS = 9
LANES = 16
"""Slots of a group, which are looked at together: four bytes each, a line of the cache."""
REACH_BITS = 7
REACH = (1 << REACH_BITS) - 1
"""How many groups a state may be in, from the one where it belongs on."""

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
    key = 0
    if pairs == 0:
        for k in unroll(W):
            key = (key << plan[PLAN_BITS]) | made[k]
        return key
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
    """The first slot of the group where x belongs: its first 32 bits, as a share of all groups."""
    return (((x >> (shape[BITS] - 32)) * shape[GROUPS]) >> 32) * LANES  # type: ignore[no-any-return]


def rest_of(x: int, shape: Words) -> int:
    """The part of x that its place does not tell, and 1 for the first group where x may be."""
    low = shape[BITS] - 32
    share = (x >> low) * shape[GROUPS]
    rest = (((share & LOW) >> shape[STEP_BITS]) << low) | (x & ((1 << low) - 1))
    return (rest << REACH_BITS) | 1  # type: ignore[no-any-return]


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


def same_at(main: Halves, extras: Bytes, shape: Words, j: int, wanted: int) -> int:
    """The slot of the group at j that keeps `wanted`; -1 if none does."""
    found = alike(main, j, wanted)
    extra = shape[EXTRA]
    while found != 0:
        slot = j + lowest(found)
        if extra == 0:
            return slot
        if ((extra_at(extras, shape, slot) ^ (wanted >> 32)) & ((1 << extra) - 1)) == 0:
            return slot
        found = found & (found - 1)
    return -1


def enter(main: Halves, extras: Bytes, shape: Words, x: int, level: int, is_new: int) -> int:
    """Keep x: 1 if it is new, as one knows beforehand or not, 0 if it is there, -1 if no slot
    within reach is free.
    """
    j = place_of(x, shape)
    wanted = rest_of(x, shape)
    last = j + REACH * LANES
    while j < last:
        if is_new == 0:
            if same_at(main, extras, shape, j, wanted) >= 0:
                return 0
        free = alike(main, j, 0)
        if free != 0:
            j = j + lowest(free)
            main[j] = wanted
            keep_extra(extras, shape, j, (level << shape[EXTRA]) | (wanted >> 32))
            return 1
        wanted += 1
        j = j + LANES
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
    place = j // LANES + 1 - (whole & REACH)
    rest = whole >> REACH_BITS
    low = shape[BITS] - 32
    share = (place << 32) + ((rest >> low) << shape[STEP_BITS])
    first = (share + shape[GROUPS] - 1) // shape[GROUPS]
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
            if enter(main, extras, shape, x, level, 1) < 0:
                return 0
        j += 1
    return 1


def find(main: Halves, extras: Bytes, shape: Words, x: int) -> int:
    """The slot of an x that is kept."""
    j = place_of(x, shape)
    wanted = rest_of(x, shape)
    while True:
        slot = same_at(main, extras, shape, j, wanted)
        if slot >= 0:
            return slot
        wanted += 1
        j = j + LANES


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
        found = enter(main, extras, shape, scrambled(keys[i], shape), levels[i], 0)
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
    rest_of,
    extra_at,
    level_at,
    keep_extra,
    same_at,
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


def alike(array: Any, index: int, value: int) -> int:
    """A bit for each of LANES elements that is `value`."""
    raise only_compiled("alike")


def lowest(bits: int) -> int:
    """The number of the lowest bit that is set; one must be."""
    raise only_compiled("lowest")
