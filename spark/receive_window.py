"""How much of what one task says may wait for the driver's queue.

Decides from when on its connection is not read, and from when on it is read again. The network then
holds what the task says next, and the task waits in its next send: it calls no `work` meanwhile.
What the driver says still reaches the task. Leaves reading to the server. What arrives is counted
on the wire's thread, what is handled on the queue's; no number is written by both.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from epochgate.runtime.api.transport import TaskInbox
from epochgate.spark.wire import Connection

WAITING_BYTES_MAX: Final = 4 * 1024 * 1024
WAITING_MESSAGES_MAX: Final = 1024
MARK_BYTES: Final = 64 * 1024
MARK_MESSAGES: Final = 128


class Reader(Protocol):
    """What reads from connections: the wire's server."""

    def pause(self, connection: Connection, /) -> None: ...
    def resume(self, connection: Connection, /) -> None: ...
    def call(self, function: Callable[[], None], /) -> None: ...


class ReceiveWindow:
    """The window of one connection."""

    def __init__(self, reader: Reader, connection: Connection) -> None:
        self._reader, self._connection = reader, connection
        self._arrived = self._handled = self._marked = (0, 0)
        """Bytes and messages: received, handled, and up to which the queue was asked to say so."""
        self._is_paused = False

    def received(self, inbox: TaskInbox, messages: int) -> None:
        """Count messages that the inbox was given; the wire's thread."""
        delivered_bytes = self._connection.decoder.delivered_bytes
        arrived = self._arrived = delivered_bytes, self._arrived[1] + messages
        marked = self._marked
        if arrived[0] - marked[0] < MARK_BYTES and arrived[1] - marked[1] < MARK_MESSAGES:
            return
        self._marked = arrived
        inbox.when_handled(partial(self._note_handled, arrived))
        if self._exceeds(WAITING_BYTES_MAX, WAITING_MESSAGES_MAX):
            self._is_paused = True
            self._reader.pause(self._connection)
            self._read_on()  # all may have been handled before this was said to be paused

    def _note_handled(self, arrived: tuple[int, int]) -> None:
        self._handled = arrived
        if self._is_paused and self._has_room():
            self._reader.call(self._read_on)

    def _read_on(self) -> None:
        if self._is_paused and self._has_room():
            self._is_paused = False
            self._reader.resume(self._connection)

    def _has_room(self) -> bool:
        return not self._exceeds(WAITING_BYTES_MAX // 2, WAITING_MESSAGES_MAX // 2)

    def _exceeds(self, bytes_max: int, messages_max: int) -> bool:
        arrived, handled = self._arrived, self._handled
        return arrived[0] - handled[0] > bytes_max or arrived[1] - handled[1] > messages_max
