"""The inner loop of a search whose states are spread over partitions, compiled for each system.

The hash of all words of a state says which partition it belongs to, so that all hosts agree on it,
whatever numbers their stores give to words and pairs. What belongs elsewhere is
put into the box of its partition as it is, unless it was put there a moment ago.

Functions here are translated by `epochgate.fsm.checker.compiler.kernel`; they never run as Python.
"""

from __future__ import annotations

from epochgate.fsm.checker.engines import kernels as k
from epochgate.fsm.checker.engines.kernels import (
    DEADLOCKED,
    DONE,
    END,
    FAULT,
    FULL,
    HEAD,
    NO_VALUES,
    RECENT_SHIFT,
    STUCK,
    TRANSITIONS,
    VIOLATED,
    at,
    canonical,
    expand,
    is_final,
)
from epochgate.fsm.checker.engines.store_kernels import (
    LOW,
    ONCE,
    STORES,
    TWICE,
    VALUE_END,
    VALUE_NEXT,
    Bytes,
    Shorts,
    Words,
    fold,
    unfold,
    unroll,
)

# Constants of a program, replaced when it is compiled.
W, BLOCKS = 1, 0

SENT_SHIFT = 48
"""One of the last 2 ** (64 - SENT_SHIFT) states that were sent is not sent again."""

CONSTANTS = k.CONSTANTS | {
    name: value for name, value in list(globals().items()) if name.isupper() and type(value) is int
}


def mix(states: Words, i: int) -> int:
    """Mix all words of a state into 64 bits."""
    h = 0
    for word in unroll(W):
        h = (h ^ states[i * W + word]) * ONCE
        h = h ^ (h >> 32)
    h = h * TWICE
    return h ^ (h >> 29)


def post(out: Words, q: int, mixed: int, sent: Words, box: Words, n: int) -> int:
    """Put a state into a box as the n-th unless it was sent lately; returns how many are there."""
    slot = mixed >> SENT_SHIFT
    differing = 0
    for word in unroll(W):
        differing = differing | (out[q * W + word] ^ sent[slot * W + word])
    if differing == 0:
        return n
    for word in unroll(W):
        sent[slot * W + word] = out[q * W + word]
        box[n * W + word] = out[q * W + word]
    return n + 1


def spread(
    level: Words,
    values: Words,
    plan: Words,
    slots: Words,
    status: Words,
    scratch: Words,
    out: Words,
    act: Shorts,
    recent: Words,
    keys: Words,
    box: int,
    filled: Words,
    fanout: int,
    covered: Bytes,
    sent: Words,
    own: int,
    parts: int,
    boxes: Words,
    size: int,
    posted: Words,
) -> int:
    """As `gather` does, with the keys that belong here in one box, and other states in others."""
    head = status[HEAD]
    kept = filled[0]
    verdict = DONE
    while head < status[END]:
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
            mixed = mix(out, q)
            owner = ((mixed & LOW) * parts) >> 32
            if owner == own:
                key = fold(
                    out, q, scratch, at(scratch, W), at(scratch, 3 * W), values, plan, slots, status
                )
                place = (key * ONCE) >> RECENT_SHIFT
                if recent[place] != key:
                    recent[place] = key
                    keys[kept] = key
                    kept += 1
            else:
                n = post(out, q, mixed, sent, at(boxes, owner * size * W), posted[owner])
                posted[owner] = n
                is_full = is_full | (n + fanout > size)
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
        if is_full | (kept + fanout > box):
            verdict = FULL
            break
    filled[0] = kept
    status[HEAD] = head
    return verdict


KERNELS = (*STORES, k.receive, k.admit, k.spell, k.precede, k.scan, spread)
INLINED = (*k.INLINED, mix, post)
