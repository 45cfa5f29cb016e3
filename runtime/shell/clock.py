"""The real clock."""

from __future__ import annotations

import time


class MonotonicClock:
    """Seconds of the machine's monotonic clock."""

    def now_s(self) -> float:
        """Seconds since an arbitrary start."""
        return time.monotonic()
