"""A person beside the closed commits, who settles what is in doubt by command."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.closed.surroundings.commits import DOWN, OPEN, WRITING

if TYPE_CHECKING:
    from epochgate.models.closed.commits import CommitJob


class Doubt(Environment):
    """A person who gives up the commit of one checkpoint, while no driver runs."""

    INDEX = ("doubt",)
    STATES = (OPEN, WRITING)
    INITIAL = OPEN

    system: CommitJob
    doubt: int

    forgo: Trigger
    store: Trigger
    leave: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("forgo", OPEN,    WRITING, "may_forgo",
            "count, adopt_ledger, drop",  "its commit fails at each start"),
        Row("store", WRITING, OPEN,    None,
            "succeed, forget",            "the newest checkpoint is one without it"),
        Row("leave", WRITING, OPEN,    "may_fail",
            "spend_failure, forget",      "the command dies before that"),
    )
    # fmt: on

    def may_forgo(self) -> bool:
        return (
            self.system.driver.state == DOWN
            and self.system.budget.given_up < self.system.given_up
            and (self.system.store.ledger[self.doubt] or self.is_newest())
        )

    def is_newest(self) -> bool:
        return self.system.store.completed == self.doubt + 1

    def may_fail(self) -> bool:
        return self.system.budget.has_failures()

    def spend_failure(self) -> None:
        self.system.budget.failures += 1

    def count(self) -> None:
        self.system.budget.given_up += 1

    def adopt_ledger(self) -> None:
        self.system.driver.adopt_ledger()
        self.system.sink.is_held[self.system.store.completed - 1] = True
        self.system.committer.adopt(self.system.store.completed, 0)

    def drop(self) -> None:
        self.system.committer.forgo(self.doubt + 1)
        self.system.committer.carry(self.system.store.newest + 1)

    def succeed(self) -> None:
        self.system.store.succeed(self.system.store.newest + 1)

    def forget(self) -> None:
        self.system.store.forgone = 0
        self.system.checkpoint.forget()
        self.system.committer.restart()
        self.system.sink.forget()
