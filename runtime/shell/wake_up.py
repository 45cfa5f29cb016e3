"""The time at which an attempt's program is to work although no message has come.

A timer of user code, and no decision of the protocol: nothing depends on whether it fires, and no
checkpoint holds it. Decides that the earliest of several times counts, and that a time is over once
the program has worked at it or later. Runs in the task, on its only thread.
"""

from __future__ import annotations

import math

from epochgate.fsm import Clock


class WakeUp:
    """The next wake-up of one attempt, on `clock`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.due_s: float | None = None
        """On the clock; None when no wake-up was asked for."""

    def after(self, seconds: float) -> None:
        """Ask for one; raises ValueError for what is no time from now on."""
        if not (math.isfinite(seconds) and seconds >= 0):
            raise ValueError(
                f"wake_after({seconds}) names no time to come; give a number of seconds, 0 or more"
            )
        due_s = self._clock.now_s() + seconds
        self.due_s = due_s if self.due_s is None else min(self.due_s, due_s)

    def in_s(self) -> float | None:
        """Seconds until it is due, 0 when it is; None when no wake-up was asked for."""
        return None if self.due_s is None else max(0.0, self.due_s - self._clock.now_s())

    def pass_by(self) -> None:
        """The program works now: a wake-up that is due is over."""
        if self.in_s() == 0.0:
            self.due_s = None

    def cancel(self) -> None:
        """The program works no more."""
        self.due_s = None
