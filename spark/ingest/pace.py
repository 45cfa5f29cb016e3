"""A limit on rows per second, for sources that share their machine with others.

Decides how long to wait; never longer at a time than a barrier may be kept waiting. Runs in the
task.
"""

from __future__ import annotations

import time
from collections.abc import Callable

PAUSE_S_MAX = 0.02


class Pace:
    """Keeps to `rows_per_s` on average (none: no limit); what was missed is not made up."""

    def __init__(
        self, rows_per_s: float | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rows_per_s, self._clock = rows_per_s, clock
        self._due_s = 0.0

    def note(self, rows: int) -> None:
        """`rows` rows were processed just now."""
        if self._rows_per_s is not None:
            self._due_s = max(self._due_s, self._clock()) + rows / self._rows_per_s

    def pause_s(self) -> float:
        """Seconds to wait now, 0 when the next rows are due; at most `PAUSE_S_MAX`."""
        if self._rows_per_s is None:
            return 0.0
        return min(PAUSE_S_MAX, max(0.0, self._due_s - self._clock()))
