"""What one side still has to write: packed messages gather, and leave as few frames as possible.

Decides how messages are coalesced: those that wait at the moment of writing form one frame, up to
about 64 KiB; a larger message forms a frame of its own. Frames of 256 KiB brought no clear gain in
throughput when measured, and keep the reader waiting for longer. Leaves the socket's life and the
bound on waiting bytes to its owner, whose lock guards every call.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from epochgate.spark.wire.frames import (
    ENVELOPE_BYTES,
    batch_payload,
    farewell_payload,
    sealed_frame,
)
from epochgate.spark.wire.sealing import FrameSeal
from epochgate.spark.wire.stream import Stream

FRAME_BYTES_TARGET: Final = 64 * 1024


class Outgoing:
    """The outgoing half of one connection; not thread-safe, its owner holds a lock."""

    def __init__(self, seal: FrameSeal, frame_bytes_max: int) -> None:
        self._seal = seal
        self._gather_bytes_max = min(FRAME_BYTES_TARGET, frame_bytes_max - ENVELOPE_BYTES)
        self._pieces: list[bytes | memoryview] = []
        self._count = 0
        self._gathered_bytes = 0
        self._frames: deque[bytes | memoryview] = deque()
        self._framed_bytes = 0
        self.frames_made = 0

    @property
    def waiting_bytes(self) -> int:
        """Bytes that are not yet with the operating system."""
        return self._gathered_bytes + self._framed_bytes

    def add(self, data: bytes | memoryview, count: int) -> int:
        """Add `count` packed messages; returns the bytes now waiting."""
        gathered_bytes = self._gathered_bytes + len(data)
        if gathered_bytes > self._gather_bytes_max and self._count:
            self._make_frame()
            gathered_bytes = len(data)
        self._pieces.append(data)
        self._count += count
        self._gathered_bytes = gathered_bytes
        return gathered_bytes + self._framed_bytes

    def add_heartbeat(self) -> None:
        """Add a frame without messages."""
        self._add_frame(batch_payload((), 0))

    def add_farewell(self, reason: str) -> None:
        """Add the frame that says why this side closes."""
        if self._count:
            self._make_frame()
        self._add_frame(farewell_payload(reason))

    def write_to(self, sock: Stream) -> bool:
        """Write what waits, to a non-blocking socket; True when all is written, False when it would
        block.

        Raises OSError when the connection is broken.
        """
        if self._count:
            self._make_frame()
        frames = self._frames
        while frames:
            frame = frames[0]
            try:
                written = sock.send(frame)
            except BlockingIOError:
                return False
            self._framed_bytes -= written
            if written == len(frame):
                frames.popleft()
            else:
                frames[0] = memoryview(frame)[written:]
        return True

    def _make_frame(self) -> None:
        payload = batch_payload(self._pieces, self._count)
        self._pieces = []
        self._count = 0
        self._gathered_bytes = 0
        self._add_frame(payload)

    def _add_frame(self, payload: bytes) -> None:
        frame = sealed_frame(payload, self._seal)
        self._frames.append(frame)
        self._framed_bytes += len(frame)
        self.frames_made += 1
