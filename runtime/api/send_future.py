"""The future of what was sent at once, one event or several. It is completed on the queue's thread,
in the order of the sends, and may be awaited from any other thread.

A sent event is the most frequent thing in a job, so its future and its envelope are one small
object, without the lock that a general future carries.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from epochgate.errors import EpochgateError


class EventLost(EpochgateError):
    """The event did not reach, or may not have reached, its subtask; the subtask's state does not
    contain it.
    """


_PENDING = object()


class Window(Protocol):
    """The count of events until they are over."""

    def call_back(self, callback: Callable[[SendFuture], None], sent: SendFuture) -> None:
        """Call a callback of user code, which may raise anything."""

    def free(self, until: int) -> None:
        """Give back all that was sent up to this sum of bytes."""


class Together(tuple[Any, ...]):
    """Events that `SubtaskGateway.send_events` sends as one."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{self[0]!r} and {len(self) - 1} after it"


class SendFuture:
    """Says whether one event was handled by its subtask, or all that were sent together.

    Completes exactly once: with None, or with EventLost. Callbacks run on the queue's thread.
    """

    __slots__ = ("_callbacks", "_outcome", "_until", "_waiter", "_window", "event")

    def __init__(self, event: Any, window: Window | None = None, until: int = 0) -> None:
        """Make one that is counted in `window`, of whose bytes it is the last of `until`."""
        self.event = event
        self._window = window
        self._until = until
        self._outcome: object = _PENDING
        self._callbacks: list[Callable[[SendFuture], None]] | None = None
        self._waiter: threading.Event | None = None

    def done(self) -> bool:
        """Return whether the outcome is known."""
        return self._outcome is not _PENDING

    def exception(self) -> EventLost | None:
        """Return why the event did not arrive; None while pending or when it did."""
        return self._outcome if isinstance(self._outcome, EventLost) else None

    def result(self, timeout_s: float | None = None) -> None:
        """Wait until the event was handled; raises EventLost, or TimeoutError after `timeout_s`
        seconds.

        Not for the queue's thread, which would wait for itself: use `add_done_callback` there.
        """
        if self._outcome is _PENDING:
            self._waiter = waiter = self._waiter or threading.Event()
            if self._outcome is _PENDING and not waiter.wait(timeout_s):
                raise TimeoutError(f"event {self.event!r} was not handled within {timeout_s} s")
        if isinstance(self._outcome, EventLost):
            raise self._outcome

    def add_done_callback(self, callback: Callable[[SendFuture], None]) -> None:
        """Call `callback(self)` once this is done, at once if it is; queue thread only."""
        if self._outcome is not _PENDING:
            callback(self)
        elif self._callbacks is None:
            self._callbacks = [callback]
        else:
            self._callbacks.append(callback)

    def complete(self, error: EventLost | None = None) -> None:
        """Set the outcome, unless there is one; the runtime calls this."""
        if self._outcome is not _PENDING:
            return
        self._outcome = error
        if self._waiter is not None:
            self._waiter.set()
        if self._callbacks is not None:
            for callback in self._callbacks:
                if self._window is None:
                    callback(self)
                else:
                    self._window.call_back(callback, self)

    def free(self) -> None:
        """Give back the bytes of this event and of those before it; the runtime calls this before
        it completes them, because their callbacks may send.
        """
        if self._window is not None:
            self._window.free(self._until)
