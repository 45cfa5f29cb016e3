"""A coordinator's own thread: calls wait in a mailbox, are made in their order, or stand still.

A coordinator that does all of its work there acts late on everything that it is told: it sends to
attempts that are gone and completes checkpoints that are over. In simulation a scheduler makes the
calls; otherwise a thread does, from `start` to `close`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any


class Mailbox:
    """Calls that wait; `on_error` hears of what one raises. Any thread may put."""

    def __init__(self, on_error: Callable[[Exception], None]) -> None:
        self._on_error = on_error
        self._calls: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._changed = threading.Condition()
        self._is_stalled = self._is_closed = False
        self._thread: threading.Thread | None = None

    def put(self, call: Callable[..., None], *arguments: Any) -> None:
        """Let `call` be made after those that wait."""
        with self._changed:
            self._calls.append((call, arguments))
            self._changed.notify()

    def stall(self) -> None:
        """Make no call until `resume`."""
        with self._changed:
            self._is_stalled = True

    def resume(self) -> None:
        """Go on."""
        with self._changed:
            self._is_stalled = False
            self._changed.notify()

    def run_next(self) -> bool:
        """Make the oldest call; False when none waits or it stands still."""
        with self._changed:
            if not self.is_ready():
                return False
            call, arguments = self._calls.popleft()
        try:
            call(*arguments)
        except Exception as error:  # noqa: BLE001  the job is to end of it
            self._on_error(error)
        return True

    def is_ready(self) -> bool:
        """Return whether a call could be made now."""
        return bool(self._calls) and not self._is_stalled

    def start(self) -> None:
        """Make the calls on a thread from now on."""
        self._thread = threading.Thread(target=self._run, name="mailbox", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Make no further call, and end the thread if there is one."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(60.0)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed or self.is_ready())
                if self._is_closed:
                    return
            self.run_next()
