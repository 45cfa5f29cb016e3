"""The window of one attempt's gateway: how many bytes of events may be unconfirmed.

Decides whether an event that would exceed the bound is sent, and when a sender that waits for room
is told. Grants bytes ahead: an event within the grant is sent without asking, so that its row costs
only who comes to the end of it::

    sent         a b c ... | d        d is refused      e
    confirmed                 a b                c d       half of the bound is free: told
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

from epochgate.fsm import STAY, Ignore, Machine, Port, Row, System, Trigger, machines, output

QUIET, AWAITED = "quiet", "awaited"


class RoomPort(Port):
    """What a sender learns. Bytes are counted from the attempt's first event."""

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
            "tell",         "at most half of the bound is unconfirmed"),
        Row("want",     (QUIET, AWAITED), AWAITED, "not has_room",
            "watch",        "more than half of the bound is unconfirmed"),

        Row("freed",    AWAITED,          QUIET,   "has_room",
            "tell",         "at most half of the bound is unconfirmed"),
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
        return 2 * (sent - over) <= self.system.unconfirmed_bytes_max

    def allow(self, size: int, sent: int, over: int) -> None:
        self.room.allow(size, over + self.system.unconfirmed_bytes_max)

    def allow_alone(self, size: int, sent: int, over: int) -> None:
        self.room.allow(size, sent + size)

    def refuse(self, size: int, sent: int, over: int) -> None:
        self.room.refuse(size, sent - over)

    def watch(self, sent: int, over: int) -> None:
        self.room.watch(sent - self.system.unconfirmed_bytes_max // 2)

    def tell(self, sent: int, over: int) -> None:
        self.room.tell()


class SendWindows(System):
    """What a gateway decides about events before they are sent."""

    CONSTANTS: ClassVar[dict[str, int]] = {"unconfirmed_bytes_max": 64 * 1024 * 1024}

    unconfirmed_bytes_max: int

    send_window: SendWindow = machines(SendWindow)
