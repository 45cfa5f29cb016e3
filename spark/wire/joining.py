"""A task's way to the driver: connected, private where the driver has a certificate, proved both
ways.

Decides what a task is told where it cannot come in. Leaves to `handshake` what is proved, to
`private_stream` how it is hidden, and the channel to `client`. Runs on the thread that connects.
"""

from __future__ import annotations

import hmac
import select
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from epochgate.spark.wire.errors import AuthenticationFailed, CannotConnect, HandshakeTimedOut
from epochgate.spark.wire.handshake import (
    GREETING_BYTES,
    VERDICT_BYTES,
    SessionKeys,
    TaskHandshake,
    check_magic,
)
from epochgate.spark.wire.listening import addresses_of, connected_to, peer_name, tune
from epochgate.spark.wire.stream import Stream

HANDSHAKE_TIMEOUT_S: Final = 5.0


@contextmanager
def joined(
    address: tuple[str, int], key: bytes, certificate: bytes | None, timeout_s: float
) -> Iterator[tuple[Stream, SessionKeys]]:
    """A connection that the driver has let in; closed again where the block raises.

    Raises `CannotConnect`, `HandshakeTimedOut`, `AuthenticationFailed`, `ProtocolMismatch`.
    """
    sock = _connected_socket(address, timeout_s)
    try:
        tune(sock)
        joining = _Joining(sock, peer_name(address), min(timeout_s, HANDSHAKE_TIMEOUT_S))
        if certificate is not None:
            joining.make_private(certificate)
        yield joining.stream, joining.prove(key)
    except OSError as error:
        sock.close()
        raise CannotConnect(
            f"the driver at {peer_name(address)} ended the connection during the handshake: "
            f"{error}."
        ) from error
    except BaseException:
        sock.close()
        raise


def _connected_socket(address: tuple[str, int], timeout_s: float) -> socket.socket:
    try:
        return connected_to(addresses_of(*address), timeout_s)
    except (OSError, OverflowError, UnicodeError) as error:
        raise CannotConnect(
            f"cannot reach the driver at {peer_name(address)} within {timeout_s} s: {error}. Check "
            "that the driver still runs, that spark.driver.host is an address the executors can "
            "reach, and that no firewall closes the port."
        ) from error


class _Joining:
    """A connection on its way in, until a moment on the monotonic clock."""

    def __init__(self, sock: socket.socket, driver: str, timeout_s: float) -> None:
        self._sock, self._driver = sock, driver
        self._deadline_s = time.monotonic() + timeout_s
        self._readiness = select.poll()
        self.stream: Stream = sock

    def make_private(self, certificate: bytes) -> None:
        """Encrypt what follows; what listens there must hold the key of this very certificate."""
        # A restarted task waits for each import, and on a plain wire it needs no TLS.
        from epochgate.spark.wire.certificate import task_context
        from epochgate.spark.wire.private_stream import PrivateStream

        stream = PrivateStream(self._sock, task_context(certificate), is_driver=False)
        while True:
            try:
                stream.handshake()
                break
            except BlockingIOError:
                self._wait(select.POLLIN)
        if not hmac.compare_digest(stream.certificate() or b"", certificate):
            raise AuthenticationFailed(
                "what listens there shows a certificate that this run's has signed, and not its "
                "own: a program stands between this task and the driver."
            )
        self.stream = stream

    def prove(self, key: bytes) -> SessionKeys:
        """Show the driver the key, and let it show it."""
        handshake = TaskHandshake(key)
        answer = memoryview(handshake.answer(self._read(GREETING_BYTES, is_greeting=True)))
        while answer:
            try:
                answer = answer[self.stream.send(answer) :]
            except BlockingIOError:
                self._wait(select.POLLOUT)
        return handshake.accept(self._read(VERDICT_BYTES, is_greeting=False))

    def _read(self, size: int, *, is_greeting: bool) -> bytes:
        found = bytearray()
        piece = bytearray(size)
        while len(found) < size:
            try:
                with memoryview(piece) as view:
                    read_bytes = self.stream.recv_into(view[: size - len(found)])
            except BlockingIOError:
                self._wait(select.POLLIN)
                continue
            if not read_bytes:
                raise ConnectionAbortedError("it closed the connection")
            found += piece[:read_bytes]
            if is_greeting:
                check_magic(bytes(found[:8]), "what listens there")
        return bytes(found)

    def _wait(self, event: int) -> None:
        self._readiness.register(self._sock, event)
        remaining_s = self._deadline_s - time.monotonic()
        if remaining_s <= 0 or not self._readiness.poll(max(1, int(remaining_s * 1000))):
            raise HandshakeTimedOut(
                f"{self._driver} accepted the connection but did not complete the handshake in "
                "time: the driver is overloaded or stopped, or another program listens there."
            )
