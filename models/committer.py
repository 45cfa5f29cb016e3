"""The global committer: makes what completed checkpoints hold visible, in order, and only after
they are durable.

Decides that nothing is committed before its checkpoint is completed, that a commit which fails is
tried again a bounded number of times, and that a missed notice is subsumed by a later one: a commit
covers every checkpoint up to the one it names. Leaves to the sink that committing twice is the same
as once. Source: Apache Flink's GlobalCommitterOperator (rules C5 and C6 in docs/protocol.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import STAY, Ignore, Int, Machine, Port, Row, Trigger, output

if TYPE_CHECKING:
    from epochgate.models.job import Job

IDLE, COMMITTING, GIVEN_UP = "idle", "committing", "given_up"


class SinkPort(Port):
    """Where commits happen; the answer is `committed`, `retry_later` or `refused`."""

    def commit(self, checkpoint: int, tries: int) -> None:
        """Commit everything of every completed checkpoint up to this one; `tries` failed before."""


class GlobalCommitter(Machine):
    """The one place from which commits are asked for."""

    STATES = (IDLE, COMMITTING, GIVEN_UP)
    INITIAL = IDLE
    TERMINAL = (GIVEN_UP,)

    system: Job
    sink: SinkPort = output(SinkPort)

    wanted: int = Int("checkpoints")
    """The newest completed checkpoint."""
    asked: int = Int("checkpoints")
    """The one that the sink is committing up to."""
    tries: int = Int("commit_retries")

    due: Trigger
    committed: Trigger
    retry_later: Trigger
    refused: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("due",         IDLE,       COMMITTING, None,            "want, commit", "a checkpoint is completed"),
        Row("due",         COMMITTING, STAY,       None,            "want",         "the next commit covers it too"),
        Ignore("due",      GIVEN_UP,               None,                            "the job goes down"),

        Row("committed",   COMMITTING, IDLE,       "not has_more",  "settle",       "everything completed is visible"),
        Row("committed",   COMMITTING, STAY,       "has_more",      "commit",       "a newer checkpoint was completed meanwhile"),

        Row("retry_later", COMMITTING, STAY,       "may_retry",     "commit_again", "the sink could not do it now"),
        Row("retry_later", COMMITTING, GIVEN_UP,   "not may_retry", "fail_job",     "it could not do it in any of the tries allowed"),
        Row("refused",     COMMITTING, GIVEN_UP,   None,            "fail_job",     "trying again would not help"),
    )
    # fmt: on

    def has_more(self) -> bool:
        return self.wanted > self.asked

    def may_retry(self) -> bool:
        return self.tries < self.system.commit_retries

    def is_settled(self) -> bool:
        return self.state == IDLE

    def want(self, checkpoint: int) -> None:
        self.wanted = checkpoint

    def commit(self) -> None:
        self.asked = self.wanted
        self.tries = 0
        self.sink.commit(self.asked, 0)

    def commit_again(self) -> None:
        self.tries += 1
        self.asked = self.wanted
        self.sink.commit(self.asked, self.tries)

    def settle(self) -> None:
        self.system.lifecycle.reconsider()

    def fail_job(self) -> None:
        self.system.lifecycle.give_up()
