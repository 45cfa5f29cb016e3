"""The bytes of events that a coordinator has sent to an attempt, counted against what it may send.

Carries out the machine `send_window`, which grants bytes ahead: an event within the grant is sent
with one comparison, and the machine is asked at its end. It is made there too, since most gateways
never come to it. What exceeds the bound is refused where it is sent, so that no event is left out
without an error.

An event counts for its bytes in msgpack and `EVENT_BYTES`. To weigh each would take as long as to
send it: one of the same type and length as the event before counts as much, and each sixteenth is
weighed again. Leaves to the gateway where a sent event goes. Any thread
sends; what is over is given back on the queue's thread.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, Final

from epochgate.errors import EpochgateError
from epochgate.models.send_window import SendWindow as SendWindowMachine, SendWindows
from epochgate.runtime.api.packing import PACK_ERRORS, PACKERS
from epochgate.runtime.api.send_future import SendFuture, Together

EVENT_BYTES: Final = 256
"""Of an event's future and places in queues, whatever it holds."""
WEIGHED_EVERY: Final = 16
NEVER: Final = sys.maxsize
SIZED: Final = frozenset((bytes, str, list, dict, Together))


class GatewayFull(EpochgateError):
    """Too many bytes of events wait for the confirmation of their attempt; nothing was sent."""


class SendWindow:
    """The window of one attempt's gateway: the bytes that were sent, and those that are over."""

    __slots__ = (
        "_allowed",
        "_bytes_max",
        "_event_bytes",
        "_is_sized",
        "_kind",
        "_length",
        "_lock",
        "_machine",
        "_ready",
        "_sent",
        "_subtask",
        "_unweighed",
        "_waiting",
        "over",
        "watched",
    )

    def __init__(self, subtask: int, bytes_max: int) -> None:
        self._subtask, self._bytes_max = subtask, bytes_max
        self._lock = threading.Lock()
        self._kind: Any = type(None)
        self._is_sized = False
        self._length = self._event_bytes = self._unweighed = 0
        """Of the event that was weighed last, and how many more may count as much as it did."""
        self._sent, self._allowed = 0, bytes_max
        self.over, self.watched = 0, NEVER
        """`over` is written by futures that are done, on the queue's thread alone."""
        self._machine: SendWindowMachine | None = None
        self._waiting: list[SendFuture] = []
        self._ready: list[SendFuture] = []

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
        if sent > self._allowed:
            self._ask(event_bytes)
        else:
            self._sent = sent
        return SendFuture(event, self, event_bytes)

    def _ask(self, event_bytes: int) -> None:
        with self._lock:
            granted, self._allowed = self._allowed, 0  # others that send now wait for the lock
            try:
                self._asked().send(event_bytes, self._sent, self.over)
                self._settle()
            except GatewayFull:
                self._allowed = granted
                raise

    def _asked(self) -> SendWindowMachine:
        if self._machine is None:
            system = SendWindows(unconfirmed_bytes_max=self._bytes_max)
            system.bind("send_window", "room", self)
            self._machine = system.send_window
        return self._machine

    def _settle(self) -> None:
        self._asked().system.settle()

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
        future = SendFuture(None)
        with self._lock:
            self._waiting.append(future)
            self._asked().want(self._sent, self.over)
            self._settle()
            ready = self._taken()
        for each in ready:
            each.complete()
        self.wake_if_due()
        return future

    def wake_if_due(self) -> None:
        """Say that so much is over as was to be watched for; nothing if it is not, or was said."""
        while self.over >= self.watched:
            with self._lock:
                self.watched = NEVER
                self._asked().freed(self._sent, self.over)
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
        """Have the futures of events look out for `until`."""
        self.watched = until

    def tell(self) -> None:
        """Complete those who wait, once the lock is free: their callbacks may send."""
        self._ready += self._waiting
        self._waiting = []
