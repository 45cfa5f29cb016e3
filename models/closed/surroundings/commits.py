"""The surroundings of the global committer: subtasks, checkpoints, and a driver that dies."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import (
    ANY,
    Array,
    Bool,
    Ignore,
    Int,
    Machine,
    Opaque,
    Row,
    Trigger,
)
from epochgate.fsm.closed import (
    Environment,
)
from epochgate.models.committer import IDLE, GlobalCommitter
from epochgate.models.post_commit import IDLE as NOTHING_OWED, PostCommit

if TYPE_CHECKING:
    from epochgate.models.closed.commits import CommitJob

UP, DOWN, FINISHED = "up", "down", "finished"
WORKING, FAILING = "working", "failing"
OPEN, WRITING = "open", "writing"
NONE, SAVING, SAVED = "none", "saving", "saved"
UNWRITTEN, WRITTEN = "unwritten", "written"


class Committer(GlobalCommitter):
    """The global committer that runs in production; the next driver has another."""

    restart: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *GlobalCommitter.ROWS,
        Row("restart", ANY, IDLE, None, "forget", "the next driver knows nothing of this one"),
    )
    # fmt: on

    def forget(self) -> None:
        self.covered.clear()
        self.waiting.clear()
        self.asked = 0
        self.tries = 0


class PostCommitWork(PostCommit):
    """The work after commits as it runs in production; the next driver has another."""

    restart: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *PostCommit.ROWS,
        Row("restart", ANY, NOTHING_OWED, None, "forget", "the next driver knows nothing of this one"),
    )
    # fmt: on

    def forget(self) -> None:
        self.owed.clear()
        self.tries = 0


class Committable(Environment):
    """The committables of a subtask."""

    INDEX = ("subtask", "item")
    STATES = (UNWRITTEN, WRITTEN)
    INITIAL = UNWRITTEN

    system: CommitJob
    subtask: int
    item: int

    checkpoint: int = Int("checkpoints")
    """The one that it was handed over with; 0 while there is none, or that one was aborted."""
    effects: int = Int(2)
    """How often it has taken effect in the sink."""

    write: Trigger
    replay: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("write",  UNWRITTEN, WRITTEN,   "is_next", None,     "the subtask produces it"),
        Row("replay", ANY,       UNWRITTEN, None,      "forget", "the restored checkpoint does not hold it"),
    )
    # fmt: on

    def is_next(self) -> bool:
        return (
            self.system.driver.is_working()
            and not self.system.checkpoint.is_at_end()
            and all(
                self.system.committable[self.subtask, i].state == WRITTEN or i >= self.item
                for i in range(self.system.items)
            )
        )

    def hand_over(self, checkpoint: int) -> None:
        if self.state == WRITTEN and self.checkpoint == 0:
            self.checkpoint = checkpoint

    def take_back(self, checkpoint: int) -> None:
        if self.checkpoint == checkpoint:
            self.checkpoint = 0

    def forget(self) -> None:
        self.checkpoint = 0
        self.effects = 0

    def is_in(self, checkpoint: int) -> bool:
        return self.checkpoint == checkpoint

    def is_forgone(self) -> bool:
        return self.checkpoint > 0 and self.system.is_without(self.checkpoint - 1)

    def is_completed(self) -> bool:
        return self.checkpoint > 0 and self.checkpoint <= self.system.store.completed

    def take_effect(self, checkpoint: int) -> None:
        if self.checkpoint == checkpoint:
            assert self.effects == 0, "I9: a committable takes effect once"
            self.effects += 1
        is_due = self.checkpoint > 0 and self.checkpoint <= checkpoint
        assert not is_due or self.effects > 0 or self.is_forgone(), (
            "C5: checkpoints are committed in order, and none is left out"
        )


class Checkpoint(Environment):
    """The checkpoint under way, once all its parts are there."""

    STATES = (NONE, SAVING, SAVED)
    INITIAL = NONE

    system: CommitJob

    number: int = Int("checkpoints")
    carried: list[bool] = Array(Bool(), "checkpoints")
    tries: int = Int("commit_retries")
    """How often the oldest of these was tried in vain."""
    owing: list[bool] = Array(Bool(), "checkpoints")

    begin: Trigger
    persist: Trigger
    fail: Trigger
    hear: Trigger
    forget: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("begin",   NONE,   SAVING, "may_begin",
            "gather, save",         "every part is there"),
        Row("persist", SAVING, SAVED,  None,
            "store",                "the checkpoint is durable, and the driver does not know"),
        Row("fail",    SAVING, NONE,   "may_fail",
            "spend_failure, abort", "the checkpoint could not be made durable"),
        Row("hear",    SAVED,  NONE,   "has_driver",
            "complete",             "the driver knows that the checkpoint is durable"),
        Row("forget",  ANY,    NONE,   None,
            "clear, go_back",       "the driver is gone"),
    )
    # fmt: on

    def may_begin(self) -> bool:
        return self.system.driver.is_working() and self.system.store.completed < self.system.wanted

    def may_fail(self) -> bool:
        return self.has_driver() and self.system.budget.has_failures()

    def has_driver(self) -> bool:
        return self.system.driver.state == UP

    def spend_failure(self) -> None:
        self.system.budget.failures += 1

    def gather(self) -> None:
        self.number += 1
        for s in range(self.system.subtasks):
            for i in range(self.system.items):
                self.system.committable[s, i].hand_over(self.number)

    def is_at_end(self) -> bool:
        """Return whether the input ended before the last barriers."""
        return self.number >= self.system.wanted

    def save(self) -> None:
        self.system.committer.carry(self.number)
        self.system.post_commit.carry(self.number)

    def check_saving(self, checkpoint: int) -> None:
        to_be_stored = self.number if self.state == SAVING else self.system.store.newest + 1
        assert checkpoint == to_be_stored, "what is carried goes into the checkpoint to be stored"

    def carry(self, earlier: int, tries: int) -> None:
        assert not self.carried[earlier - 1], "each is carried once"
        if tries > 0:
            self.tries = tries
        self.carried[earlier - 1] = True

    def store(self) -> None:
        self.system.store.save(self.number)

    def abort(self) -> None:
        for s in range(self.system.subtasks):
            for i in range(self.system.items):
                self.system.committable[s, i].take_back(self.number)
        self.clear()

    def complete(self) -> None:
        self.clear()
        self.system.sink.is_held[self.number - 1] = True
        self.system.committer.due(self.number)

    def clear(self) -> None:
        self.tries = 0
        for k in range(self.system.checkpoints):
            self.carried[k] = False
            self.owing[k] = False

    def go_back(self) -> None:
        self.number = self.system.store.newest

    def is_empty(self, checkpoint: int) -> bool:
        return not any(self.holds(s, checkpoint) for s in range(self.system.subtasks))

    def holds(self, subtask: int, checkpoint: int) -> bool:
        return any(
            self.system.committable[subtask, i].is_in(checkpoint) for i in range(self.system.items)
        )


class Lifecycle(Machine):
    """The job's lifecycle as the committer sees it."""

    STATES = (WORKING, FAILING)
    INITIAL = WORKING

    system: CommitJob

    give_up: Trigger
    reconsider: Trigger
    restart: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("give_up",       WORKING, FAILING, None,
            "note_reason", "a commit is given up"),
        Ignore("reconsider", ANY,              None,
                           "the driver looks by itself whether everything is committed"),
        Row("restart",       ANY,     WORKING, None,
            None,          "the next driver has given nothing up"),
    )
    # fmt: on

    def note_reason(self, reason: Opaque) -> None:
        """The reason is reported, and decides nothing."""


