"""Threads at the two windows of an attempt, each of which stands still where another may go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from epochgate.runtime.shell import send_window
from epochgate.runtime.shell.coordinator_context import BoundGateway
from epochgate.spark import receive_window
from tests.playing.gates import Process

HAS_READ, HAS_WRITTEN = "has read", "has written"
AT_LOCK, LOOKS_AGAIN = "at the lock", "looks again"
OVER: Final[Any] = send_window.SendWindow.__dict__["_over"]


class Flood(Protocol):
    """The world: its threads, of which the queue's has a part at each window."""

    threads: Threads
    returning: Process
    noting: Process
    wire: Process

    def is_locked(self) -> bool:
        """Return whether a sender has the lock of the gateway."""


class Threads:
    """The one that runs at a time."""

    acting: Process | None = None

    def call(self, thread: Process, body: Callable[[], Any]) -> None:
        """Let it begin; returns once it stands, or has ended."""
        self._acts(thread, lambda: thread.call(body))

    def go_on(self, thread: Process) -> None:
        """Let it go on, if it stands."""
        if thread.asked is not None:
            self._acts(thread, thread.answer)

    def _acts(self, thread: Process, act: Callable[[], None]) -> None:
        self.acting = thread
        act()
        self.acting = None
        if thread.error is not None:
            raise thread.error

    def stand(self, place: str, *wanted: Process) -> None:
        """Stand still, if one of these runs."""
        if self.acting is not None and (not wanted or self.acting in wanted):
            self.acting.stand(place, ())


class Lock:
    """The lock of a gateway: the queue's thread stands before it."""

    def __init__(self, world: Flood) -> None:
        self._world = world

    def __enter__(self) -> None:
        self._world.threads.stand(AT_LOCK, self._world.returning)
        assert not self._world.is_locked(), "the schedule lets one thread have the lock"

    def __exit__(self, *raised: object) -> None:
        """It is released."""


class Gateway(BoundGateway):
    """That of an attempt."""

    world: Flood
    is_asking = False
    """Its thread has read nothing yet."""

    @property
    def _over(self) -> int:
        over: int = OVER.__get__(self)
        if self.is_asking:
            self.is_asking = False
            self.world.threads.stand(HAS_READ)
        return over

    @_over.setter
    def _over(self, over: int) -> None:
        OVER.__set__(self, over)
        if self.world.threads.acting is self.world.returning:
            self.world.threads.stand(HAS_WRITTEN)

    def _wake_if_due(self) -> None:
        if self.world.threads.acting is not self.world.returning:
            self.world.threads.stand(LOOKS_AGAIN)
        super()._wake_if_due()


class Window(receive_window.ReceiveWindow):
    """That of a connection."""

    world: Flood
    is_counting = False
    """The wire's thread has not read yet what is handled."""
    _kept = (0, 0)

    @property
    def _handled(self) -> tuple[int, int]:
        handled = self._kept
        if self.is_counting:
            self.is_counting = False
            self.world.threads.stand(HAS_READ)
        return handled

    @_handled.setter
    def _handled(self, handled: tuple[int, int]) -> None:
        self._kept = handled
        if self.world.threads.acting is self.world.noting:
            self.world.threads.stand(HAS_WRITTEN)

    def _tell_handled(self) -> None:
        self.world.threads.stand(LOOKS_AGAIN, self.world.wire)
        super()._tell_handled()
