"""The bound on how much of what one task says may wait for the driver's queue.

Carries out the machine `receive_window`, which decides from when on the connection is not read, and
from when on it is read again. The network then holds what the task says next, and the task waits in
its next send: it calls no `work` meanwhile. What the driver says still reaches the task. Leaves
reading to the server. What arrives is counted on the wire's thread, where the machine runs, what is
handled on the queue's; no number is written by both.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from epochgate.fsm import Handles
from epochgate.models.receive_window import ReceiveWindows
from epochgate.runtime.api.transport import TaskInbox
from epochgate.spark.wire import Connection

WAITING_BYTES_MAX: Final = 4 * 1024 * 1024
WAITING_MESSAGES_MAX: Final = 1024
MARK_BYTES: Final = 64 * 1024
MARK_MESSAGES: Final = 128


class Reader(Protocol):
    """The part that reads from connections: the wire's server."""

    def pause(self, connection: Connection, /) -> None: ...
    def resume(self, connection: Connection, /) -> None: ...
    def call(self, function: Callable[[], None], /) -> None: ...


class ReceiveWindow:
    """The window of one connection."""

    def __init__(self, reader: Reader, connection: Connection) -> None:
        self._reader, self._connection = reader, connection
        self._arrived = self._handled = self._marked = (0, 0)
        """Bytes and messages: received, handled, and up to which the queue was asked to say so."""
        self._watched: tuple[int, int] | None = None
        """How much is handled when the machine is to be told."""
        self._system = Handles(
            ReceiveWindows,
            waiting_bytes_max=WAITING_BYTES_MAX,
            waiting_messages_max=WAITING_MESSAGES_MAX,
        )
        self._system.bind("receive_window", "reading", self)
        self._machine = self._system.receive_window

    def received(self, inbox: TaskInbox, messages: int) -> None:
        """Count messages that the inbox was given; the wire's thread."""
        delivered_bytes = self._connection.decoder.delivered_bytes
        arrived = self._arrived = delivered_bytes, self._arrived[1] + messages
        marked = self._marked
        if arrived[0] - marked[0] < MARK_BYTES and arrived[1] - marked[1] < MARK_MESSAGES:
            return
        self._marked = arrived
        inbox.when_handled(partial(self._note_handled, arrived))
        self._machine.received(*arrived, *self._handled)
        self._system.settle()
        self._tell_handled()  # all may have been handled before this was to be watched for

    def _note_handled(self, arrived: tuple[int, int]) -> None:
        self._handled = arrived
        if self._is_due():
            self._reader.call(self._tell_handled)

    def _tell_handled(self) -> None:
        while self._is_due():
            self._watched = None
            self._machine.handled(*self._arrived, *self._handled)
            self._system.settle()

    def _is_due(self) -> bool:
        watched, handled = self._watched, self._handled
        return watched is not None and handled[0] >= watched[0] and handled[1] >= watched[1]

    # port `reading` of the machine

    def pause(self) -> None:
        """Do not read the connection."""
        self._reader.pause(self._connection)

    def watch(self, until_bytes: int, until_messages: int) -> None:
        """Look out for so much that is handled."""
        self._watched = until_bytes, until_messages

    def resume(self) -> None:
        """Read the connection again."""
        self._reader.resume(self._connection)