class Driver(Environment):
    """The driver: it dies, ends when a commit was given up, and is started again until the job has
    finished.
    """

    STATES = (UP, DOWN, FINISHED)
    INITIAL = UP
    TERMINAL = (FINISHED,)

    system: CommitJob

    end: Trigger
    die: Trigger
    start: Trigger
    go_back: Trigger
    finish: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("end",    UP,   DOWN,     "has_given_up and is_settled",
            "forget",                     "the store has reported the checkpoint's outcome"),
        Row("die",    UP,   DOWN,     "may_die",
            "spend_failure, leave, forget",
                                          "the driver is killed, or taken for dead"),
        Row("start",  DOWN, UP,       "is_free",
            "claim, adopt_debts, adopt_ledger, commit_again",
                                          "the next driver begins from the newest stored checkpoint"),
        Row("go_back", DOWN, UP,      "is_free and may_lose",
            "spend_failure, lose_newest, claim, withdraw, adopt_debts, adopt_ledger, commit_again",
                                          "the newest checkpoint is lost, and the start is told so"),
        Row("finish", UP,   FINISHED, "is_done",
            None,                         "the last checkpoint is completed, and everything is committed"),
    )
    # fmt: on

    def has_given_up(self) -> bool:
        return self.system.lifecycle.state == FAILING

    def is_working(self) -> bool:
        return self.state == UP and self.system.lifecycle.state != FAILING

    def is_settled(self) -> bool:
        return self.system.checkpoint.state == NONE

    def may_die(self) -> bool:
        return self.system.budget.has_failures()

    def is_free(self) -> bool:
        """Return whether a driver can claim the store."""
        return all(self.system.doubt[k].state == OPEN for k in range(self.system.checkpoints))

    def may_lose(self) -> bool:
        return self.system.budget.has_failures() and self.system.store.has_earlier

    def is_done(self) -> bool:
        return (
            self.is_working()
            and self.system.store.completed >= self.system.wanted
            and self.is_settled()
            and self.system.committer.is_settled()
            and self.system.post_commit.is_settled()
        )

    def spend_failure(self) -> None:
        self.system.budget.failures += 1

    def leave(self) -> None:
        self.system.zombie.inherit()

    def claim(self) -> None:
        self.system.zombie.replace()

    def lose_newest(self) -> None:
        self.system.store.lose_newest()

    def withdraw(self) -> None:
        self.system.sink.withdraw()
        self.replay()

    def forget(self) -> None:
        self.system.checkpoint.forget()
        self.system.committer.restart()
        self.system.post_commit.restart()
        self.system.worker.forget()
        self.system.lifecycle.restart()
        self.system.sink.forget()
        self.replay()

    def replay(self) -> None:
        for s in range(self.system.subtasks):
            for i in range(self.system.items):
                if not self.system.committable[s, i].is_completed():
                    self.system.committable[s, i].replay()

    def adopt_debts(self) -> None:
        for k in range(self.system.checkpoints):
            if self.system.store.debts[k]:
                self.system.sink.is_held[k] = True
                self.system.post_commit.owe(k + 1)

    def adopt_ledger(self) -> None:
        tries = self.system.store.tries
        for k in range(self.system.checkpoints):
            if self.system.store.ledger[k]:
                self.system.sink.is_held[k] = True
                self.system.committer.adopt(k + 1, tries)
                tries = 0

    def commit_again(self) -> None:
        if self.system.store.completed > 0:
            self.system.sink.is_held[self.system.store.completed - 1] = True
            self.system.committer.due(self.system.store.completed)


class Budget(Environment):
    """The number of failures so far."""

    system: CommitJob

    failures: int = Int("F")
    given_up: int = Int("given_up")

    def has_failures(self) -> bool:
        return self.failures < self.system.F
