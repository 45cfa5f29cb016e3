"""The witness of what was told about a checkpoint, and from which one a start would resume: the
record against which I8 is claimed.

A driver that ends, or dies at any moment, leaves a store; the next start resumes from the newest
checkpoint in it. What the first driver has told must therefore agree with the store at every
moment, and a driver that has resumed must keep what the one before it has told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochgate.fsm import STAY, Int, Row, Trigger
from epochgate.models.closed.surroundings.driver import (
    Launch,
)
from epochgate.models.closed.surroundings.store import Store
from epochgate.models.closed.surroundings.user import User
from epochgate.models.closed.surroundings.wire import Wire

if TYPE_CHECKING:
    from epochgate.models.closed.resuming import ResumingJob


class KeptStore(Store):
    """The store, and what the next start finds in it."""

    kept: int = Int("checkpoints")
    """The newest checkpoint in it; 0 for none."""

    # fmt: off
    ROWS = (
        *(row for row in Store.ROWS if row.trigger not in ("finish_save", "lose_answer")),

        Row("finish_save", "ready", STAY, "is_saving",
            "keep_it, report_stored",                 "it is durable"),
        Row("lose_answer", "ready", STAY, "is_saving and may_fail",
            "keep_it, spend_failure, report_unknown", "it is durable, and the store cannot tell"),
    )
    # fmt: on

    def keep_it(self) -> None:
        self.kept = self.system.checkpoint.number


class ToldUser(User):
    """A coordinator that remembers what it was told, also by a driver before."""

    told_completed: int = Int("checkpoints")
    """The newest checkpoint that it was told is completed; 0 for none."""
    told_aborted: int = Int("checkpoints")
    """The newest checkpoint that it was told is aborted; 0 for none."""

    def complete(self, checkpoint: int) -> None:
        self.is_owed_an_end = False
        self.told_completed = checkpoint

    def aborted(self, checkpoint: int) -> None:
        self.is_owed_an_end = False
        self.told_aborted = checkpoint

    def reset_to(self, checkpoint: int) -> None:
        assert checkpoint == 0 or checkpoint != self.told_aborted, (
            "I8: a coordinator that was told that a checkpoint is aborted is not restored from it"
        )
        assert checkpoint >= self.told_completed, (
            "I8: a coordinator that was told that a checkpoint is completed is not restored from "
            "an older one"
        )
        self.begin_from(checkpoint)
        self.answer_restore()


class ToldWire(Wire):
    """The messages to the processes of one subtask."""

    told_completed: int = Int("checkpoints")
    told_aborted: int = Int("checkpoints")

    def complete(self, identity: int, checkpoint: int) -> None:
        if self.reaches(identity):
            self.told_completed = checkpoint
            self.system.task[self.subtask].complete(checkpoint)

    def aborted(self, identity: int, checkpoint: int) -> None:
        if self.reaches(identity):
            self.told_aborted = checkpoint
            self.system.task[self.subtask].aborted(checkpoint)


class Resumption(Launch):
    """The driver begins, perhaps from what an earlier run has left.

    That run has announced the checkpoint as completed, or has ended in doubt and announced nothing.
    """

    system: ResumingJob

    resume: Trigger
    resume_in_doubt: Trigger
    resume_given: Trigger

    # fmt: off
    ROWS = (
        *Launch.ROWS,

        Row("resume",          "before", "after", None,
            "find_checkpoint, tell_of_it, start", "there is a completed checkpoint"),
        Row("resume_given",    "before", "after", None,
            "find_checkpoint, tell_of_it, adopt_snapshots, start", "the store holds a checkpoint, the job a snapshot"),
        Row("resume_in_doubt", "before", "after", None,
            "find_checkpoint, start",             "there is a checkpoint, and the earlier run could not tell"),
    )
    # fmt: on

    def find_checkpoint(self) -> None:
        self.system.store.kept = 1
        self.system.checkpoint.restore(1, 1)

    def adopt_snapshots(self) -> None:
        for c in range(self.system.coordinators):
            self.system.holder[c].adopt_batch_snapshot()

    def tell_of_it(self) -> None:
        for c in range(self.system.coordinators):
            self.system.user[c].told_completed = 1
        for s in range(self.system.subtasks):
            self.system.wire[s].told_completed = 1
