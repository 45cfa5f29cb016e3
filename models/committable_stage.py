"""The user's operators with parallelism 1 over the committables of a checkpoint: in front of the
committers in the tasks, and in front of the global committer.

Decides that the operators get each completed checkpoint exactly once, whole, in order and one at a
time; that a failure is tried again a bounded number of times, and then ends the job. A checkpoint
that is stored holds the operators' state, and the input of what they have not processed, so that a
driver may die at any moment. Leaves to the operators what comes out. Source: the pre-commit and
post-commit topologies of Apache Flink's sinks (rule C19 in docs/protocol.md).
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
    from epochgate.models.committing_job import CommittingJob

IDLE, PROCESSING, GIVEN_UP = "idle", "processing", "given_up"


class StagePort(Port):
    """The operators, and where their input is kept."""

    @fallible("retry_later, refused, expire", succeeds="processed", within="commit_timeout_s")
    def process(self, checkpoint: int, tries: int) -> None:
        """Let the operators process the committables of this checkpoint; `tries` failed before,
        and each of them makes the pause before this one longer.
        """

    def take(self, checkpoint: int, outcome: Opaque) -> None:
        """This is what has come out, and the operators' state behind it."""

    def keep(self, checkpoint: int, earlier: int) -> None:
        """The checkpoint that is about to be stored holds the input of an earlier one."""


class CommittableStage(Machine):
    """The operators between two steps of a commit; none lets each checkpoint pass at once."""

    STATES = (IDLE, PROCESSING, GIVEN_UP)
    INITIAL = IDLE
    TERMINAL = (GIVEN_UP,)

    system: CommittingJob
    operators: StagePort = output(StagePort)

    waiting: Fifo[int] = Channel("checkpoints", "checkpoints")
    """The checkpoints that are not processed; the oldest is under way."""
    tries: int = Int("commit_retries")

    take: Trigger
    carry: Trigger
    processed: Trigger
    retry_later: Trigger
    refused: Trigger
    expire: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("take",      IDLE,       STAY,       "not has_operators",
            "let_pass",                "there is nothing between"),
        Row("take",      IDLE,       PROCESSING, "has_operators",
            "enter, process",          "all committables of the checkpoint have come"),
        Row("take",      PROCESSING, STAY,       None,
            "enter",                   "an earlier checkpoint is under way"),
        Ignore("take",   GIVEN_UP,               None,
                                       "the job goes down"),

        Row("carry",     PROCESSING, STAY,       None,
            "carry_input",             "a driver may die before the operators have processed it"),
        Ignore("carry",  IDLE,                   None,
                                       "the operators have processed everything"),

        Row("processed", PROCESSING, IDLE,       "is_asked and is_last",
            "hand_over",               "the operators have processed every checkpoint"),
        Row("processed", PROCESSING, STAY,       "is_asked and not is_last",
            "hand_over, process",      "the next checkpoint is due"),
        Ignore("processed", PROCESSING,          "not is_asked",
                                       "the answer is to an earlier try"),
        Ignore("processed", (IDLE, GIVEN_UP),    None,
                                       "the operators are not asked for anything"),

        Row("retry_later", PROCESSING, STAY,     "is_asked and may_retry",
            "process_again",           "the operators could not process it now"),
        Row("retry_later", PROCESSING, GIVEN_UP, "is_asked and not may_retry",
            "fail_job",                "it could not be processed in any allowed try"),
        Ignore("retry_later", PROCESSING,        "not is_asked",
                                       "the answer is to an earlier try"),
        Ignore("retry_later", (IDLE, GIVEN_UP),  None,
                                       "the operators are not asked for anything"),

        Row("refused",   PROCESSING, GIVEN_UP,   "is_asked",
            "fail_job",                "an operator has failed: a retry would not help"),
        Ignore("refused", PROCESSING,            "not is_asked",
                                       "the answer is to an earlier try"),
        Ignore("refused", (IDLE, GIVEN_UP),      None,
                                       "the operators are not asked for anything"),

        Row("expire",    PROCESSING, GIVEN_UP,   "is_asked",
            "fail_job",                "an operator has not answered within its limit"),
        Ignore("expire", PROCESSING,             "not is_asked",
                                       "the limit was for an earlier try"),
        Ignore("expire", (IDLE, GIVEN_UP),       None,
                                       "the operators are not asked for anything"),
    )
    # fmt: on

    def has_operators(self) -> bool:
        """Return whether there are any; here there are none."""
        return False

    def is_asked(self, checkpoint: int, tries: int) -> bool:
        return checkpoint == self.waiting.head() and tries == self.tries

    def is_last(self) -> bool:
        return self.waiting.size() == 1

    def may_retry(self) -> bool:
        return self.tries < self.system.commit_retries

    def is_settled(self) -> bool:
        return self.state == IDLE

    def let_pass(self, checkpoint: int) -> None:
        self.hand_on(checkpoint)

    def enter(self, checkpoint: int) -> None:
        self.waiting.push(checkpoint)

    def process(self) -> None:
        self.operators.process(self.waiting.head(), self.tries)

    def process_again(self) -> None:
        self.tries += 1
        self.process()

    def hand_over(self, checkpoint: int, tries: int, outcome: Opaque) -> None:
        self.tries = 0
        self.operators.take(checkpoint, outcome)
        self.hand_on(self.waiting.pop())

    def hand_on(self, checkpoint: int) -> None:
        """Pass the checkpoint to the next step of the commit; here there is none."""

    def carry_input(self, checkpoint: int) -> None:
        for earlier in self.waiting.take_all():
            self.waiting.push(earlier)
            self.operators.keep(checkpoint, earlier)

    def fail_job(self, checkpoint: int, tries: int, reason: Opaque) -> None:
        self.system.lifecycle.give_up(reason)


class StageBefore(CommittableStage):
    """The operators in front of the committers in the tasks."""

    def has_operators(self) -> bool:
        return self.system.operators_before > 0

    def hand_on(self, checkpoint: int) -> None:
        if self.system.task_committers > 0:
            self.system.committable_collector.expect(checkpoint)
            for s in range(self.system.subtasks):
                self.system.subtask_committer[s].due(checkpoint)
        else:
            self.system.stage_behind.take(checkpoint)


class StageBehind(CommittableStage):
    """The operators in front of the global committer."""

    def has_operators(self) -> bool:
        return self.system.operators_behind > 0

    def hand_on(self, checkpoint: int) -> None:
        self.system.committer.due(checkpoint)
