"""The target of the closed commits, with the shell that holds committables in front of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import ANY, STAY, Array, Bool, Channel, Fifo, Int, Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.closed.surroundings.commits import FINISHED

if TYPE_CHECKING:
    from epochgate.models.closed.commits import CommitJob


class Sink(Environment):
    """The shell that holds committables, and the target behind it: port `sink` of the committer."""

    STATES = ("ready", "committing")
    INITIAL = "ready"

    system: CommitJob

    is_held: list[bool] = Array(Bool(), "checkpoints")
    """The driver has the committables of this checkpoint."""
    is_visible: list[bool] = Array(Bool(), "checkpoints")
    """The target has committed under this key."""
    batch: Fifo[int] = Channel("checkpoints", "checkpoints")
    """What the commit under way has not reached."""
    asked: int = Int("checkpoints")
    tries: int = Int("commit_retries")
    answered: int = Int("checkpoints")
    """The commit that was answered last, and its tries; 0 for none."""
    answered_tries: int = Int("commit_retries")
    has_applied: bool = Bool()
    """The commit under way has shown something that no commit before had."""

    ask: Trigger
    apply: Trigger
    answer: Trigger
    put_off: Trigger
    refuse: Trigger
    rule_out: Trigger
    answer_again: Trigger
    forget: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("ask",          "ready",      "committing", None,
            "note",                                       "the committer asks for a commit"),
        Row("apply",        "committing", STAY,         "has_batch",
            "commit_next",                                "the oldest checkpoint of the commit takes effect"),
        Row("answer",       "committing", "ready",      "not has_batch and has_news",
            "note_answer, report_committed",              "every checkpoint of it has"),
        Row("answer",       "committing", "ready",      "not has_batch and not has_news",
            "note_answer, report_before",                 "every checkpoint of it had before"),
        Row("put_off",      "committing", "ready",      "may_fail",
            "spend_failure, note_answer, report_later",   "it fails before, amid or after that"),
        Row("refuse",       "committing", "ready",      "may_fail",
            "spend_failure, note_answer, report_refused", "the same, for good"),
        Row("rule_out",     "committing", "ready",      "may_fail",
            "spend_failure, note_answer, report_never",   "the same, and it never will take effect, for all it knows"),
        Row("answer_again", ANY,          STAY,         "has_answered",
            "repeat",                                     "answers to an earlier commit come too late"),
        Row("forget",       ANY,          "ready",      None,
            "lose_memory",                                "the driver is gone"),
    )
    # fmt: on

    def has_batch(self) -> bool:
        return not self.batch.empty()

    def has_news(self) -> bool:
        return self.has_applied

    def may_fail(self) -> bool:
        return self.system.budget.has_failures()

    def has_answered(self) -> bool:
        return self.answered > 0 and self.system.driver.state != FINISHED

    def note(self, checkpoint: int, tries: int) -> None:
        self.asked = checkpoint
        self.tries = tries
        self.has_applied = False

    def commit_next(self) -> None:
        checkpoint = self.batch.pop()
        assert checkpoint <= self.system.store.completed, (
            "C4: nothing takes effect before its checkpoint is durable"
        )
        if not self.is_known(checkpoint):
            self.is_visible[checkpoint - 1] = True
            self.has_applied = True
            for s in range(self.system.subtasks):
                for i in range(self.system.items):
                    self.system.committable[s, i].take_effect(checkpoint)

    def is_known(self, checkpoint: int) -> bool:
        """Whether the target has committed this checkpoint before."""
        return self.is_visible[checkpoint - 1]

    def note_answer(self) -> None:
        self.batch.clear()
        self.answered = self.asked
        self.answered_tries = self.tries
        self.has_applied = False

    def spend_failure(self) -> None:
        self.system.budget.failures += 1

    def report_committed(self) -> None:
        self.system.committer.committed(self.answered, self.answered_tries)

    def report_before(self) -> None:
        self.system.committer.already_committed(self.answered, self.answered_tries)

    def report_later(self) -> None:
        self.system.committer.retry_later(self.answered, self.answered_tries, "the sink is busy")

    def report_refused(self) -> None:
        self.system.committer.refused(self.answered, self.answered_tries, "the sink refuses it")

    def report_never(self) -> None:
        self.system.committer.impossible(self.answered, self.answered_tries, "it is impossible")

    def repeat(self) -> None:
        self.report_committed()
        self.report_before()
        self.report_later()
        self.report_refused()
        self.report_never()

    def lose_memory(self) -> None:
        self.batch.clear()
        self.has_applied = False
        self.asked = 0
        self.tries = 0
        self.answered = 0
        self.answered_tries = 0
        for k in range(self.system.checkpoints):
            self.is_held[k] = False

    # port `sink` of the committer

    def carry(self, checkpoint: int, earlier: int) -> None:
        assert self.is_held[earlier - 1], "the driver has the committables of what it stores"
        if not self.system.checkpoint.is_empty(earlier):
            self.system.checkpoint.carried[earlier - 1] = True

    def cover(self, checkpoint: int) -> None:
        assert self.is_held[checkpoint - 1], "the driver has the committables of what it commits"
        self.batch.push(checkpoint)

    def commit(self, checkpoint: int, tries: int) -> None:
        assert tries == 0 or tries == self.answered_tries + 1, "each commit has tries of its own"
        self.ask(checkpoint, tries)

    def settled(self, checkpoint: int) -> None:
        assert self.is_visible[checkpoint - 1], "what leaves the ledger has taken effect"
        self.is_held[checkpoint - 1] = False
