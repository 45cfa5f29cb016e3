"""The real clock."""

from __future__ import annotations

import time


class MonotonicClock:
    """Seconds of the machine's monotonic clock."""

    now_s = staticmethod(time.monotonic)
    """Seconds since an arbitrary start."""
