"""The global committer: makes what completed checkpoints hold visible, in order, and only after
they are durable; and the ledger of what is completed and not known to be committed.

Decides that nothing is committed before its checkpoint is completed, that a commit which fails is
tried again a bounded number of times, and that a missed notice is subsumed by a later one: a commit
covers every checkpoint in the ledger. The ledger travels with every checkpoint that is stored, and
the start of a driver takes it over from the restored one, so that a driver may die at any moment.
Leaves to the sink that committing twice is the same as once, and to `PostCommit` what is done once
a checkpoint is visible. Source: Apache Flink's
GlobalCommitterOperator (rules C2 to C6 in docs/protocol.md).
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

IDLE, COMMITTING, GIVEN_UP = "idle", "committing", "given_up"


class SinkPort(Port):
    """The sink, which makes commits, and the place where the committables of the checkpoints in the
    ledger are kept.
    """

    def carry(self, checkpoint: int, earlier: int, tries: int) -> None:
        """The checkpoint that is about to be stored holds the committables of an earlier one, of
        which this number of tries have failed.
        """

    def cover(self, checkpoint: int) -> None:
        """The next commit includes this checkpoint; oldest first."""

    @fallible(
        "retry_later, left_out, refused, impossible, expire",
        succeeds="committed, already_committed",
        within="commit_timeout_s",
    )
    def commit(self, checkpoint: int, tries: int) -> None:
        """Commit what is covered, of which this is the newest; `tries` failed before, and each of
        them makes the pause before this one longer.
        """

    def settled(self, checkpoint: int) -> None:
        """The commit of this checkpoint is known."""

    def forgone(self, checkpoint: int) -> None:
        """This checkpoint has left the ledger without a commit, or without a part of it."""


class GlobalCommitter(Machine):
    """The one place from which commits are asked for."""

    STATES = (IDLE, COMMITTING, GIVEN_UP)
    INITIAL = IDLE
    TERMINAL = (GIVEN_UP,)

    system: Job
    sink: SinkPort = output(SinkPort)

    covered: Fifo[int] = Channel("checkpoints", "checkpoints")
    """The older part of the ledger: the checkpoints that the commit under way covers."""
    waiting: Fifo[int] = Channel("checkpoints", "checkpoints")
    """The newer part: those that the next commit covers too."""
    asked: int = Int("checkpoints")
    """The newest one that the last commit covers."""
    tries: int = Int("commit_retries")
    """How many tries have failed of what is covered, or comes first."""

    adopt: Trigger
    due: Trigger
    forgo: Trigger
    carry: Trigger
    committed: Trigger
    already_committed: Trigger
    left_out: Trigger
    retry_later: Trigger
    refused: Trigger
    impossible: Trigger
    expire: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("adopt",          IDLE,             STAY,       None,
            "enter_adopted",      "the restored ledger holds this checkpoint"),

        Row("due",            IDLE,             COMMITTING, None,
            "enter, commit",      "a checkpoint is completed"),
        Row("due",            COMMITTING,       STAY,       None,
            "enter",              "the next commit covers this checkpoint too"),
        Ignore("due",         GIVEN_UP,                     None,
                                  "the job goes down"),

        Row("forgo",          IDLE,             STAY,       None,
            "drop",               "a person gives the commit up while no driver runs"),

        Row("carry",          COMMITTING,       STAY,       None,
            "carry_ledger",       "a driver may die before it knows what was committed"),
        Row("carry",          IDLE,             STAY,       None,
            "carry_ledger",       "the ledger is empty, unless a person gives up a part of it"),

        Row("committed",      COMMITTING,       IDLE,       "is_asked and not has_more",
            "settle, reconsider", "the output of all completed checkpoints is visible"),
        Row("committed",      COMMITTING,       STAY,       "is_asked and has_more",
            "settle, commit",     "a newer checkpoint was completed meanwhile"),
        Ignore("committed",   COMMITTING,                   "not is_asked",
                                  "the answer is to an earlier commit"),
        Ignore("committed",   (IDLE, GIVEN_UP),             None,
                                  "no commit is under way"),

        Row("already_committed",    COMMITTING, IDLE,       "is_asked and not has_more",
            "settle, reconsider", "an earlier commit has shown all of it, and its answer was lost"),
        Row("already_committed",    COMMITTING, STAY,       "is_asked and has_more",
            "settle, commit",     "what was completed meanwhile is not committed"),
        Ignore("already_committed", COMMITTING,             "not is_asked",
                                  "the answer is to an earlier commit"),
        Ignore("already_committed", (IDLE, GIVEN_UP),       None,
                                  "no commit is under way"),

        Row("left_out",       COMMITTING,       STAY,       "is_asked and not is_newest",
            "leave_out",          "the commit goes on without the checkpoint that failed"),
        Row("left_out",       COMMITTING,       IDLE,       "is_asked and is_newest and not has_more",
            "leave_out, end_tries, reconsider", "the newest one failed, and the job goes on without it"),
        Row("left_out",       COMMITTING,       STAY,       "is_asked and is_newest and has_more",
            "leave_out, end_tries, commit", "the newest one failed, and a newer was completed meanwhile"),
        Ignore("left_out",    COMMITTING,                   "not is_asked",
                                  "the answer is to an earlier commit"),
        Ignore("left_out",    (IDLE, GIVEN_UP),             None,
                                  "no commit is under way"),

        Row("retry_later",    COMMITTING,       STAY,       "is_asked and may_retry",
            "commit_again",       "the sink could not commit now"),
        Row("retry_later",    COMMITTING,       GIVEN_UP,   "is_asked and not may_retry",
            "fail_job",           "the sink could not commit in any allowed try"),
        Ignore("retry_later", COMMITTING,                   "not is_asked",
                                  "the answer is to an earlier commit"),
        Ignore("retry_later", (IDLE, GIVEN_UP),             None,
                                  "no commit is under way"),

        Row("refused",        COMMITTING,       GIVEN_UP,   "is_asked",
            "fail_job",           "the sink refuses: a retry would not help"),
        Ignore("refused",     COMMITTING,                   "not is_asked",
                                  "the answer is to an earlier commit"),
        Ignore("refused",     (IDLE, GIVEN_UP),             None,
                                  "no commit is under way"),

        Row("impossible",     COMMITTING,       GIVEN_UP,   "is_asked",
            "fail_job",           "it can never be committed, and stays in the stored ledger"),
        Ignore("impossible",  COMMITTING,                   "not is_asked",
                                  "the answer is to an earlier commit"),
        Ignore("impossible",  (IDLE, GIVEN_UP),             None,
                                  "no commit is under way"),

        Row("expire",         COMMITTING,       GIVEN_UP,   "is_asked",
            "fail_job",           "the sink has not answered within its limit; the next start commits again"),
        Ignore("expire",      COMMITTING,                   "not is_asked",
                                  "the limit was for an earlier commit"),
        Ignore("expire",      (IDLE, GIVEN_UP),             None,
                                  "no commit is under way"),
    )
    # fmt: on

    def has_more(self) -> bool:
        return not self.waiting.empty()

    def may_retry(self) -> bool:
        return self.tries < self.system.commit_retries

    def is_asked(self, checkpoint: int, tries: int) -> bool:
        return checkpoint == self.asked and tries == self.tries

    def is_settled(self) -> bool:
        return self.state == IDLE

    def is_newest(self, checkpoint: int, tries: int, failed: int) -> bool:
        return failed == self.asked

    def enter_adopted(self, checkpoint: int, tries: int) -> None:
        if self.waiting.empty():
            self.tries = tries
        self.waiting.push(checkpoint)

    def enter(self, checkpoint: int) -> None:
        self.waiting.push(checkpoint)

    def drop(self, checkpoint: int) -> None:
        for held in self.waiting.take_all():
            if held == checkpoint:
                self.sink.forgone(checkpoint)
            else:
                self.waiting.push(held)

    def carry_ledger(self, checkpoint: int) -> None:
        for earlier in self.covered.take_all():
            self.covered.push(earlier)
            self.sink.carry(checkpoint, earlier, self.tries)
        for earlier in self.waiting.take_all():
            self.waiting.push(earlier)
            self.sink.carry(checkpoint, earlier, 0)

    def commit(self) -> None:
        self.ask()

    def commit_again(self) -> None:
        self.tries += 1
        self.ask()

    def ask(self) -> None:
        self.covered.drain(self.waiting)
        for checkpoint in self.covered.take_all():
            self.covered.push(checkpoint)
            self.asked = checkpoint
            self.sink.cover(checkpoint)
        self.sink.commit(self.asked, self.tries)

    def settle(self) -> None:
        self.end_tries()
        for checkpoint in self.covered.take_all():
            self.sink.settled(checkpoint)
            self.system.post_commit.owe(checkpoint)

    def end_tries(self) -> None:
        self.tries = 0

    def leave_out(self, checkpoint: int, tries: int, failed: int) -> None:
        for covered in self.covered.take_all():
            if covered < failed:
                self.sink.settled(covered)
                self.system.post_commit.owe(covered)
            elif covered == failed:
                self.sink.forgone(failed)
            else:
                self.covered.push(covered)

    def reconsider(self) -> None:
        self.system.lifecycle.reconsider()

    def fail_job(self, checkpoint: int, tries: int, reason: Opaque) -> None:
        self.system.lifecycle.give_up(reason)
