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


SKETCH_BITS = 11
"""The groups of hashes that a sketch has, as a power of 2."""
ZEROS_MAX = 50
RETURNS_MAX = 64
"""A random walk that has come back to a state so often only goes round."""


def hashed(words: tuple[int, ...]) -> int:
    """Mix all words of a state into 64 bits, as machine code does."""
    h = GOLDEN
    for word in words:
        h = (h ^ word) * 0xFF51AFD7ED558CCD & MASK
        h ^= h >> 32
    h = h * 0xC4CEB9FE1A85EC53 & MASK
    return h ^ (h >> 29)


def sketched(sketch: bytearray, h: int) -> None:
    """Keep of a hash what tells how many different ones there were: for each of the groups that
    they are divided into, the longest row of zeros that one of them ends in.
    """
    group = h >> (64 - SKETCH_BITS)
    zeros = 1
    while not h & 1 and zeros < ZEROS_MAX:
        h >>= 1
        zeros += 1
    sketch[group] = max(sketch[group], zeros)
