"""How many bytes of events that a coordinator has sent to an attempt may be unconfirmed.

Decides whether another may be sent, before it is an event of the queue: what is over the bound is
refused where it is sent, so that a coordinator which sends faster than its task takes cannot fill
the driver's memory, and so that no event is left out without an error. An event by itself may be
larger than the bound.

An event counts for its bytes in msgpack and `EVENT_BYTES`. To weigh each would take as long as to
send it: one of the same type and length as the event before counts as much, and each sixteenth is
weighed again. Each future carries the sum up to its event, so that a confirmation of many events
gives their bytes back at once. Leaves to the gateway where a sent event goes. Any thread sends;
what is over is given back on the queue's thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from epochgate.errors import EpochgateError
from epochgate.runtime.api.packing import PACK_ERRORS, PACKERS
from epochgate.runtime.api.plain_values import insist_on_plain_type
from epochgate.runtime.api.send_future import SendFuture, Together

EVENT_BYTES: Final = 256
"""Of an event's future and places in queues, whatever it holds."""
SMALL_BYTES: Final = 9
"""The most that None, a bool, an int or a float takes in msgpack."""
WEIGHED_EVERY: Final = 16
SIZED: Final = frozenset((bytes, str, list, tuple, dict, Together))


class GatewayFull(EpochgateError):
    """Too many bytes of events wait for the confirmation of their attempt; nothing was sent."""


class SendWindow:
    """The window of one attempt's gateway: the bytes that were sent, and those that are over.

    A sender looks at an event from the sum `_looks_at` on, and where it differs in type or length
    from the one before it; then it counts it in `_sent`.
    """

    __slots__ = (
        "_bytes_max",
        "_event_bytes",
        "_kind",
        "_length",
        "_lock",
        "_looks_at",
        "_over",
        "_sent",
        "_waiting",
        "call_back",
        "subtask",
    )

    def __init__(self, subtask: int, bytes_max: int, call_back: Callable[..., None]) -> None:
        self.subtask, self._bytes_max, self.call_back = subtask, bytes_max, call_back
        self._lock = threading.Lock()
        self._kind: Any = None
        self._length = self._event_bytes = 0
        """Of the event that was weighed last."""
        self._sent = self._looks_at = 0
        """From this sum on, an event is weighed, and whether there is room is looked at."""
        self._over = 0
        """Written on the queue's thread alone."""
        self._waiting: list[SendFuture] = []

    def _look(self, event: Any) -> None:
        """Weigh the event, and raise GatewayFull if there is no room for it, or ValueNotPlain if it
        is of a type that can never travel.
        """
        self._weigh(event)
        sent, event_bytes = self._sent, self._event_bytes
        if sent + event_bytes > self._over + self._bytes_max and sent > self._over:
            self._looks_at = 0
            raise self._full(event_bytes, sent - self._over)
        # The first event at which the bound could be passed is looked at, if none is before it.
        until_full = self._over + self._bytes_max - event_bytes + 1
        self._looks_at = min(sent + WEIGHED_EVERY * event_bytes, until_full)

    def _weigh(self, event: Any) -> None:
        kind = type(event)
        if kind not in SIZED:
            insist_on_plain_type(f"the event for subtask {self.subtask}", event)
            self._kind, self._event_bytes = None, EVENT_BYTES + SMALL_BYTES
            return
        self._kind, self._length = kind, len(event)
        try:
            packed_bytes = self._length if kind is bytes else len(PACKERS.packer.pack(event))
        except PACK_ERRORS:
            packed_bytes = 0  # the transport, which packs it, says what is wrong with it
        self._event_bytes = EVENT_BYTES + packed_bytes

    def free(self, until: int) -> None:
        """Give back all that was sent up to this sum; queue thread only. Where threads send beside
        each other, sums may come in another order than events.
        """
        if until > self._over:
            self._over = until
            if self._waiting:
                self._wake()

    def _full(self, event_bytes: int, unconfirmed: int) -> GatewayFull:
        return GatewayFull(
            f"the event of {event_bytes} bytes for subtask {self.subtask} was not sent: "
            f"{unconfirmed} bytes of events wait for the task, and unconfirmed_bytes_max is "
            f"{self._bytes_max}. Send it when SubtaskGateway.when_room() is done, or give the job "
            "a larger unconfirmed_bytes_max"
        )

    def when_room(self) -> SendFuture:
        """Make a future that is done when at most half of the bound waits."""
        future = SendFuture(None, self)
        with self._lock:
            self._waiting.append(future)
        self._wake()
        return future

    def _wake(self) -> None:
        with self._lock:
            if 2 * (self._sent - self._over) > self._bytes_max:
                return
            ready, self._waiting = self._waiting, []
        for future in ready:
            future.complete()
