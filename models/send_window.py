"""The window of one attempt's gateway: how many bytes of events may be unconfirmed.

Decides whether an event that would exceed the bound is sent, and when a sender that waits for room
is told: not before the largest event that was refused fits, since a callback that sends it again at
once would be refused over and over. Grants bytes ahead: an event within the grant is sent without
asking, so that its row costs only who comes to the end of it::

    sent         a b c ... | d        d is refused      e
    confirmed                 a b                c d       half is free, and d fits: told
    grant        the bound    |       over + the bound     over + the bound

An event by itself may be larger than the bound. What is refused is no event of the protocol: no
gateway knows of it, so it can be neither lost nor reordered.

Leaves to `Gateway` when the future of an event is done, and to the shell what an event weighs. Runs
under the lock of the window, on the thread that sends, asks for room, or completes a future.
Source: the byte windows of TCP and QUIC (MAX_DATA, RFC 9000, section 4.1); Apache Flink does not
bound operator events.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Ignore, Int, Machine, Port, Row, System, Trigger, machines, output

QUIET, AWAITED = "quiet", "awaited"


class RoomPort(Port):
    """The sender. Bytes are counted from the attempt's first event."""

    def allow(self, size: int, until: int) -> None:
        """Count and send this event, and others without asking, until `until` bytes were sent."""

    def refuse(self, size: int, unconfirmed: int) -> None:
        """Do not send this event."""

    def watch(self, until: int) -> None:
        """Fire `freed` once the events that are over come to `until` bytes."""

    def tell(self) -> None:
        """Tell those who wait that there is room."""


class SendWindow(Machine):
    """The window of one gateway, of one attempt; to begin with, the bound is granted."""

    STATES = (QUIET, AWAITED)
    INITIAL = QUIET

    system: SendWindows
    room: RoomPort = output(RoomPort)

    refused: int = Int("event_bytes")
    """The bytes of the largest event that was refused since room was told of last."""

    send: Trigger
    want: Trigger
    freed: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("send",     (QUIET, AWAITED), STAY,    "fits",
            "allow",        "with this event at most the bound is unconfirmed"),
        Row("send",     (QUIET, AWAITED), STAY,    "not fits and is_alone",
            "allow_alone",  "an event by itself may be larger than the bound"),
        Row("send",     (QUIET, AWAITED), STAY,    "not fits and not is_alone",
            "refuse",       "too much waits for the subtask"),

        Row("want",     (QUIET, AWAITED), QUIET,   "has_room",
            "tell",         "half of the bound is free, and the largest refused event fits"),
        Row("want",     (QUIET, AWAITED), AWAITED, "not has_room",
            "watch",        "too much is unconfirmed, for half of the bound or for a refused event"),

        Row("freed",    AWAITED,          QUIET,   "has_room",
            "tell",         "half of the bound is free, and the largest refused event fits"),
        Row("freed",    AWAITED,          STAY,    "not has_room",
            "watch",        "others have sent meanwhile"),
        Ignore("freed", QUIET,                     None,
                            "those who waited were told"),
    )
    # fmt: on

    def fits(self, size: int, sent: int, over: int) -> bool:
        return sent + size <= over + self.system.unconfirmed_bytes_max

    def is_alone(self, size: int, sent: int, over: int) -> bool:
        return sent == over

    def has_room(self, sent: int, over: int) -> bool:
        return sent - over <= self.most_left()

    def most_left(self) -> int:
        """The most bytes that may be unconfirmed where room is told of."""
        half = self.system.unconfirmed_bytes_max // 2
        beside = self.system.unconfirmed_bytes_max - self.refused
        return half if beside > half else beside if beside > 0 else 0

    def allow(self, size: int, sent: int, over: int) -> None:
        self.room.allow(size, over + self.system.unconfirmed_bytes_max)

    def allow_alone(self, size: int, sent: int, over: int) -> None:
        self.room.allow(size, sent + size)

    def refuse(self, size: int, sent: int, over: int) -> None:
        if size > self.refused:
            self.refused = size
        self.room.refuse(size, sent - over)

    def watch(self, sent: int, over: int) -> None:
        self.room.watch(sent - self.most_left())

    def tell(self, sent: int, over: int) -> None:
        self.refused = 0
        self.room.tell()


class SendWindows(System):
    """The gateway's decisions about events before they are sent."""

    CONSTANTS: ClassVar[dict[str, int]] = {"unconfirmed_bytes_max": 64 * 1024 * 1024}

    unconfirmed_bytes_max: int

    send_window: SendWindow = machines(SendWindow)
