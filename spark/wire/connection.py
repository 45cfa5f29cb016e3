"""The driver's end of the channel to one task.

Which thread runs what: `put`, `put_many`, `send`, `send_many`, `flush` and `close` may be called
from any thread. Those that write do so on the calling thread, as long as the socket takes the
bytes; what it does not take is written by the server's thread when it can be. Reading, decoding,
and every call of the listener happen on the server's thread. A lock per connection keeps the frames
in order; it is never held while the listener runs.

Decides when bytes are written and how many may wait. Order is kept per sending thread, and what one
thread put before another is sent before it. Delivery is not promised by any return value: a task
confirms by a message.

When a task does not read, messages gather here. Beyond `outgoing_bytes_max` bytes that wait before
the newest message the connection is closed with a reason that says so: the driver's memory stays
bounded, no caller is ever blocked, and the attempt fails over like one that was lost. Who sends
much at once can watch `waiting_bytes`.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from epochgate.spark.wire.detector import PhiDetector
from epochgate.spark.wire.frames import FrameDecoder, Message, pack_message, pack_messages
from epochgate.spark.wire.outgoing import FRAME_BYTES_TARGET, Outgoing
from epochgate.spark.wire.stream import Stream


class Connection:
    """One task's connection, from its hello to `lost`.

    `peer` is "host:port" of the task, `hello` the map of plain values with which it introduced
    itself.
    """

    def __init__(
        self,
        *,
        sock: Stream,
        peer: str,
        hello: dict[str, Any],
        decoder: FrameDecoder,
        outgoing: Outgoing,
        message_bytes_max: int,
        outgoing_bytes_max: int,
        attend: Callable[[Connection], None],
        process: PhiDetector,
        link: PhiDetector,
    ) -> None:
        self.peer = peer
        self.hello = hello
        self._sock = sock
        self._outgoing = outgoing
        self._add_outgoing = outgoing.add
        self._message_bytes_max = message_bytes_max
        self._outgoing_bytes_max = outgoing_bytes_max
        self._attend = attend
        self._lock = threading.Lock()
        self._attended = False
        self._blocked = False
        self._reason: str | None = None
        # What follows belongs to the server's thread.
        self.decoder = decoder
        self.process, self.link = process, link
        """How regularly the task's process is heard, and its host."""
        self.fell_silent = False
        """It was closed because its process or its host was not heard any more."""
        self.frames_at_last_heartbeat = -1
        self.watches_writable = False

    def __repr__(self) -> str:
        state = "open" if self._reason is None else f"closed: {self._reason}"
        return f"<Connection {self.peer} {state}>"

    @property
    def sock(self) -> Stream:
        """The socket, for the server's thread alone."""
        return self._sock

    @property
    def closed_reason(self) -> str | None:
        """The reason why this side ended the connection, or None while it is open."""
        return self._reason

    @property
    def waiting_bytes(self) -> int:
        """Bytes that were sent by callers and are not yet with the operating system."""
        return self._outgoing.waiting_bytes

    def put(self, message: Message) -> bool:
        """Add a message to the next frame; the caller promises a `flush` (or another `send`) soon.

        Returns False when the connection is closed: the message is dropped, and `lost` reports the
        reason. Raises `MessageNotPlain` and `MessageTooLarge`; then the connection stays as it was.
        """
        return self._add(pack_message(message, self._message_bytes_max), 1)

    def put_many(self, messages: Iterable[Message]) -> bool:
        """Add messages, in order, all or none of them; otherwise like `put`."""
        for piece in pack_messages(list(messages), self._message_bytes_max):
            if not self._add(piece.data, piece.count):
                return False
        return self._reason is None

    def send(self, message: Message) -> bool:
        """Like `put`, and the server's thread writes it as soon as it gets to run, with all that
        waits by then.
        """
        if not self.put(message):
            return False
        self._ask_for_attention()
        return True

    def send_many(self, messages: Iterable[Message]) -> bool:
        """Like `put_many`, followed by `flush`."""
        return self.put_many(messages) and self.flush()

    def flush(self) -> bool:
        """Write what waits, on this thread as far as the socket takes it; False when the connection
        is closed.
        """
        with self._lock:
            if self._reason is None and not self._blocked:
                self._write()
            return self._reason is None

    def close(self, reason: str) -> None:
        """End the connection: say `reason` to the task if the socket takes it, and refuse whatever
        it still sends.

        Idempotent; the first reason counts. `lost` follows on the server's thread. No `received`
        follows, except for a batch that the server's thread is handing over at this moment. A task
        may miss messages sent immediately before: let it close first where that matters.
        """
        with self._lock:
            if self._reason is not None:
                return
            self._reason = reason
            with contextlib.suppress(OSError):
                self._outgoing.add_farewell(reason)
                self._outgoing.write_to(self._sock)
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)
        self._ask_for_attention()

    def _add(self, data: bytes | memoryview, count: int) -> bool:
        with self._lock:
            if self._reason is not None:
                return False
            if self._add_outgoing(data, count) < FRAME_BYTES_TARGET:
                return True
            if not self._blocked:
                self._write()
            waiting_bytes = self._outgoing.waiting_bytes
            # A message that is larger than the bound by itself may be sent when nothing else waits.
            if waiting_bytes - len(data) <= self._outgoing_bytes_max:
                return self._reason is None
        self.close(
            f"{waiting_bytes} bytes wait for a task that does not read them fast enough; "
            f"outgoing_bytes_max is {self._outgoing_bytes_max}. The task is stuck, stopped, or the "
            "driver sends faster than it works."
        )
        return False

    def _write(self) -> None:
        """Write, with the lock held; a broken connection is left to the server's thread."""
        try:
            self._blocked = not self._outgoing.write_to(self._sock)
        except OSError as error:
            self._reason = f"the connection broke while writing: {error}"
        if self._blocked or self._reason is not None:
            self._attended = True
            self._attend(self)

    def _ask_for_attention(self) -> None:
        if not self._attended:
            self._attended = True
            self._attend(self)

    # What follows is called by the server's thread alone.

    def settle(self) -> bool:
        """Write what waits; True when the server should watch for the socket to become writable."""
        with self._lock:
            self._attended = False
            if self._reason is None:
                try:
                    self._blocked = not self._outgoing.write_to(self._sock)
                except OSError as error:
                    self._reason = f"the connection broke while writing: {error}"
            return self._blocked and self._reason is None

    def beat(self) -> None:
        """Send a heartbeat, unless frames left since the last one or others still wait."""
        with self._lock:
            made = self._outgoing.frames_made
            if self._reason is None and made == self.frames_at_last_heartbeat and not self._blocked:
                self._outgoing.add_heartbeat()
                self._write()
            self.frames_at_last_heartbeat = self._outgoing.frames_made

    def dispose(self, reason: str) -> str:
        """Free the socket, and what waits in both directions; returns the reason that counts."""
        self.decoder.forget()
        with self._lock:
            if self._reason is None:
                self._reason = reason
            self._outgoing.forget()
            self._sock.close()
            return self._reason


class Listener(Protocol):
    """The driver's part in its tasks' messages; all three are called on the server's thread.

    A call that raises is logged and closes that connection. None of them may block.
    """

    def connected(self, connection: Connection, hello: dict[str, Any]) -> None:
        """A task has authenticated itself and said hello."""

    def received(self, connection: Connection, messages: list[list[Any]]) -> None:
        """A task's messages, in the order sent: one whole frame of them."""

    def lost(self, connection: Connection, reason: str) -> None:
        """The connection has ended; exactly once for each call of `connected`, also one that
        raised.
        """
