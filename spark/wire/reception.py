"""The doors for connections: the listening sockets, and those that still have to prove themselves.

Decides how many strangers are held (the oldest goes first) and for how long. By default they take
at most half of the descriptors that the process may open, so that a flood of them leaves the driver
its own files and the connections of its tasks. Leaves to `arrivals` who is let in, and to the
server what follows. Runs on the server's thread.
"""

from __future__ import annotations

import logging
import resource
import selectors
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from epochgate.spark.wire.arrivals import HELLO_BYTES_MAX, Admission, Arrival, RefusalLog
from epochgate.spark.wire.errors import HandshakeTimedOut, WireError
from epochgate.spark.wire.listening import peer_name, tune

if TYPE_CHECKING:
    from epochgate.spark.wire.certificate import Credentials
    from epochgate.spark.wire.stream import Stream

ARRIVALS_MAX: Final = 1024
HANDSHAKES_PER_TURN: Final = 32
"""Of TLS, which cost half a millisecond each: after these, tasks are read from again."""
_ACCEPTS_PER_TURN: Final = 64
_log = logging.getLogger("epochgate.spark.wire")


def arrivals_max_by_default() -> int:
    """Return how many connections may be in their handshake, by the soft limit of descriptors."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return ARRIVALS_MAX if soft == resource.RLIM_INFINITY else max(1, min(ARRIVALS_MAX, soft // 2))


class Reception:
    """Accepts connections on `listening` and hands over those that are let in."""

    def __init__(
        self,
        listening: list[socket.socket],
        selector: selectors.BaseSelector,
        *,
        key: bytes,
        credentials: Credentials | None,
        frame_bytes_max: int,
        message_bytes_max: int,
        handshake_timeout_s: float,
        arrivals_max: int,
        on_refused: Callable[[str, WireError], None] | None,
        admit: Callable[[Arrival, Admission], None],
    ) -> None:
        self._listening, self._selector = listening, selector
        self._key, self._credentials = key, credentials
        self._bytes_max = frame_bytes_max, message_bytes_max
        self._handshake_timeout_s, self._arrivals_max = handshake_timeout_s, arrivals_max
        self._on_refused, self._admit = on_refused, admit
        self._arrivals: dict[Arrival, None] = {}
        self._read_view = memoryview(bytearray(HELLO_BYTES_MAX))
        self._handshakes_left = HANDSHAKES_PER_TURN
        self._is_paused = False
        self._refusals = RefusalLog()
        self._look_out()

    def begin_turn(self) -> None:
        """A turn of the server begins: go on with some more handshakes."""
        self._handshakes_left = HANDSHAKES_PER_TURN

    def watch(self, now_s: float) -> None:
        """Turn away those whose time is over, and accept again after a pause."""
        for arrival in [arrival for arrival in self._arrivals if arrival.deadline_s <= now_s]:
            self._turn_away(
                arrival,
                HandshakeTimedOut(
                    f"no complete handshake within {self._handshake_timeout_s} s; probably not a "
                    "task of this run."
                ),
            )
        if self._is_paused:
            self._is_paused = False
            self._look_out()

    def close(self) -> None:
        """Free the port and everything that waits at it."""
        for sock in (*self._listening, *(arrival.sock for arrival in self._arrivals)):
            sock.close()
        self._arrivals.clear()

    def _look_out(self) -> None:
        for sock in self._listening:
            self._selector.register(sock, selectors.EVENT_READ, partial(self._accept, sock))

    def _accept(self, listening: socket.socket, ready: int) -> None:
        if self._is_paused:
            return
        for _ in range(_ACCEPTS_PER_TURN):
            try:
                sock, address = listening.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                # Out of descriptors: the socket stays readable, so look away until the next watch.
                _log.error("cannot accept connections for now: %s (see ulimit -n)", error)
                self._is_paused = True
                for each in self._listening:
                    self._selector.unregister(each)
                return
            self._welcome(sock, peer_name(address))

    def _welcome(self, sock: socket.socket, peer: str) -> None:
        deadline_s = time.monotonic() + self._handshake_timeout_s
        try:
            tune(sock)
            stream: Stream = sock if self._credentials is None else self._credentials.private(sock)
            arrival = Arrival(stream, peer, self._key, *self._bytes_max, deadline_s)
            if self._credentials is None:
                arrival.greet()
        except OSError:
            sock.close()
            return
        if len(self._arrivals) >= self._arrivals_max:
            oldest = next(iter(self._arrivals))
            self._turn_away(
                oldest, HandshakeTimedOut("made room for newer connections in their handshake.")
            )
        self._arrivals[arrival] = None
        self._selector.register(stream, selectors.EVENT_READ, partial(self._receive, arrival))

    def _receive(self, arrival: Arrival, ready: int) -> None:
        if arrival not in self._arrivals:
            return
        if not arrival.is_greeted:  # its TLS handshake is under way
            if not self._handshakes_left:
                return
            self._handshakes_left -= 1
        try:
            admission = arrival.read(self._read_view)
        except BlockingIOError:
            return
        except WireError as error:
            self._turn_away(arrival, error)
        except OSError as error:
            self._turn_away(
                arrival, WireError(f"the connection broke during the handshake: {error}")
            )
        else:
            if admission is not None:
                del self._arrivals[arrival]
                self._selector.unregister(arrival.sock)
                self._admit(arrival, admission)

    def _turn_away(self, arrival: Arrival, error: WireError) -> None:
        del self._arrivals[arrival]
        self._selector.unregister(arrival.sock)
        arrival.sock.close()
        self._refusals.add(arrival.peer, error)
        if self._on_refused is not None:
            try:
                self._on_refused(arrival.peer, error)
            except Exception:  # noqa: BLE001  the caller's code must not end the service
                _log.exception("on_refused raised")
