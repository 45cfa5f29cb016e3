"""The bytes that one side still has to write: packed messages gather, and leave as few frames as
possible.

Decides how messages are coalesced: those that wait at the moment of writing form one frame, up to
about 64 KiB; a larger message forms a frame of its own, and one that is larger than a part is
divided when its turn to be written has come. Frames of 256 KiB brought no clear gain in throughput
when measured, and keep the reader waiting for longer. Leaves the socket's life and the bound on
waiting bytes to its owner, whose lock guards every call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from epochgate.spark.wire.frames import (
    ENVELOPE_BYTES,
    PART_BYTES,
    PART_HEADER,
    PREFIX_BYTES,
    batch_header,
    batch_payload,
    farewell_payload,
    framed_bytes,
    parts_of,
    sealed_frame,
)
from epochgate.spark.wire.sealing import FrameSeal
from epochgate.spark.wire.stream import Stream

FRAME_BYTES_TARGET: Final = 64 * 1024
TURN_BYTES: Final = 4 * 1024 * 1024
"""Written at once, so that a long message does not keep a thread from other connections."""


class Outgoing:
    """The outgoing half of one connection; not thread-safe, its owner holds a lock."""

    def __init__(self, seal: FrameSeal, frame_bytes_max: int) -> None:
        self._seal = seal
        payload_bytes_max = frame_bytes_max - ENVELOPE_BYTES
        self._gather_bytes_max = min(FRAME_BYTES_TARGET, payload_bytes_max)
        self._part_bytes = min(PART_BYTES, payload_bytes_max - PART_HEADER.size)
        self._pieces: list[bytes | memoryview] = []
        self._count = 0
        self._gathered_bytes = 0
        self._payloads: deque[bytes | Iterator[bytes]] = deque()
        """What is not sealed yet; an iterator makes the parts of a long one."""
        self._frame: bytes | memoryview = b""
        """The rest of the frame that is being written."""
        self._waiting_bytes = 0
        self.frames_made = 0

    @property
    def waiting_bytes(self) -> int:
        """Bytes that are not yet with the operating system."""
        return self._gathered_bytes + self._waiting_bytes

    def add(self, data: bytes | memoryview, count: int) -> int:
        """Add `count` packed messages; returns the bytes now waiting."""
        gathered_bytes = self._gathered_bytes + len(data)
        if gathered_bytes > self._gather_bytes_max and self._count:
            self._make_frame()
            gathered_bytes = len(data)
        self._pieces.append(data)
        self._count += count
        self._gathered_bytes = gathered_bytes
        return gathered_bytes + self._waiting_bytes

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
        block, or others should have their turn.

        Raises OSError when the connection is broken.
        """
        if self._count:
            self._make_frame()
        turn_bytes = TURN_BYTES
        while self._frame or self._payloads:
            if not self._frame:
                self._frame = self._next_frame()
                continue
            if turn_bytes <= 0:
                return False
            try:
                written = sock.send(self._frame)
            except BlockingIOError:
                return False
            self._waiting_bytes -= written
            turn_bytes -= written
            self._frame = b"" if written == len(self._frame) else memoryview(self._frame)[written:]
        return True

    def forget(self) -> None:
        """Free what waits: none of it can be written any more."""
        self._payloads.clear()
        self._pieces, self._frame = [], b""
        self._count = self._gathered_bytes = self._waiting_bytes = 0

    def _next_frame(self) -> bytes:
        """Seal the next payload, or the next part of it; nothing after the last part."""
        payload = self._payloads[0]
        if type(payload) is bytes:
            self._payloads.popleft()
            return sealed_frame(payload, self._seal)
        part = next(payload, None)  # type: ignore[arg-type]  # it is an iterator
        if part is None:
            self._payloads.popleft()
            return b""
        return sealed_frame(part, self._seal)

    def _make_frame(self) -> None:
        pieces, count, payload_bytes = self._pieces, self._count, self._gathered_bytes
        self._pieces, self._count, self._gathered_bytes = [], 0, 0
        if payload_bytes <= self._part_bytes:
            self._add_frame(batch_payload(pieces, count))
            return
        payload = (batch_header(count), *pieces)
        self._payloads.append(parts_of(payload, self._part_bytes))
        self._waiting_bytes += framed_bytes(payload, self._part_bytes)
        self.frames_made += 1

    def _add_frame(self, payload: bytes) -> None:
        self._payloads.append(payload)
        self._waiting_bytes += PREFIX_BYTES + len(payload)
        self.frames_made += 1
