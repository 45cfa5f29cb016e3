"""A choice of the words of a state that are joined to pairs, so that few different pairs result.

A key has up to four parts, each the number of a word or pair, in 62 bits. The fewer parts, the
larger their numbers may be; the more parts, the fewer pairs have to be looked up. What is joined is
chosen by the states that are known: those two parts that take the fewest different pairs of values.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

KEY_BITS = 62
PARTS_MAX = 4
SPARE_BITS = 2
"""Numbers may grow fourfold before a plan with fewer parts is needed."""


@dataclass(frozen=True)
class Plan:
    """Items are numbered: first the words, then the pairs; each pair joins two items."""

    pairs: tuple[tuple[int, int], ...]
    parts: tuple[int, ...]

    @property
    def part_bits(self) -> int:
        return KEY_BITS // len(self.parts)

    @property
    def numbers_max(self) -> int:
        return 1 << min(31, self.part_bits)

    def packed(self) -> Any:
        """As kernels read it."""
        joined = [item for pair in self.pairs for item in pair]
        head = [len(self.parts), self.part_bits, len(self.pairs)]
        return np.array([*head, *joined, *self.parts], np.int64)


def parts_for(words: int, numbers: int) -> int:
    """Return the number of parts that a key may have when this many numbers are in use."""
    needed = numbers.bit_length() + SPARE_BITS
    fitting = (count for count in range(PARTS_MAX, 2, -1) if KEY_BITS // count >= needed)
    return min(words, next(fitting, 2))


def plan(words: int, parts: int, states: Any) -> Plan:
    """Join words until `parts` are left; `states` are some of them, one a row."""
    columns = {k: np.unique(states[:, k], return_inverse=True)[1] for k in range(words)}
    pairs: list[tuple[int, int]] = []
    counts: dict[tuple[int, int], int] = {}
    while len(columns) > parts:
        for one in combinations(columns, 2):
            if one not in counts:
                counts[one] = len(np.unique(_joined(columns, one)))
        best = min(combinations(columns, 2), key=lambda one: counts[one])
        joined = np.unique(_joined(columns, best), return_inverse=True)[1]
        for item in best:
            del columns[item]
        columns[words + len(pairs)] = joined
        pairs.append(best)
    return Plan(tuple(pairs), tuple(columns))


def _joined(columns: dict[int, Any], one: tuple[int, int]) -> Any:
    left, right = columns[one[0]].astype(np.int64), columns[one[1]].astype(np.int64)
    return left << 32 | right
