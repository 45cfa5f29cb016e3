"""How many bytes of events that a coordinator has sent to an attempt may be unconfirmed.

Decides whether another may be sent, before it is an event of the queue: what is over the bound is
refused where it is sent, so that a coordinator which sends faster than its task takes cannot fill
the driver's memory, and so that no event is left out without an error. An event by itself may be
larger than the bound.

An event counts for its bytes in msgpack and `EVENT_BYTES`. To weigh each would take as long as to
send it: one of the same type and length as the event before counts as much, and each sixteenth is
weighed again. Leaves to the gateway where a sent event goes. Any thread
sends; what is over is given back on the queue's thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from epochgate.errors import EpochgateError
from epochgate.runtime.api.packing import PACK_ERRORS, PACKERS
from epochgate.runtime.api.send_future import SendFuture, Together

EVENT_BYTES: Final = 256
"""Of an event's future and places in queues, whatever it holds."""
WEIGHED_EVERY: Final = 16
SIZED: Final = frozenset((bytes, str, list, dict, Together))


class GatewayFull(EpochgateError):
    """Too many bytes of events wait for the confirmation of their attempt; nothing was sent."""


class SendWindow:
    """The window of one attempt's gateway: the bytes that were sent, and those that are over."""

    __slots__ = (
        "_bytes_max",
        "_event_bytes",
        "_is_sized",
        "_kind",
        "_length",
        "_lock",
        "_sent",
        "_subtask",
        "_unweighed",
        "call_back",
        "over",
        "waiting",
    )

    def __init__(self, subtask: int, bytes_max: int, call_back: Callable[..., None]) -> None:
        self._subtask, self._bytes_max, self.call_back = subtask, bytes_max, call_back
        self._lock = threading.Lock()
        self._kind: Any = type(None)
        self._is_sized = False
        self._length = self._event_bytes = self._unweighed = 0
        """Of the event that was weighed last, and how many more may count as much as it did."""
        self._sent = 0
        self.over = 0
        """Written by futures that are done, on the queue's thread alone."""
        self.waiting: list[SendFuture] = []

    def future_of(self, event: Any) -> SendFuture:
        """Make the future of an event that is counted until it is done. Raises GatewayFull."""
        self._unweighed -= 1
        if (
            self._unweighed < 0
            or type(event) is not self._kind
            or (self._is_sized and len(event) != self._length)
        ):
            self._weigh(event)
        event_bytes = self._event_bytes
        # Without a lock, which costs a tenth of a send: no other thread runs between these lines.
        sent = self._sent + event_bytes
        if sent - self.over > self._bytes_max and self._sent != self.over:
            raise self._full(event_bytes, self._sent - self.over)
        self._sent = sent
        return SendFuture(event, self, event_bytes)

    def _weigh(self, event: Any) -> None:
        kind = self._kind = type(event)
        self._unweighed, self._is_sized = WEIGHED_EVERY - 1, kind in SIZED
        self._length = len(event) if self._is_sized else 0
        try:
            packed_bytes = self._length if kind is bytes else len(PACKERS.packer.pack(event))
        except PACK_ERRORS:
            packed_bytes = 0  # the transport, which packs it, says what is wrong with it
        self._event_bytes = EVENT_BYTES + packed_bytes

    def _full(self, event_bytes: int, unconfirmed: int) -> GatewayFull:
        return GatewayFull(
            f"the event of {event_bytes} bytes for subtask {self._subtask} was not sent: "
            f"{unconfirmed} bytes of events wait for the task, and unconfirmed_bytes_max is "
            f"{self._bytes_max}. Send it when SubtaskGateway.when_room() is done, or give the job "
            "a larger unconfirmed_bytes_max"
        )

    def when_room(self) -> SendFuture:
        """Make a future that is done when at most half of the bound waits."""
        future = SendFuture(None, self)
        with self._lock:
            self.waiting.append(future)
        self.wake()
        return future

    def wake(self) -> None:
        """Complete the futures that wait for room, if there is."""
        with self._lock:
            if 2 * (self._sent - self.over) > self._bytes_max:
                return
            ready, self.waiting = self.waiting, []
        for future in ready:
            future.complete()
