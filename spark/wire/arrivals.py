"""A connection between its acceptance and its hello.

Decides, together with `handshake`, whether a peer becomes a connection: it proves the key, then its
first message must be `["hello", map]`. Until the proof nothing of it is parsed, and at most one
read of it is held; until the hello at most a short frame. Runs on the server's thread.
"""

from __future__ import annotations

import contextlib
import logging
import time
from typing import Any, Final, NamedTuple

from epochgate.spark.wire.errors import AuthenticationFailed, HelloInvalid, WireError
from epochgate.spark.wire.frames import Batch, FrameDecoder
from epochgate.spark.wire.handshake import DriverHandshake
from epochgate.spark.wire.outgoing import Outgoing
from epochgate.spark.wire.sealing import FrameSeal
from epochgate.spark.wire.stream import Stream

HELLO_BYTES_MAX: Final = 64 * 1024
_log = logging.getLogger("epochgate.spark.wire")


class Admission(NamedTuple):
    """The belongings of a peer that was let in; `messages` came in the same frame as its hello."""

    hello: dict[str, Any]
    messages: Batch
    decoder: FrameDecoder
    outgoing: Outgoing


class Arrival:
    """A peer that still has to prove itself, until `deadline_s` on the monotonic clock."""

    def __init__(
        self,
        sock: Stream,
        peer: str,
        key: bytes,
        frame_bytes_max: int,
        message_bytes_max: int,
        deadline_s: float,
    ) -> None:
        self.sock = sock
        self.peer = peer
        self.deadline_s = deadline_s
        self._handshake = DriverHandshake(key)
        self.is_greeted = False
        self._frame_bytes_max, self._message_bytes_max = frame_bytes_max, message_bytes_max
        self._decoder: FrameDecoder | None = None
        self._outgoing: Outgoing | None = None

    def greet(self) -> None:
        """Open the handshake; on a private wire `read` does, once TLS is open. Raises OSError."""
        if not self.is_greeted:
            self.sock.send(self._handshake.greeting)
            self.is_greeted = True

    def read(self, buffer: memoryview) -> Admission | None:
        """Take what has arrived; the admission once the hello is there.

        Raises what `receive` raises, WireError when the peer is gone, and OSError when the
        connection is broken, of which BlockingIOError only means that nothing more has arrived.
        """
        try:
            read_bytes = self.sock.recv_into(buffer)
        except BlockingIOError:
            self.greet()
            return None
        if read_bytes == 0:
            raise WireError("it closed the connection during the handshake.")
        self.greet()
        return self.receive(buffer[:read_bytes])

    def receive(self, data: memoryview) -> Admission | None:
        """Take arriving bytes; the admission once the hello is there.

        Raises `ProtocolMismatch`, `AuthenticationFailed` (the peer was told), `HelloInvalid`, and
        what the decoder raises; OSError when the verdict cannot be written.
        """
        if self._decoder is None or self._outgoing is None:
            remainder = self._authenticate(data)
            if self._decoder is None or self._outgoing is None:
                return None
            self._decoder.feed(remainder)
        else:
            self._decoder.feed(data)
        messages = self._decoder.next_batch()
        if messages is None:
            return None
        self._decoder.frame_bytes_max = self._frame_bytes_max
        self._decoder.message_bytes_max = self._message_bytes_max
        return Admission(_hello_of(messages), messages[1:], self._decoder, self._outgoing)

    def _authenticate(self, data: memoryview) -> bytes:
        try:
            remainder = self._handshake.receive(data)
        except AuthenticationFailed:
            with contextlib.suppress(OSError):
                self.sock.send(self._handshake.verdict)
            raise
        session = self._handshake.session
        if session is not None:
            self.sock.send(self._handshake.verdict)
            hello_bytes_max = min(HELLO_BYTES_MAX, self._frame_bytes_max)
            seal = FrameSeal(session.from_task)
            self._decoder = FrameDecoder(seal, hello_bytes_max, hello_bytes_max)
            self._outgoing = Outgoing(FrameSeal(session.from_driver), self._frame_bytes_max)
        return remainder


def _hello_of(messages: Batch) -> dict[str, Any]:
    match messages:
        case [["hello", dict() as hello], *_] if all(type(name) is str for name in hello):
            return hello
    raise HelloInvalid(
        'its first message is not ["hello", map with str keys]. '
        "Give the driver and the executors the same version of epochgate."
    )


class RefusalLog:
    """Logs who was not let in, at most once a second: garbage on the port must not fill the log."""

    def __init__(self) -> None:
        self._unlogged = 0
        self._logged_at_s = float("-inf")

    def add(self, peer: str, error: WireError | str) -> None:
        """Count one refusal, and log it unless another was logged within the last second."""
        self._unlogged += 1
        now_s = time.monotonic()
        if now_s - self._logged_at_s >= 1.0:
            _log.warning(
                "refused %d connection(s), the last from %s: %s", self._unlogged, peer, error
            )
            self._unlogged, self._logged_at_s = 0, now_s
