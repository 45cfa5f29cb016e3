"""The calls that hang in tests of limits: the limit has passed as soon as something hangs, and no
sooner.
"""

from __future__ import annotations

from threading import Event

import pytest

from epochgate.runtime import limited


class Stall:
    """Hangs those who call it, until `goes_on`; in the meantime their limit has passed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._hangs, self.goes_on = Event(), Event()
        stall = self

        def has_ended(call: limited._Call, timeout_s: float) -> bool:
            while not call._running.acquire(timeout=0.001):
                if stall._hangs.is_set():
                    stall._hangs.clear()
                    return False
            return True

        monkeypatch.setattr(limited._Call, "has_ended", has_ended)

    def __call__(self) -> bool:
        self._hangs.set()
        return self.goes_on.wait()
