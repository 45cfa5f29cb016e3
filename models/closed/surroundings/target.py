"""The target of the closed commits, with the shell that holds committables in front of it; and the
work after commits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import ANY, STAY, Array, Bool, Channel, Fifo, Int, Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.closed.surroundings.commits import FINISHED, UP
from epochgate.models.closed.surroundings.zombie import REPLACED
from epochgate.models.committer import IDLE

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
    """This checkpoint has taken effect, empty or not."""
    is_left_out: list[bool] = Array(Bool(), "checkpoints")
    """This checkpoint has failed for a reason that the target knows, and would again."""
    last: int = Int("checkpoints")
    """The number that the target keeps: of the newest checkpoint that has."""
    batch: Fifo[int] = Channel("checkpoints", "checkpoints")
    """What the commit under way has not reached."""
    asked: int = Int("checkpoints")
    tries: int = Int("commit_retries")
    answered: int = Int("checkpoints")
    """The commit that was answered last, and its tries; 0 for none."""
    answered_tries: int = Int("commit_retries")
    is_put_off: bool = Bool()
    """What is asked for next was tried before in vain; never so between two steps."""
    has_applied: bool = Bool()
    """The commit under way has shown something that no commit before had."""

    ask: Trigger
    apply: Trigger
    answer: Trigger
    leave_out: Trigger
    put_off: Trigger
    refuse: Trigger
    rule_out: Trigger
    hang: Trigger
    answer_again: Trigger
    forget: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("ask",          "ready",      "committing", None,
            "note",                                       "the committer asks for a commit"),
        Row("apply",        "committing", STAY,         "has_batch and not is_next_left_out",
            "commit_next",                                "the oldest checkpoint of the commit takes effect"),
        Row("answer",       "committing", "ready",      "not has_batch and has_news",
            "note_answer, report_committed",              "every checkpoint of it has"),
        Row("answer",       "committing", "ready",      "not has_batch and not has_news",
            "note_answer, report_before",                 "every checkpoint of it had before"),
        Row("leave_out",    "committing", STAY,         "has_batch and may_leave_out and not is_at_last",
            "spend_omission, forgo_next",                 "the oldest fails for a reason that it knows, and it goes on"),
        Row("leave_out",    "committing", "ready",      "has_batch and may_leave_out and is_at_last",
            "spend_omission, note_answer, forgo_last",    "the newest fails for a reason that it knows"),
        Row("put_off",      "committing", "ready",      "may_fail",
            "spend_failure, note_answer, expect_again, report_later", "it fails before, amid or after that"),
        Row("refuse",       "committing", "ready",      "may_fail",
            "spend_failure, note_answer, report_refused", "the same, for good"),
        Row("rule_out",     "committing", "ready",      "may_fail",
            "spend_failure, note_answer, report_never",   "the same, and it never will take effect, for all it knows"),
        Row("hang",         "committing", "ready",      "may_fail",
            "spend_failure, leave_behind, note_answer, report_overdue", "it does not answer within the limit, and goes on"),
        Row("answer_again", ANY,          STAY,         "has_answered",
            "repeat",                                     "answers to an earlier commit come too late"),
        Row("forget",       ANY,          "ready",      None,
            "lose_memory, keep_number",                   "the driver is gone"),
    )
    # fmt: on

    def has_batch(self) -> bool:
        return not self.batch.empty()

    def has_news(self) -> bool:
        return self.has_applied

    def may_fail(self) -> bool:
        return self.system.budget.has_failures()

    def is_at_last(self) -> bool:
        return self.batch.size() == 1

    def is_next_left_out(self) -> bool:
        return self.is_left_out[self.batch.head() - 1]

    def may_leave_out(self) -> bool:
        return self.is_next_left_out() or (self.may_fail() and not self.is_known(self.batch.head()))

    def has_answered(self) -> bool:
        return self.answered > 0 and self.system.driver.state != FINISHED

    def note(self, checkpoint: int, tries: int) -> None:
        self.asked = checkpoint
        self.tries = tries
        self.has_applied = False

    def commit_next(self) -> None:
        checkpoint = self.batch.pop()
        assert not self.system.store.is_forgone[checkpoint - 1], (
            "no later start commits what a person has given up"
        )
        self.take(checkpoint)

    def take(self, checkpoint: int) -> None:
        """Let a checkpoint take effect, unless the target knows it."""
        assert checkpoint <= self.system.store.completed, (
            "C4: nothing takes effect before its checkpoint is durable"
        )
        if not self.is_known(checkpoint) and not self.is_left_out[checkpoint - 1]:
            self.is_visible[checkpoint - 1] = True
            self.has_applied = True
            for s in range(self.system.subtasks):
                for i in range(self.system.items):
                    self.system.committable[s, i].take_effect(checkpoint)
            self.number(checkpoint)

    def is_known(self, checkpoint: int) -> bool:
        """Return whether the target has committed this checkpoint before."""
        return checkpoint <= self.last

    def number(self, checkpoint: int) -> None:
        """Keep the checkpoint's number, in the step in which it takes effect."""
        self.last = checkpoint

    def refuses(self) -> bool:
        """Return whether the target knows that the driver which commits was replaced."""
        return self.system.zombie.state == REPLACED

    def withdraw(self) -> None:
        """Take out what is newer than the restored checkpoint; `replay` does the rest."""
        self.last = 0
        for k in range(self.system.checkpoints):
            if k >= self.system.store.completed:
                self.is_visible[k] = False
                self.is_left_out[k] = False
                self.system.worker.is_done[k] = False
            elif self.is_visible[k]:
                self.last = k + 1

    def note_answer(self) -> None:
        self.batch.clear()
        self.answered = self.asked
        self.answered_tries = self.tries
        self.has_applied = False

    def spend_failure(self) -> None:
        self.system.budget.failures += 1

    def spend_omission(self) -> None:
        if not self.is_next_left_out():
            self.spend_failure()
            self.is_left_out[self.batch.head() - 1] = True

    def forgo_next(self) -> None:
        self.system.committer.left_out(self.asked, self.tries, self.batch.pop())

    def forgo_last(self) -> None:
        self.system.committer.left_out(self.answered, self.answered_tries, self.answered)

    def report_committed(self) -> None:
        self.system.committer.committed(self.answered, self.answered_tries)

    def report_before(self) -> None:
        self.system.committer.already_committed(self.answered, self.answered_tries)

    def expect_again(self) -> None:
        self.is_put_off = self.tries < self.system.commit_retries

    def report_later(self) -> None:
        self.system.committer.retry_later(self.answered, self.answered_tries, "the sink is busy")

    def report_refused(self) -> None:
        self.system.committer.refused(self.answered, self.answered_tries, "the sink refuses it")

    def leave_behind(self) -> None:
        self.system.zombie.inherit()

    def report_overdue(self) -> None:
        self.system.committer.expire(self.answered, self.answered_tries, "no answer has come")

    def report_never(self) -> None:
        self.system.committer.impossible(self.answered, self.answered_tries, "it is impossible")

    def repeat(self) -> None:
        self.report_committed()
        self.report_before()
        self.forgo_last()
        self.report_later()
        self.report_refused()
        self.report_never()
        self.report_overdue()

    def lose_memory(self) -> None:
        self.batch.clear()
        self.has_applied = False
        self.asked = 0
        self.tries = 0
        self.answered = 0
        self.answered_tries = 0
        for k in range(self.system.checkpoints):
            self.is_held[k] = False

    def keep_number(self) -> None:
        """The number is the target's: each driver finds it there."""

    def tries_before(self) -> int:
        """Count the failed tries of what is asked for next, those of earlier drivers too."""
        if self.answered == 0:
            tries = self.system.store.tries
        elif self.is_put_off:
            tries = self.answered_tries + 1
        else:
            tries = 0
        return tries

    # port `sink` of the committer

    def carry(self, checkpoint: int, earlier: int, tries: int) -> None:
        self.system.checkpoint.check_saving(checkpoint)
        assert self.is_held[earlier - 1], "the driver has the committables of what it stores"
        self.system.checkpoint.carry(earlier, tries)

    def cover(self, checkpoint: int) -> None:
        assert self.is_held[checkpoint - 1], "the driver has the committables of what it commits"
        self.batch.push(checkpoint)

    def commit(self, checkpoint: int, tries: int) -> None:
        assert tries == self.tries_before(), "the tries of a commit are counted"
        self.is_put_off = False
        self.ask(checkpoint, tries)

    def settled(self, checkpoint: int) -> None:
        assert self.is_visible[checkpoint - 1], "what leaves the ledger has taken effect"

    def forgone(self, checkpoint: int) -> None:
        if self.is_left_out[checkpoint - 1] and self.system.driver.state == UP:
            self.is_held[checkpoint - 1] = False
        else:
            assert self.system.committer.state == IDLE, (
                "a commit may be given up while none is made"
            )
            self.system.store.forgone = checkpoint


