"""A limit on records per second: decides how long a subtask waits before it takes more.

What was missed is not made up, so that a subtask which comes back after a failure or a pause takes
no burst. Pure; runs in the task.
"""

from __future__ import annotations


class Pace:
    """Keeps to `per_s` records a second on average; none: no limit."""

    def __init__(self, per_s: float | None = None) -> None:
        self.per_s = per_s
        self._due_s = 0.0

    def note(self, records: int, now_s: float) -> None:
        """`records` were taken at `now_s`."""
        if self.per_s is not None:
            self._due_s = max(self._due_s, now_s) + records / self.per_s

    def wait_s(self, now_s: float) -> float:
        """Seconds until more may be taken; 0 when that is now."""
        return 0.0 if self.per_s is None else max(0.0, self._due_s - now_s)

    def change(self, per_s: float | None, now_s: float) -> None:
        """From `now_s` on another rate: what is still to be waited for takes as long as it would
        at that one.
        """
        if per_s is None or self.per_s is None:
            self._due_s = now_s
        else:
            self._due_s = now_s + self.wait_s(now_s) * self.per_s / per_s
        self.per_s = per_s
