"""Numbers that look random and repeat from a seed, without Python's generator and alike in machine
code.
"""

from __future__ import annotations

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def scrambled(seed: int) -> int:
    """A first state of the generator, never 0, that differs widely between similar seeds."""
    x = (seed + GOLDEN) & MASK
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & MASK
    return (x ^ (x >> 31)) or GOLDEN


def following(x: int) -> int:
    """The next state: Marsaglia's xorshift with 13, 7 and 17."""
    x = x ^ (x << 13) & MASK
    x ^= x >> 7
    return x ^ (x << 17) & MASK


def below(x: int, count: int) -> int:
    """A number below `count` from a state."""
    return (x >> 11) % count
