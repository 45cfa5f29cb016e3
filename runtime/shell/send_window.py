"""The bytes of events that a coordinator has sent to an attempt, counted against what it may send.

Carries out the machine `send_window`, which grants bytes ahead: an event within the grant is sent
with one comparison, and the machine is asked at its end. It is made there too, since most gateways
never come to it. What exceeds the bound is refused where it is sent, so that no event is left out
without an error.

An event counts for its bytes in msgpack and `EVENT_BYTES`. To weigh each would take as long as to
send it: one of the same type and length as the event before counts as much, and each sixteenth is
weighed again. Each future carries the sum up to its event, so that a confirmation of many events
gives their bytes back at once. Leaves to the gateway where a sent event goes. Any thread sends;
what is over is given back on the queue's thread.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, Final

from epochgate.errors import EpochgateError
from epochgate.fsm import Handles
from epochgate.models.send_window import SendWindows
from epochgate.runtime.api.packing import PACK_ERRORS, PACKERS
from epochgate.runtime.api.plain_values import insist_on_plain_type
from epochgate.runtime.api.send_future import SendFuture, Together

EVENT_BYTES: Final = 256
"""Of an event's future and places in queues, whatever it holds."""
SMALL_BYTES: Final = 9
"""The most that None, a bool, an int or a float takes in msgpack."""
WEIGHED_EVERY: Final = 16
NEVER: Final = sys.maxsize
SIZED: Final = frozenset((bytes, str, list, tuple, dict, Together))


class GatewayFull(EpochgateError):
    """Too many bytes of events wait for the confirmation of their attempt; nothing was sent."""


class SendWindow:
    """The window of one attempt's gateway: the bytes that were sent, and those that are over.

    A sender counts an event in `_sent` by itself, unless the sum has come to `_looks_at` or the
    event differs in type or length from the one before it: `_look` counts these.
    """

    __slots__ = (
        "_allowed",
        "_bytes_max",
        "_event_bytes",
        "_kind",
        "_length",
        "_lock",
        "_looks_at",
        "_over",
        "_ready",
        "_sent",
        "_system",
        "_waiting",
        "_watched",
        "subtask",
    )

    def __init__(self, subtask: int, bytes_max: int) -> None:
        self.subtask, self._bytes_max = subtask, bytes_max
        self._lock = threading.Lock()
        self._kind: Any = None
        self._length = self._event_bytes = 0
        """Of the event that was weighed last."""
        self._sent = self._looks_at = 0
        """From this sum on, an event is weighed, and compared with the grant."""
        self._allowed, self._over, self._watched = bytes_max, 0, NEVER
        """`_over` is written on the queue's thread alone."""
        self._system: Handles[SendWindows] | None = None
        self._waiting: list[SendFuture] = []
        self._ready: list[SendFuture] = []

    def _look(self, event: Any) -> int:
        """Weigh and count the event; returns the sum with it.

        Raises GatewayFull if there is no room for it, or ValueNotPlain if it is of a type that can
        never travel.
        """
        self._weigh(event)
        event_bytes = self._event_bytes
        # Without a lock, since no other thread runs between loading the sum and storing it.
        sent = self._sent + event_bytes
        if sent > self._allowed:
            sent = self._ask(event_bytes)
        else:
            self._sent = sent
        # The first event that the grant may not cover is looked at, if none is before it.
        ahead = self._allowed - event_bytes + 1
        self._looks_at = min(sent + (WEIGHED_EVERY - 1) * event_bytes, ahead)
        return sent

    def _ask(self, event_bytes: int) -> int:
        with self._lock:
            granted = self._allowed
            self._allowed = self._looks_at = 0  # others that send now wait for the lock
            try:
                self._asked().send_window.send(event_bytes, self._sent, self._over)
                self._settle()
            except GatewayFull:
                self._allowed = granted
                raise
            return self._sent

    def _asked(self) -> Handles[SendWindows]:
        if self._system is None:
            self._system = Handles(SendWindows, unconfirmed_bytes_max=self._bytes_max)
            self._system.bind("send_window", "room", self)
        return self._system

    def _settle(self) -> None:
        self._asked().settle()

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

    def _full(self, event_bytes: int, unconfirmed: int) -> GatewayFull:
        return GatewayFull(
            f"the event of {event_bytes} bytes for subtask {self.subtask} was not sent: "
            f"{unconfirmed} bytes of events wait for the task, and unconfirmed_bytes_max is "
            f"{self._bytes_max}. Send it when SubtaskGateway.when_room() is done, or give the job "
            "a larger unconfirmed_bytes_max"
        )

    def when_room(self) -> SendFuture:
        """Make a future that is done when half of the bound is free, and what was refused fits."""
        future = SendFuture(None, self)
        with self._lock:
            self._waiting.append(future)
            self._asked().send_window.want(self._sent, self._over)
            self._settle()
            ready = self._taken()
        for each in ready:
            each.complete()
        self._wake_if_due()
        return future

    def call_back(self, callback: Callable[[SendFuture], None], sent: SendFuture) -> None:
        """Call what was added to the future of a send."""
        callback(sent)

    def free(self, until: int) -> None:
        """Give back all that was sent up to this sum; queue thread only. Where threads send beside
        each other, sums may come in another order than events.
        """
        if until > self._over:
            self._over = until
            if until >= self._watched:
                self._wake_if_due()

    def _wake_if_due(self) -> None:
        """Say that so much is over as was to be watched for; nothing if it is not, or was said."""
        while self._over >= self._watched:
            with self._lock:
                self._watched = NEVER
                self._asked().send_window.freed(self._sent, self._over)
                self._settle()
                ready = self._taken()
            for future in ready:
                future.complete()

    def _taken(self) -> list[SendFuture]:
        ready, self._ready = self._ready, []
        return ready

    # port `room` of the machine, under the lock

    def allow(self, size: int, until: int) -> None:
        """Count the event, and grant the bytes up to `until`."""
        self._sent += size
        self._allowed = until

    def refuse(self, size: int, unconfirmed: int) -> None:
        """Raise GatewayFull: the event is not counted."""
        raise self._full(size, unconfirmed)

    def watch(self, until: int) -> None:
        """Have what is given back looked at from `until` on."""
        self._watched = until

    def tell(self) -> None:
        """Complete those who wait, once the lock is free: their callbacks may send."""
        self._ready += self._waiting
        self._waiting = []
