"""The figures of a benchmark: samples, and the tables that show them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


def number(value: float) -> str:
    """Return three significant digits as a person writes them.

    >>> [number(value) for value in (0.1234, 2.5, 61.27, 213456.0)]
    ['0.123', '2.50', '61.3', '213,000']
    """
    if value == 0:
        return "0"
    if abs(value) >= 100:
        digits = max(0, len(str(int(abs(value)))) - 3)
        return f"{round(value, -digits):,.0f}"
    return f"{value:#.3g}"


def percentile(samples: Sequence[float], percent: int) -> float:
    """Return the sample below which `percent` of all lie; 50 is the median.

    >>> percentile([5.0, 1.0, 3.0], 50), percentile([5.0, 1.0, 3.0], 99)
    (3.0, 5.0)
    """
    if percent == 50:
        return statistics.median(samples)
    return sorted(samples)[min(len(samples) - 1, len(samples) * percent // 100)]


def spread(samples: Sequence[float]) -> str:
    """Return the median with the least and the greatest.

    >>> spread([3.0, 1.0, 2.0])
    '2.00 (1.00 to 3.00)'
    """
    middle, least, most = statistics.median(samples), min(samples), max(samples)
    return f"{number(middle)} ({number(least)} to {number(most)})"


@dataclass(frozen=True)
class Table:
    """The answer to one question: rows of text under a header, and what to know about them."""

    question: str
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: str = ""

    def markdown(self) -> str:
        """Return title, table and notes; the first column is text, the others are numbers."""
        rule = ("---", *("---:" for _ in self.header[1:]))
        lines = [f"| {' | '.join(row)} |" for row in (self.header, rule, *self.rows)]
        parts = [f"**{self.title}**", "\n".join(lines)]
        return "\n\n".join([*parts, self.notes] if self.notes else parts)
