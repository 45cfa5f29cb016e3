"""The events that coordinators send to one subtask, and the futures that they hold for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochgate.fsm import Bool, Int
from epochgate.fsm.closed import Environment

if TYPE_CHECKING:
    from epochgate.models.closed.job import ClosedJob


class Sends(Environment):
    """One coordinator's numbered sends to one subtask: port `sender` of the gateway."""

    INDEX = ("coordinator", "subtask")

    system: ClosedJob
    coordinator: int
    subtask: int

    sent: int = Int("events")
    undecided: int = Int("posted")
    """Sends whose futures are pending."""
    is_sending: bool = Bool()
    """What happens to a send is to be told in this step; never so between two steps."""

    def has_more(self) -> bool:
        return self.sent < self.system.events

    def count(self) -> None:
        self.sent += 1
        self.undecided += 1

    def post(self) -> None:
        self.is_sending = True
        self.system.gateway[self.coordinator, self.subtask].send(
            self.system.attempt[self.subtask].number, self.sent
        )

    def event(self, identity: int, number: int, event: int) -> None:
        self.is_sending = False
        self.system.wire[self.subtask].event(identity, self.coordinator, number, event)

    def confirmed(self, count: int) -> None:
        self.undecided -= count

    def lost(self, count: int, reason: int) -> None:
        self.undecided -= count

    def held(self, event: int) -> None:
        self.check_event(event)
        self.is_sending = False

    def turned_away(self, event: int) -> None:
        self.check_event(event)
        self.is_sending = False
        self.undecided -= 1

    def check_event(self, event: int) -> None:
        assert event > 0, "a coordinator hears of an event"
        assert event == self.sent or not self.is_sending, "it is the one that it sends"
