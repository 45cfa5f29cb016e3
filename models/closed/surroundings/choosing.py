"""What is around the decisions of a coordinator: its process, and what decisions hold of it.

A coordinator chooses one of two at any moment, and its state is what it has chosen last: so a choice
that is made twice, or from a state that belongs to no decision which counts, can be told from the
right one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import STAY, Array, Bool, Int, Row, Trigger
from epochgate.models.closed.surroundings.decision_store import (
    FORGET,
    LOOK,
    WRITE,
    Client,
)
from epochgate.models.closed.surroundings.steering import (
    DECIDING,
    GONE,
    Driver,
    Query,
)

if TYPE_CHECKING:
    from epochgate.models.closed.choosing import ChosenQuery

RESTORE, CHOOSE = FORGET + 1, FORGET + 2


class ChosenDecisions(Query):
    """Decisions with the choice of a coordinator, which is its state too."""

    system: ChosenQuery

    choice: list[bool] = Array(Bool(), "slots")
    """In the decision of the batch."""
    seen_choice: list[bool] = Array(Bool(), "slots")
    """With which choice the first task has run the batch."""

    def remove(self, batch: int) -> None:
        if batch + self.system.retained >= self.newest:
            self.has_kept = False
        for b in range(self.system.slots):
            if b <= batch:
                self.is_decided[b] = False
                self.decided[b] = 0
                self.since[b] = 0
                self.is_stray[b] = False
                self.choice[b] = False

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
        self.system.query.see_choice(self.batch, self.system.client[self.driver].given)
        self.system.query.see(self.batch, self.told())


class CoordinatorClient(Client):
    """A driver's coordinator, and its connection to the store: port `store` of its machine."""

    system: ChosenQuery

    asked: int = Int(CHOOSE)
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
        batch = self.batch
        self.end()
        self.take_choice(batch, True)

    def answer_more(self, asked: int, batch: int) -> None:
        if asked == LOOK:
            self.given = self.system.query.choice[batch]
        if asked == RESTORE:
            self.tell_restored(batch)
        if asked == CHOOSE:
            self.take_choice(batch, False)

    def tell_restored(self, batch: int) -> None:
        if batch == 0 or self.system.query.is_decided[batch]:
            self.choice = self.system.query.choice[batch]
            self.complete_to = self.system.driver[self.driver].batch - 1
            self.system.batch_decision[self.driver].restored()
        else:
            self.system.batch_decision[self.driver].broken()

    def take_choice(self, batch: int, choice: bool) -> None:
        assert (
            self.system.query.newest >= batch
            or self.choice == self.system.query.seen_choice[batch - 1]
        ), "a coordinator chooses from the state of the batch before"
        assert self.complete_to + 1 == batch, "a coordinator knows that the batch before has run"
        self.choice = choice
        self.system.batch_decision[self.driver].chosen()

    def tell_written(self, batch: int, version: int, since: int) -> None:
        if self.system.query.create(batch, version, since):
            self.system.query.choice[batch] = self.choice
            self.system.batch_decision[self.driver].written()
        else:
            self.system.batch_decision[self.driver].taken()

    def write_late(self) -> None:
        batch = self.late
        version = self.late_version
        since = self.late_since
        choice = self.late_choice
        self.late = 0
        self.late_version = 0
        self.late_since = 0
        self.late_choice = False
        if not self.system.query.is_decided[batch]:
            self.system.query.choice[batch] = choice
        self.system.query.create_unheard(batch, version, since)

    def send_late(self) -> None:
        self.late = self.batch
        self.late_version = self.version
        self.late_since = self.since
        self.late_choice = self.choice

    def answer_broken(self) -> None:
        asked = self.asked
        if asked == CHOOSE:  # what it has chosen until it failed is in no decision
            self.choice = not self.choice
        self.end()
        if asked == FORGET:
            self.system.query.has_kept = True
            self.system.batch_decision[self.driver].kept()
        else:
            self.system.batch_decision[self.driver].broken()

    def forget_all(self) -> None:
        self.choice = False
        self.complete_to = 0
        self.given = False

    # port `store` of the machine

    def restore(self, batch: int) -> None:
        self.asked = RESTORE
        self.batch = batch

    def complete(self, batch: int) -> None:
        assert batch <= self.system.query.committed, "a batch that is told to have run is over"
        self.complete_to = batch

    def choose(self, batch: int) -> None:
        self.asked = CHOOSE
        self.batch = batch

    def write(self, batch: int, version: int, since: int) -> None:
        self.asked = WRITE
        self.batch = batch
        self.version = version
        self.since = since
        self.given = self.choice
