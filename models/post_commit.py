"""The work after commits: what a user wants done once a checkpoint is visible, such as compacting,
telling others, or keeping statistics.

Decides that it is done at least once for each commit, in the order of the commits and one at a
time; that a failure is tried again a bounded number of times, and then waits for the next commit;
that work which does not end within its limit waits for the next commit too; and that it ends no
job. A debt is a checkpoint that is committed and whose work is not known to be
done: debts travel with every checkpoint that is stored, as the ledger does, and the start of a
driver takes them over. Neither a checkpoint nor a commit waits for the work; a job that finishes
does, unless the work has failed in every try.

Leaves to the shell what the work is, and the pauses between tries. Source: Apache Flink's
post-commit topology of a sink, whose work holds up checkpoints (rules C7 to C9 in docs/protocol.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import (
    STAY,
    Channel,
    Fifo,
    Ignore,
    Int,
    Machine,
    Opaque,
    Port,
    Row,
    Trigger,
    fallible,
    output,
)

if TYPE_CHECKING:
    from epochgate.models.job import Job

IDLE, WORKING, PUT_OFF = "idle", "working", "put_off"


class WorkPort(Port):
    """The place where the work is done."""

    @fallible("failed, expire", succeeds="done", within="commit_timeout_s")
    def work(self, checkpoint: int, tries: int) -> None:
        """Do the work of this checkpoint's commit; `tries` failed before, and each of them makes
        the pause before this one longer.
        """

    def record(self, checkpoint: int, earlier: int) -> None:
        """The checkpoint that is about to be stored says that this earlier one's work is owed."""

    def stalled(self, checkpoint: int, reason: Opaque) -> None:
        """This work has failed in every try, or has not ended within its limit, and waits for the
        next commit or the next start.
        """

    def release(self, checkpoint: int) -> None:
        """Nothing more is done with this checkpoint: its committables are needed no more."""


class PostCommit(Machine):
    """The one place from which work after a commit is asked for."""

    STATES = (IDLE, WORKING, PUT_OFF)
    INITIAL = IDLE

    system: Job
    worker: WorkPort = output(WorkPort)

    owed: Fifo[int] = Channel("checkpoints", "checkpoints")
    """The debts, oldest first; the work of the oldest is under way, or put off."""
    tries: int = Int("commit_retries")

    owe: Trigger
    carry: Trigger
    done: Trigger
    failed: Trigger
    expire: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("owe",      IDLE,               STAY,    "not has_work",
            "release",             "the job has nothing to do after a commit"),
        Row("owe",      IDLE,               WORKING, "has_work",
            "enter, begin",        "the checkpoint is visible"),
        Row("owe",      WORKING,            STAY,    None,
            "enter",               "the work of an earlier commit is under way"),
        Row("owe",      PUT_OFF,            WORKING, None,
            "enter, begin",        "the work that was put off is tried again, oldest first"),

        Row("carry",    (WORKING, PUT_OFF), STAY,    None,
            "record_debts",        "a driver may die before the work is done"),
        Ignore("carry", IDLE,                        None,
                                   "the work of every commit is done"),

        Row("done",     WORKING,            IDLE,    "is_asked and is_last",
            "settle, reconsider",  "the work of every commit is done"),
        Row("done",     WORKING,            STAY,    "is_asked and not is_last",
            "settle, begin",       "the work of the next commit is due"),
        Ignore("done",  WORKING,                     "not is_asked",
                                   "the answer is of work that has exceeded its limit"),
        Ignore("done",  (IDLE, PUT_OFF),             None,
                                   "the answer is of work that has exceeded its limit"),

        Row("failed",   WORKING,            STAY,    "is_asked and may_retry",
            "work_again",          "it may succeed later"),
        Row("failed",   WORKING,            PUT_OFF, "is_asked and not may_retry",
            "tell, reconsider",    "it has failed in every try, and waits for the next commit"),
        Ignore("failed", WORKING,                    "not is_asked",
                                   "the answer is of work that has exceeded its limit"),
        Ignore("failed", (IDLE, PUT_OFF),            None,
                                   "the answer is of work that has exceeded its limit"),

        Row("expire",   WORKING,            PUT_OFF, "is_asked",
            "tell, reconsider",    "it has not ended within its limit, and waits for the next commit"),
        Ignore("expire", WORKING,                    "not is_asked",
                                   "the limit was for earlier work"),
        Ignore("expire", (IDLE, PUT_OFF),            None,
                                   "no work is under way"),
    )
    # fmt: on

    def has_work(self) -> bool:
        return self.system.after_commit > 0

    def is_last(self) -> bool:
        return self.owed.size() == 1

    def is_asked(self, checkpoint: int, tries: int) -> bool:
        return checkpoint == self.owed.head() and tries == self.tries

    def may_retry(self) -> bool:
        return self.tries < self.system.commit_retries

    def is_settled(self) -> bool:
        """Return whether a job that finishes need not wait for it."""
        return self.state != WORKING

    def release(self, checkpoint: int) -> None:
        self.worker.release(checkpoint)

    def enter(self, checkpoint: int) -> None:
        self.owed.push(checkpoint)

    def begin(self) -> None:
        self.tries = 0
        self.worker.work(self.owed.head(), self.tries)

    def work_again(self) -> None:
        self.tries += 1
        self.worker.work(self.owed.head(), self.tries)

    def record_debts(self, checkpoint: int) -> None:
        for earlier in self.owed.take_all():
            self.owed.push(earlier)
            self.worker.record(checkpoint, earlier)

    def settle(self) -> None:
        self.worker.release(self.owed.pop())

    def reconsider(self) -> None:
        self.system.lifecycle.reconsider()

    def tell(self, checkpoint: int, tries: int, reason: Opaque) -> None:
        self.worker.stalled(self.owed.head(), reason)
