"""The memory that frames which have not arrived whole may take, over all connections together.

Decides which connections may have a large frame under way, or the parts of a large batch: as many
as fit, in the order in which they began; the others are not read from, so that the network holds
what they send. A batch that is larger than all places together is let in when no other has a place.
A connection that keeps its place for too long, for its size, while others wait gives it up with its
life. Small frames need no place: each connection holds less than `PLACELESS_BYTES_MAX` of one.
Leaves sockets to the server, on whose thread it runs.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from epochgate.spark.wire.frames import FRAME_BYTES_MAX

PLACELESS_BYTES_MAX: Final = 256 * 1024
C = TypeVar("C")


class IncomingFrames(Generic[C]):
    """The large frames under way, and the connections that wait for a place."""

    def __init__(self, bytes_max: int) -> None:
        self._free_bytes = bytes_max
        self._places: dict[C, tuple[int, float]] = {}
        """Connection -> the bytes of its frame and since when it has the place, oldest first."""
        self._waiting: dict[C, int] = {}
        self._paused: set[C] = set()

    def is_waiting(self, connection: C) -> bool:
        """Return whether the connection must not be read from."""
        return connection in self._waiting or connection in self._paused

    def pause(self, connection: C) -> None:
        """Let the connection not be read from, whatever its frames are."""
        self._paused.add(connection)

    def resume(self, connection: C) -> None:
        """Take back `pause`."""
        self._paused.discard(connection)

    def has_place(self, connection: C) -> bool:
        """Return whether a large frame of the connection is under way."""
        return connection in self._places

    def enter(self, connection: C, frame_bytes: int, now_s: float) -> None:
        """Give the frame under way a place, or let its connection wait for one."""
        if frame_bytes < PLACELESS_BYTES_MAX or connection in self._places:
            return
        if self._waiting or not self._fits(frame_bytes):
            self._waiting[connection] = frame_bytes
        else:
            self._take(connection, frame_bytes, now_s)

    def leave(self, connection: C, now_s: float) -> list[C]:
        """Free what the connection has; those that may be read from again."""
        self._waiting.pop(connection, None)
        self._free_bytes += self._places.pop(connection, (0, 0.0))[0]
        admitted = []
        for other, frame_bytes in list(self._waiting.items()):
            if not self._fits(frame_bytes):
                break
            del self._waiting[other]
            self._take(other, frame_bytes, now_s)
            admitted.append(other)
        return admitted

    def overdue(self, now_s: float, patience_s: float) -> list[C]:
        """Those that have had their places for more than `patience_s` for each
        `FRAME_BYTES_MAX`, while others wait.
        """
        if not self._waiting:
            return []
        return [
            held
            for held, (frame_bytes, taken_s) in self._places.items()
            if now_s - taken_s > patience_s * max(1.0, frame_bytes / FRAME_BYTES_MAX)
        ]

    def _fits(self, frame_bytes: int) -> bool:
        return frame_bytes <= self._free_bytes or not self._places

    def _take(self, connection: C, frame_bytes: int, now_s: float) -> None:
        self._free_bytes -= frame_bytes
        self._places[connection] = (frame_bytes, now_s)
