"""Clocks: the only way in which time enters. The protocol itself never reads one; the queue's
timers do.
"""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """What a queue needs of a clock."""

    def now_s(self) -> float:
        """Seconds since an arbitrary start; never goes backwards."""
        ...


class VirtualClock:
    """A clock that stands still until it is told to move.

    >>> clock = VirtualClock()
    >>> clock.advance(1.5)
    >>> clock.now_s()
    1.5
    """

    def __init__(self) -> None:
        self._now_s = 0.0

    def now_s(self) -> float:
        """Return the seconds that have been let pass."""
        return self._now_s

    def advance(self, seconds: float) -> None:
        """Move forward by `seconds`; ValueError when negative."""
        if seconds < 0:
            raise ValueError(f"a clock cannot go back by {-seconds} s")
        self._now_s += seconds
