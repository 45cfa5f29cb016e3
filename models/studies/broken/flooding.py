"""Broken variants of the windows: what happens without one of the rules of section 14 in
docs/protocol.md.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Row, machines
from epochgate.models.closed.flooding import FloodedTask
from epochgate.models.closed.pressed import PressedJob
from epochgate.models.closed.surroundings.flooded_driver import (
    LOOKING,
    LOOKING_AGAIN,
    ConnectionsWindow,
    FloodedQueue,
    FloodedWire,
)
from epochgate.models.closed.surroundings.flooding import (
    AT_REST,
    READY,
    AttemptsSendWindow,
    FloodingCoordinator,
)
from epochgate.models.closed.surroundings.pressing import PressingSender


class GrantingTooMuch(AttemptsSendWindow):
    """Grants the bound on top of what was sent."""

    def allow(self, size: int, sent: int, over: int) -> None:
        self.room.allow(size, sent + self.system.unconfirmed_bytes_max)


class GrantedTooMuch(FloodedTask):
    """More is sent within a grant than the bound has room for."""

    CONSTANTS: ClassVar[dict[str, int]] = {
        **FloodedTask.CONSTANTS,
        "large": 5,
        "said": 0,
        "K": 0,
        "F": 0,
    }

    send_window: AttemptsSendWindow = machines(GrantingTooMuch)


class RefusingLargeEvents(AttemptsSendWindow):
    """Refuses what is larger than the bound, also when nothing else waits."""

    def is_alone(self, size: int, sent: int, over: int) -> bool:
        return False


class LargeEventsRefused(FloodedTask):
    """A sender is told that there is room, and refused again."""

    send_window: AttemptsSendWindow = machines(RefusingLargeEvents)


class TellingOfHalf(AttemptsSendWindow):
    """Tells of room once half of the bound is free, whatever was refused."""

    def most_left(self) -> int:
        return self.system.unconfirmed_bytes_max // 2


class ToldTooEarly(FloodedTask):
    """A sender is told that there is room, sends again, and is refused over and over."""

    send_window: AttemptsSendWindow = machines(TellingOfHalf)


class TrustingCoordinator(FloodingCoordinator):
    """Relies on the queue's thread, which may have looked before there was anything to watch for."""

    def is_due(self) -> bool:
        return False


class LookingQueue(FloodedQueue):
    """Looks for itself, where its coordinator does not."""

    def is_due(self) -> bool:
        return (
            self.system.coordinator.is_watched
            and self.system.coordinator.over >= self.system.coordinator.watched
        )


class SenderNeverTold(FloodedTask):
    """The event that is watched for happens before it is watched for."""

    CONSTANTS: ClassVar[dict[str, int]] = {**FloodedTask.CONSTANTS, "said": 0, "K": 0}

    coordinator: FloodingCoordinator = machines(TrustingCoordinator)
    queue: FloodedQueue = machines(LookingQueue)


class TrustingWire(FloodedWire):
    """Does not look again after it has paused a connection."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in FloodedWire.ROWS if row.trigger != "look_again"),
        Row("look_again", LOOKING_AGAIN, AT_REST, None,
            None,         "the queue's thread is trusted to say so"),
    )
    # fmt: on


class NeverReadAgain(FloodedTask):
    """All is handled before the connection is paused, and nothing else arrives."""

    CONSTANTS: ClassVar[dict[str, int]] = {**FloodedTask.CONSTANTS, "events": 2, "K": 0, "F": 0}

    wire: FloodedWire = machines(TrustingWire)


class ReadingOn(ConnectionsWindow):
    """Takes whatever waits to be within the bound."""

    def is_over(
        self, arrived_bytes: int, arrived_messages: int, handled_bytes: int, handled_messages: int
    ) -> bool:
        return False


class NeverPaused(FloodedTask):
    """The words of a task wait in the driver's memory."""

    receive_window: ConnectionsWindow = machines(ReadingOn)


class BlockedQueue(FloodedQueue):
    """Its own thread waits in a send for what it would have to handle."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in FloodedQueue.ROWS if row.trigger not in ("handle", "cancel")),
        Row("handle", AT_REST, LOOKING, "has_message and is_free",
            "handle_one",               "the oldest message is handled"),
        Row("cancel", AT_REST, STAY,    "is_on and is_free",
            "end",                      "a user cancels the job"),
    )
    # fmt: on

    def is_free(self) -> bool:
        return self.system.coordinator.state == READY


class SenderBlocked(FloodedTask):
    """A coordinator that is refused blocks until there is room."""

    queue: FloodedQueue = machines(BlockedQueue)


class ForgettingSender(PressingSender):
    """Counts the futures of lost events, and tells no one who waits."""

    def lost(self, count: int, reason: int) -> None:
        self.undecided -= count


class ForgottenWaiters(PressedJob):
    """A sender that waits for room of an attempt waits for ever when the attempt fails."""

    sender: dict[tuple[int, int], PressingSender] = machines(ForgettingSender)


class UncountedSender(PressingSender):
    """Does not count the events that a closed gateway holds."""

    def over(self) -> int:
        return (
            self.posted
            - self.undecided
            + self.system.gateway[self.coordinator, self.subtask].held.size()
        )


class HeldUncounted(PressedJob):
    """A closed gateway holds as much as is sent."""

    sender: dict[tuple[int, int], PressingSender] = machines(UncountedSender)