class Worker(Environment):
    """The work after commits, as a user has written it: port `worker`."""

    STATES = ("resting", "busy")
    INITIAL = "resting"

    system: CommitJob

    is_done: list[bool] = Array(Bool(), "checkpoints")
    """The work of this checkpoint's commit was done at least once."""
    number: int = Int("checkpoints")
    """Whose work is under way."""
    tries: int = Int("commit_retries")
    failed: int = Int("checkpoints")
    """Whose work has just failed; 0 once something has come of it."""
    has_acted: bool = Bool()
    late: int = Int("checkpoints")
    """Whose work has hung, and may end after all; 0 for none."""

    ask: Trigger
    act: Trigger
    answer: Trigger
    fail: Trigger
    hang: Trigger
    answer_late: Trigger
    answer_again: Trigger
    forget: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("ask",    "resting", "busy",    None,
            "note",                           "the work of a commit is due"),
        Row("act",    "busy",    STAY,      "not has_done_it",
            "do_it",                          "the work has its effect"),
        Row("answer", "busy",    "resting", "has_done_it",
            "report_done",                    "it returns"),
        Row("fail",   "busy",    "resting", "may_fail",
            "spend_failure, report_failed",   "it raises, before or after its effect"),
        Row("hang",   "busy",    "resting", "may_hang",
            "note_late, report_hangs",        "it does not end within the limit"),
        Row("answer_late", "resting", STAY, "is_late",
            "report_late",                    "work that hung has ended after all"),
        Row("answer_again", ANY, STAY,    "is_driver_up",
            "repeat",                         "answers of earlier work, and its limit, come too late"),
        Row("forget", ANY,       "resting", None,
            "lose",                           "the driver is gone"),
    )
    # fmt: on

    def has_done_it(self) -> bool:
        return self.has_acted

    def may_fail(self) -> bool:
        return self.system.budget.has_failures()

    def spend_failure(self) -> None:
        self.system.budget.failures += 1

    def is_driver_up(self) -> bool:
        return self.system.driver.state == UP

    def repeat(self) -> None:
        """Number 0 stands for each checkpoint whose work is not under way."""
        self.system.post_commit.done(0, 0)
        self.system.post_commit.failed(0, 0, "late")
        self.system.post_commit.expire(0, 0, "late")

    def may_hang(self) -> bool:
        return self.system.hangs > 0 or self.may_fail()

    def note_late(self) -> None:
        if self.system.hangs == 0:
            self.spend_failure()
        self.late = self.number

    def is_late(self) -> bool:
        return self.late > 0

    def report_hangs(self) -> None:
        self.failed = self.number
        self.rest()
        self.system.post_commit.expire(self.failed, self.tries, "the work does not end")

    def report_late(self) -> None:
        number = self.late
        self.late = 0
        self.is_done[number - 1] = True
        self.system.post_commit.done(number, 0)

    def note(self, checkpoint: int, tries: int) -> None:
        self.number = checkpoint
        self.tries = tries
        self.failed = 0

    def do_it(self) -> None:
        assert self.system.sink.is_visible[self.number - 1], (
            "C7: the work begins once the checkpoint is visible"
        )
        for k in range(self.system.checkpoints):
            is_due = self.system.sink.is_visible[k] and not self.system.store.is_forgone[k]
            assert self.is_done[k] or not is_due or k + 1 >= self.number, (
                "C7: the work of commits is done in their order"
            )
        self.is_done[self.number - 1] = True
        self.has_acted = True

    def rest(self) -> None:
        self.number = 0
        self.has_acted = False

    def lose(self) -> None:
        self.rest()
        self.tries = 0
        self.failed = 0
        self.late = 0

    def report_done(self) -> None:
        number = self.number
        self.rest()
        self.system.post_commit.done(number, self.tries)

    def report_failed(self) -> None:
        self.failed = self.number
        self.rest()
        self.system.post_commit.failed(self.failed, self.tries, "the work has failed")

    # port `worker` of the work after commits

    def work(self, checkpoint: int, tries: int) -> None:
        assert self.system.sink.is_held[checkpoint - 1], "the work has the committables"
        self.ask(checkpoint, tries)

    def record(self, checkpoint: int, earlier: int) -> None:
        self.system.checkpoint.check_saving(checkpoint)
        assert self.system.sink.is_held[earlier - 1], "the driver has the committables of a debt"
        self.system.checkpoint.owing[earlier - 1] = True

    def stalled(self, checkpoint: int, reason: int) -> None:
        assert checkpoint == self.failed, "a person is told whose work is put off"
        self.failed = 0

    def release(self, checkpoint: int) -> None:
        self.system.sink.is_held[checkpoint - 1] = False
