"""The part of a socket that the wire uses, so that a private stream can stand in its place."""

from __future__ import annotations

from typing import Protocol


class Stream(Protocol):
    """The part of a socket that the wire uses."""

    def fileno(self) -> int:
        """The descriptor to wait for."""

    def send(self, data: bytes | memoryview, /) -> int:
        """Write some of `data`; raises BlockingIOError when none can be written now. Then the next
        call begins with the same bytes.
        """

    def recv_into(self, buffer: bytearray | memoryview, /) -> int:
        """Read; 0 at the end. Raises BlockingIOError when nothing can be read now."""

    def getsockopt(self, level: int, option: int, size: int, /) -> bytes:
        """Ask the operating system about the connection."""

    def shutdown(self, how: int, /) -> None:
        """End the connection."""

    def close(self) -> None:
        """Free the descriptor."""
