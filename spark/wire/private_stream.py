"""TLS over a non-blocking socket, with the calls of a socket, so that the wire reads and writes the
one like the other.

Decides nothing about who may speak: `certificate` does, and behind it `handshake`. The handshake
runs by itself in the first calls, which raise BlockingIOError until it is over; a peer whose part
of it is longer than any task's is refused. All encryption happens in memory (`ssl.SSLObject`), a
lock guards it, and no call waits: an `SSLSocket` may not be read on one thread and written on
another at the same time.

Runs on whichever thread reads or writes.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from typing import Final, cast

from epochgate.spark.wire.errors import AuthenticationFailed, ProtocolMismatch, WireError

RECORD_BYTES_MAX: Final = 17 * 1024
"""Of a TLS record on the network: 16 KiB, and what stands around them."""
HANDSHAKE_BYTES_MAX: Final = 16 * 1024
_WRITE_BYTES: Final = 256 * 1024
_READ_BYTES: Final = 256 * 1024
_UNSENT_BYTES_MAX: Final = 64 * 1024
"""Of answers to the peer's own TLS messages, while it does not read."""


class PrivateStream:
    """One side of a TLS connection over `sock`, which is non-blocking and belongs to it."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, *, is_driver: bool) -> None:
        self._sock = sock
        self._arriving, self._leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._arriving, self._leaving, server_side=is_driver)
        self._lock = threading.Lock()
        self._is_open = False
        self._handshake_bytes = 0
        self._unsent = memoryview(b"")
        self._accepted_bytes = 0

    @property
    def is_open(self) -> bool:
        """True if the TLS handshake is over."""
        return self._is_open

    def fileno(self) -> int:
        """The descriptor to wait for."""
        return self._sock.fileno()

    def certificate(self) -> bytes | None:
        """The peer's, in DER."""
        return self._tls.getpeercert(binary_form=True)

    def handshake(self) -> None:
        """Go on with the TLS handshake; BlockingIOError until it is over, which the first read or
        write raises as well.
        """
        with self._lock:
            self._shake_hands()

    def send(self, data: bytes | memoryview, /) -> int:
        """Encrypt and write; bytes count when all that they became is with the operating system."""
        with self._lock:
            self._shake_hands()
            if not self._accepted_bytes:
                self._accepted_bytes = self._tls.write(data[:_WRITE_BYTES])
            self._write()
            accepted_bytes, self._accepted_bytes = self._accepted_bytes, 0
            return accepted_bytes

    def recv_into(self, buffer: bytearray | memoryview, /) -> int:
        """Read and decrypt. A buffer of two records or more leaves nothing behind that its socket
        would not tell of; with a smaller one, read until BlockingIOError.
        """
        with self._lock, memoryview(buffer) as view:
            self._shake_hands()
            read_bytes = self._decrypted(view)
            if not read_bytes:
                is_over = not self._fill(min(_READ_BYTES, len(view) - RECORD_BYTES_MAX))
                read_bytes = self._decrypted(view)
                if not (read_bytes or is_over):
                    raise BlockingIOError
            return read_bytes

    def getsockopt(self, level: int, option: int, size: int, /) -> bytes:
        """Ask the operating system about the connection below."""
        return self._sock.getsockopt(level, option, size)

    def shutdown(self, how: int, /) -> None:
        """End the connection below; the wire's own farewell says why."""
        self._sock.shutdown(how)

    def close(self) -> None:
        """Free the socket."""
        self._sock.close()

    # With the lock held.

    def _shake_hands(self) -> None:
        while not self._is_open:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._write()
                if not self._fill(HANDSHAKE_BYTES_MAX - self._handshake_bytes):
                    raise ConnectionAbortedError(
                        "it closed the connection during the TLS handshake"
                    ) from None
            except ssl.SSLError as error:
                with contextlib.suppress(OSError):
                    self._write()  # the alert that TLS has made, for the peer to name
                raise _explained(error) from error
            else:
                self._is_open = True
                self._answer()

    def _answer(self) -> None:
        """Write what TLS itself says to the peer, as far as that reads."""
        with contextlib.suppress(BlockingIOError):
            self._write()
        if self._leaving.pending > _UNSENT_BYTES_MAX:
            raise ConnectionAbortedError("TLS: it asks for more answers than it reads")

    def _fill(self, most: int) -> bool:
        """Take what has arrived; False at the end."""
        data = self._sock.recv(max(most, RECORD_BYTES_MAX) if self._is_open else max(most, 1))
        if not data:
            return False
        self._arriving.write(data)
        if not self._is_open:
            self._handshake_bytes += len(data)
            if self._handshake_bytes >= HANDSHAKE_BYTES_MAX:
                raise ProtocolMismatch(
                    f"its TLS handshake is longer than {HANDSHAKE_BYTES_MAX} bytes, and no task's "
                    "is: another program uses this port."
                )
        return True

    def _decrypted(self, view: memoryview) -> int:
        filled = 0
        try:
            while filled < len(view):
                buffer = cast(bytearray, view[filled:])
                read_bytes = cast(int, self._tls.read(len(buffer), buffer))
                if not read_bytes:
                    break
                filled += read_bytes
        except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):
            pass  # all that has arrived whole is read
        except ssl.SSLError as error:
            if not filled:
                raise ConnectionAbortedError(f"TLS: {_reason_of(error)}") from error
        if self._leaving.pending:
            self._answer()
        return filled

    def _write(self) -> None:
        """Write what is encrypted; raises BlockingIOError while some of it is left."""
        while self._unsent or self._leaving.pending:
            if not self._unsent:
                self._unsent = memoryview(self._leaving.read())
            self._unsent = self._unsent[self._sock.send(self._unsent) :]


def _explained(error: ssl.SSLError) -> WireError:
    reason = _reason_of(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        return AuthenticationFailed(
            "what listens there has another certificate than this run's driver. Either the address "
            "is that of an earlier run or of another job, or a program stands between this task "
            "and the driver."
        )
    if "UNKNOWN_CA" in reason or "BAD_CERTIFICATE" in reason:
        return AuthenticationFailed(
            "it does not take this run's certificate for its driver's: it belongs to another run."
        )
    return ProtocolMismatch(
        f"it does not speak the TLS 1.3 that epochgate's private wire begins with ({reason}): "
        "probably another program, or one with a different setting of `wire`."
    )


def _reason_of(error: ssl.SSLError) -> str:
    return error.reason or str(error)
