"""What stands behind the committers: the global committer of production, and the sink it commits to.

The sink accepts a commit, postpones it or refuses it, and records what has become visible, against
which the claims of `epochgate.models.commit` are made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import ANY, Array, Bool, Int, Machine, Row, Trigger
from epochgate.models.committer import IDLE, GlobalCommitter

if TYPE_CHECKING:
    from epochgate.models.commit import Commit

COMMITTED = "committed"


class Committer(GlobalCommitter):
    """The global committer that runs in production, which a restore begins anew."""

    restart: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *GlobalCommitter.ROWS,
        Row("restart", ANY, IDLE, None, "forget", "a new process knows nothing of the old"),
    )
    # fmt: on

    def forget(self) -> None:
        self.wanted = 0
        self.asked = 0
        self.tries = 0


class Lifecycle(Machine):
    """The rest of the job, as the global committer sees it."""

    system: Commit

    def reconsider(self) -> None:
        pass

    def give_up(self) -> None:
        pass


class Sink(Machine):
    """What the world sees: port `sink` of the committer."""

    STATES = ("idle", "asked")
    INITIAL = "idle"

    system: Commit

    asked_for: int = Int("checkpoints")
    is_visible: list[bool] = Array(Bool(), "checkpoints")
    postponed: int = Int("postponements")

    ask: Trigger
    accept: Trigger
    postpone: Trigger
    refuse: Trigger
    forget: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("ask",      "idle",  "asked", None,           "note",                 "the global committer commits"),
        Row("accept",   "asked", "idle",  None,           "show, report",         "it is done"),
        Row("postpone", "asked", "idle",  "may_postpone", "count, report_later",  "it cannot be done now"),
        Row("refuse",   "asked", "idle",  "may_postpone", "count, report_refused", "it can never be done"),
        Row("forget",   ANY,     "idle",  None,           None,                   "whoever asked is gone"),
    )
    # fmt: on

    def may_postpone(self) -> bool:
        return self.postponed < self.system.postponements

    def commit(self, checkpoint: int, tries: int) -> None:
        self.ask(checkpoint)

    def note(self, checkpoint: int) -> None:
        self.asked_for = checkpoint

    def show(self) -> None:
        for k in range(self.system.checkpoints):
            if k < self.asked_for and self.system.collector.expected[k] > 0:
                assert self.system.checkpoint.is_completed[k], (
                    "nothing is visible before its checkpoint is completed"
                )
                self.show_one(k)

    def show_one(self, k: int) -> None:
        for w in range(self.system.W):
            assert (
                self.system.committable[k, w].state == COMMITTED
                or w >= self.system.job.written_by[k]
            ), "a checkpoint becomes visible as a whole"
        self.is_visible[k] = True

    def report(self) -> None:
        self.system.committer.committed()

    def count(self) -> None:
        self.postponed += 1

    def report_later(self) -> None:
        self.system.committer.retry_later()

    def report_refused(self) -> None:
        self.system.committer.refused()
