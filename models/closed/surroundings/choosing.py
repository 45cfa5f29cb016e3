"""The surroundings of a coordinator's decisions: its process, and what decisions hold of it.

A coordinator chooses one of two at any moment, and its state is what it has chosen last: so a choice
that is made twice, or from a state that belongs to no decision which counts, can be told from the
right one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import STAY, Array, Bool, Int, Row, Trigger
from epochgate.models.closed.surroundings.decision_store import Client
from epochgate.models.closed.surroundings.entries import CHOOSE, LOOK, RESTORE, WRITE
from epochgate.models.closed.surroundings.steering import (
    DECIDING,
    GONE,
    Driver,
    Query,
)

if TYPE_CHECKING:
    from epochgate.models.closed.choosing import ChosenQuery


class ChosenDecisions(Query):
    """Decisions with the choice of a coordinator, which is its state too."""

    system: ChosenQuery

    choice: list[bool] = Array(Bool(), "slots")
    """In the decision of the batch."""
    seen_choice: list[bool] = Array(Bool(), "slots")
    """With which choice the first task has run the batch."""

    def empty(self, batch: int) -> None:
        self.decided[batch] = 0
        self.since[batch] = 0
        self.choice[batch] = False

    def see_choice(self, batch: int, choice: bool) -> None:
        """A task runs the batch with this choice."""
        assert not self.is_seen[batch] or self.seen_choice[batch] == choice, (
            "two runs of one batch see one choice"
        )
        self.seen_choice[batch] = choice


class ChoosingDriver(Driver):
    """Its tasks see a choice beside the version, and a query that has failed is started again in the
    process that lives on, or in another.
    """

    system: ChosenQuery
    client: CoordinatorClient
    entries: ChosenDecisions

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in Driver.ROWS if row.trigger not in ("refuse", "fail")),
        Row("refuse", DECIDING, GONE, None, "leave", "the query fails, and its process lives on"),
        Row("fail",   DECIDING, GONE, None, "leave", "the query fails, and its process lives on"),
    )
    # fmt: on

    def leave(self) -> None:
        self.batch = 0

    def run_task(self) -> None:
        self.worked += 1
        self.entries.see_choice(self.batch, self.client.given)
        self.entries.see(self.batch, self.told())


class CoordinatorClient(Client):
    """A driver's coordinator, and its connection to the store: port `store` of its machine."""

    system: ChosenQuery
    entries: ChosenDecisions

    choice: bool = Bool()
    """What the coordinator of this process has chosen last: its state."""
    complete_to: int = Int("batches")
    """The newest batch of which it knows that it has run; of those before its own it knows."""
    given: bool = Bool()
    """The choice in the decision that was read, or is being made."""
    late_choice: bool = Bool()

    waver: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *Client.ROWS,
        Row("waver", "up", STAY, "is_choosing", "choose_other", "the coordinator chooses the other"),
    )
    # fmt: on

    def is_choosing(self) -> bool:
        return self.asked == CHOOSE

    def choose_other(self) -> None:
        self.take_choice(True)
        self.end()

    def answer_more(self) -> None:
        if self.asked == LOOK:
            self.given = self.entries.choice[self.batch]
        if self.asked == RESTORE:
            self.tell_restored()
        if self.asked == CHOOSE:
            self.take_choice(False)

    def tell_restored(self) -> None:
        if self.batch == 0 or self.entries.is_there[self.batch]:
            self.choice = self.entries.choice[self.batch]
            self.complete_to = self.drives.batch - 1
            self.served.restored()
        else:
            self.served.broken()

    def take_choice(self, choice: bool) -> None:
        assert (
            self.entries.newest >= self.batch
            or self.choice == self.entries.seen_choice[self.batch - 1]
        ), "a coordinator chooses from the state of the batch before"
        assert self.complete_to + 1 == self.batch, (
            "a coordinator knows that the batch before has run"
        )
        self.choice = choice
        self.served.chosen()

    def create(self) -> bool:
        is_new = self.entries.create(self.batch, self.version, self.since)
        if is_new:
            self.entries.choice[self.batch] = self.choice
        else:
            self.entries.clashes = 1
        return is_new

    def write_late(self) -> None:
        if not self.entries.is_there[self.late]:
            self.entries.choice[self.late] = self.late_choice
            self.create_late()
        self.late = 0
        self.late_version = 0
        self.late_since = 0
        self.late_choice = False

    def send_late(self) -> None:
        self.late = self.batch
        self.late_version = self.version
        self.late_since = self.since
        self.late_choice = self.choice

    def spoil(self) -> None:
        if self.asked == CHOOSE:  # what it has chosen until it failed is in no decision
            self.choice = not self.choice

    def forget_all(self) -> None:
        self.choice = False
        self.complete_to = 0
        self.given = False

    # port `store` of the machine

    def restore(self, batch: int) -> None:
        self.ask_behind(RESTORE, batch)

    def complete(self, batch: int) -> None:
        assert batch <= self.entries.committed, "a batch that is told to have run is over"
        self.complete_to = batch

    def choose(self, batch: int) -> None:
        self.ask(CHOOSE, batch)

    def write(self, batch: int, version: int, since: int) -> None:
        self.ask(WRITE, batch)
        self.version = version
        self.since = since
        self.given = self.choice
