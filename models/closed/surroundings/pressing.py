"""Coordinators that ask the window of their gateway before they send."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import STAY, Bool, Int, Row, Trigger
from epochgate.models.closed.surroundings.user import Sender
from epochgate.models.send_window import QUIET, SendWindow

if TYPE_CHECKING:
    from epochgate.models.closed.pressed import PressedJob


class GatewaysWindow(SendWindow):
    """The window of each gateway, renewed with its attempt."""

    INDEX = ("coordinator", "subtask")

    replaced: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *SendWindow.ROWS,
        Row("replaced", QUIET, STAY, None, None, "the next attempt has a gateway of its own"),
    )
    # fmt: on


class PressingSender(Sender):
    """One coordinator's sends to one subtask, each of one byte: also port `room` of the window.

    A refused sender waits until it is told. Where its attempt fails meanwhile, its future is done
    with the futures of the attempt's events.
    """

    system: PressedJob

    granted: int = Int("granted")
    """The bytes up to which it may send without asking; 0 for the bound."""
    posted: int = Int("posted_bytes")
    """The bytes that were sent to this attempt."""
    is_refused: bool = Bool()
    is_watched: bool = Bool()
    watched: int = Int("posted_bytes")

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("send",      "able",   STAY,     "has_more and not is_held_up and is_granted",
            "count, post", "the event is within what is granted"),
        Row("send",      "able",   STAY,     "has_more and not is_held_up and not is_granted",
            "ask",         "the window decides"),
        Row("ready",     "unable", "able",   None,
            "begin_window", "an attempt can be sent events"),
        *(row for row in Sender.ROWS if row.trigger not in ("send", "ready")),
    )
    # fmt: on

    def is_held_up(self) -> bool:
        return self.is_refused

    def is_granted(self) -> bool:
        granted = self.granted if self.granted > 0 else self.system.unconfirmed_bytes_max
        return self.posted + 1 <= granted

    def over(self) -> int:
        return self.posted - self.undecided

    def ask(self) -> None:
        self.system.send_window[self.coordinator, self.subtask].send(1, self.posted, self.over())

    def begin_window(self) -> None:
        assert self.undecided == 0, "the futures of the attempt before are done"
        assert not self.is_refused, "who waited for room of the attempt before was told"
        self.granted = 0
        self.posted = 0
        self.is_watched = False
        self.watched = 0
        self.system.send_window[self.coordinator, self.subtask].replaced()

    def count(self) -> None:
        self.sent += 1
        self.undecided += 1
        self.posted += 1

    def confirmed(self, count: int) -> None:
        self.decide(count)

    def lost(self, count: int, reason: int) -> None:
        self.decide(count)

    def turned_away(self, event: int) -> None:
        self.is_sending = False
        self.decide(1)

    def decide(self, count: int) -> None:
        self.undecided -= count
        if self.is_watched and self.over() >= self.watched:
            self.is_watched = False
            self.watched = 0
            self.system.send_window[self.coordinator, self.subtask].freed(self.posted, self.over())

    # port `room` of the window

    def allow(self, size: int, until: int) -> None:
        self.granted = until
        self.count()
        self.post()

    def refuse(self, size: int, unconfirmed: int) -> None:
        self.is_refused = True
        self.system.send_window[self.coordinator, self.subtask].want(self.posted, self.over())

    def watch(self, until: int) -> None:
        self.is_watched = True
        self.watched = until

    def tell(self) -> None:
        assert self.undecided < self.system.unconfirmed_bytes_max, (
            "a sender is told when what was refused would be sent"
        )
        self.is_refused = False
