"""The window of one connection: how much of what a task says may wait for the driver's queue.

Decides from when on the connection is not read, and from when on it is read again. The network then
holds what the task says next, and the task waits in its next send::

    arrived   1 2 3 ... | more than the bound: not read             read again
    handled                1 2 3 ... at most half of the bound waits |

What has arrived is never dropped. Bytes and messages are bounded both, since many small messages
take long to handle.

Leaves to the shell to count what arrives and what is handled, and to the wire not to read. Runs on
the wire's thread. Source: the receive window of TCP; Apache Flink does not bound operator events.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Ignore, Machine, Port, Row, System, Trigger, machines, output

READING, PAUSED = "reading", "paused"


class ReadingPort(Port):
    """The connection. Bytes and messages are counted from its beginning."""

    def pause(self) -> None:
        """Read no more."""

    def watch(self, until_bytes: int, until_messages: int) -> None:
        """Fire `handled` once the queue has handled that much of both."""

    def resume(self) -> None:
        """Read again."""


class ReceiveWindow(Machine):
    """The window of one connection."""

    STATES = (READING, PAUSED)
    INITIAL = READING

    system: ReceiveWindows
    reading: ReadingPort = output(ReadingPort)

    received: Trigger
    handled: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("received",    READING, PAUSED,  "is_over",
            "pause, watch", "more than the bound waits for the queue"),
        Ignore("received", READING,          "not is_over",
                            "what waits is within the bound"),
        Ignore("received", PAUSED,           None,
                            "it was read before the pause"),

        Row("handled",     PAUSED,  READING, "has_room",
            "resume",       "at most half of the bound waits"),
        Row("handled",     PAUSED,  STAY,    "not has_room",
            "watch",        "more had arrived when reading was paused"),
    )
    # fmt: on

    def is_over(
        self, arrived_bytes: int, arrived_messages: int, handled_bytes: int, handled_messages: int
    ) -> bool:
        return (
            arrived_bytes > handled_bytes + self.system.waiting_bytes_max
            or arrived_messages > handled_messages + self.system.waiting_messages_max
        )

    def has_room(
        self, arrived_bytes: int, arrived_messages: int, handled_bytes: int, handled_messages: int
    ) -> bool:
        return (
            arrived_bytes <= handled_bytes + self.system.waiting_bytes_max // 2
            and arrived_messages <= handled_messages + self.system.waiting_messages_max // 2
        )

    def pause(
        self, arrived_bytes: int, arrived_messages: int, handled_bytes: int, handled_messages: int
    ) -> None:
        self.reading.pause()

    def watch(
        self, arrived_bytes: int, arrived_messages: int, handled_bytes: int, handled_messages: int
    ) -> None:
        half_bytes = self.system.waiting_bytes_max // 2
        half_messages = self.system.waiting_messages_max // 2
        self.reading.watch(
            arrived_bytes - half_bytes if arrived_bytes > half_bytes else 0,
            arrived_messages - half_messages if arrived_messages > half_messages else 0,
        )

    def resume(
        self, arrived_bytes: int, arrived_messages: int, handled_bytes: int, handled_messages: int
    ) -> None:
        self.reading.resume()


class ReceiveWindows(System):
    """The driver's decisions about reading from one task."""

    CONSTANTS: ClassVar[dict[str, int]] = {
        "waiting_bytes_max": 4 * 1024 * 1024,
        "waiting_messages_max": 1024,
    }

    waiting_bytes_max: int
    waiting_messages_max: int

    receive_window: ReceiveWindow = machines(ReceiveWindow)
