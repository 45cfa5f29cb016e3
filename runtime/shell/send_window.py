"""How many bytes of events that a coordinator has sent to an attempt may be unconfirmed.

Decides whether another may be sent, before it is an event of the queue: what is over the bound is
refused where it is sent, so that a coordinator which sends faster than its task takes cannot fill
the driver's memory, and so that no event is left out without an error. An event by itself may be
larger than the bound. Leaves to the gateway what becomes of an event that was sent. Any thread
sends; what is over is given back on the queue's thread.
"""

from __future__ import annotations

import threading
from typing import Any, Final

from epochgate.errors import EpochgateError
from epochgate.runtime.api.packing import PACK_ERRORS, PACKERS
from epochgate.runtime.api.send_future import SendFuture

EVENT_BYTES: Final = 256
"""Of an event's future and places in queues, whatever it holds."""


class GatewayFull(EpochgateError):
    """Too many bytes of events wait for the confirmation of their attempt; nothing was sent."""


class SendWindow:
    """The window of one attempt's gateway."""

    def __init__(self, subtask: int, bytes_max: int) -> None:
        self._subtask, self._bytes_max = subtask, bytes_max
        self._lock = threading.Lock()
        self._bytes = 0
        self._waiting: list[SendFuture] = []

    def future_of(self, event: Any) -> SendFuture:
        """Make the future of an event that is counted until it is done. Raises GatewayFull."""
        event_bytes = weight(event)
        with self._lock:
            if self._bytes and self._bytes + event_bytes > self._bytes_max:
                raise GatewayFull(
                    f"the event of {event_bytes} bytes for subtask {self._subtask} was not sent: "
                    f"{self._bytes} bytes of events wait for the task, and unconfirmed_bytes_max "
                    f"is {self._bytes_max}. Send it when SubtaskGateway.when_room() is done, or "
                    "give the job a larger unconfirmed_bytes_max"
                )
            self._bytes += event_bytes
        return SendFuture(event, self, event_bytes)

    def give_back(self, event_bytes: int) -> None:
        """An event is confirmed, lost or turned away."""
        with self._lock:
            self._bytes -= event_bytes
            ready = self._waiting if self._has_room() else []
            if ready:
                self._waiting = []
        for future in ready:
            future.complete()

    def when_room(self) -> SendFuture:
        """Make a future that is done when at most half of the bound waits."""
        future = SendFuture(None)
        with self._lock:
            if not self._has_room():
                self._waiting.append(future)
                return future
        future.complete()
        return future

    def _has_room(self) -> bool:
        return 2 * self._bytes <= self._bytes_max


def weight(event: Any) -> int:
    """The bytes for which an event counts: its own in msgpack, and EVENT_BYTES.

    >>> weight(b"rows"), weight(["rule", 7]) - EVENT_BYTES
    (260, 7)
    """
    if type(event) in (bytes, str):
        return EVENT_BYTES + len(event)
    try:
        return EVENT_BYTES + len(PACKERS.packer.pack(event))
    except PACK_ERRORS:
        return EVENT_BYTES  # the transport, which packs it, says what is wrong with it
