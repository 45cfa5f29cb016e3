"""A driver that was replaced and still commits."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import ANY, STAY, Bool, Channel, Fifo, Ignore, Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.closed.surroundings.commits import FINISHED

if TYPE_CHECKING:
    from epochgate.models.closed.commits import CommitJob

GONE, ALIVE, REPLACED = "gone", "alive", "replaced"


class Zombie(Environment):
    """A driver that was taken for dead amid a commit, and goes on with it at any time."""

    STATES = (GONE, ALIVE, REPLACED)
    INITIAL = GONE

    system: CommitJob

    batch: Fifo[int] = Channel("checkpoints", "checkpoints")
    """What its commit has not reached."""
    has_changed: bool = Bool()
    """It has changed the target after the next driver had claimed that."""

    inherit: Trigger
    replace: Trigger
    apply: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("inherit",    ANY,      ALIVE,    "is_committing",
            "take_over",   "a driver is taken for dead amid a commit"),
        Ignore("inherit", ANY,                "not is_committing",
                           "the driver was not amid a commit"),
        Row("replace",    ALIVE,    REPLACED, None,
            None,          "the next driver claims the target"),
        Ignore("replace", (GONE, REPLACED),   None,
                           "nothing is there that could be replaced"),
        Row("apply",      ALIVE,    STAY,     "has_batch",
            "commit_next", "its commit takes effect before the next driver begins"),
        Row("apply",      REPLACED, STAY,     "has_batch",
            "try_next",    "its commit comes after the next driver has claimed the target"),
    )
    # fmt: on

    def is_committing(self) -> bool:
        return not self.system.sink.batch.empty()

    def has_batch(self) -> bool:
        return not self.batch.empty() and self.system.driver.state != FINISHED

    def take_over(self) -> None:
        self.batch.clear()
        self.batch.drain(self.system.sink.batch)

    def commit_next(self) -> None:
        self.system.sink.take(self.batch.pop())

    def try_next(self) -> None:
        checkpoint = self.batch.pop()
        if not self.system.sink.refuses():
            self.has_changed = True
            self.system.sink.take(checkpoint)
