"""The way of each checkpoint through the steps of its commit, the operators between them, and the
target of the global committer.

The claim about what is stored is made where it is stored: that a checkpoint has each earlier one in
exactly one place, or that one is committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import STAY, Array, Bool, Int, Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.closed.surroundings.committing_parts import (
    BEFORE,
    BEHIND,
    DONE,
    LEDGER,
    NOWHERE,
    PLACES,
    TASKS,
)
from epochgate.models.closed.surroundings.driver import SlowSink

if TYPE_CHECKING:
    from epochgate.models.closed.committing import CommittingInSteps
    from epochgate.models.committable_stage import CommittableStage


class Way(Environment):
    """The way that each completed checkpoint has gone, for the driver and in the newest stored
    checkpoint.
    """

    system: CommittingInSteps

    place: list[int] = Array(Int(DONE, names=PLACES), "checkpoints")
    kept: list[int] = Array(Int(DONE, names=PLACES), "checkpoints")
    """Where the checkpoint under way says that it is."""
    stored: list[int] = Array(Int(DONE, names=PLACES), "checkpoints")
    was_stored: list[bool] = Array(Bool(), "checkpoints")
    completed: int = Int("checkpoints")
    """The newest that is stored; 0 for none."""
    kept_tries: int = Int("commit_retries")
    tries: int = Int("commit_retries")
    """How often the oldest one at the global committer was tried in vain, as is stored."""

    def first(self) -> int:
        """Return the place where a checkpoint begins."""
        if self.system.operators_before > 0:
            place = BEFORE
        elif self.system.task_committers > 0:
            place = TASKS
        else:
            place = self.behind_tasks()
        return place

    def behind_tasks(self) -> int:
        return BEHIND if self.system.operators_behind > 0 else LEDGER

    def is_completed(self, checkpoint: int) -> bool:
        return self.place[checkpoint - 1] > NOWHERE

    def complete(self, checkpoint: int) -> None:
        self.place[checkpoint - 1] = self.first()
        for s in range(self.system.subtasks):
            self.system.parts[s].hand_over(checkpoint)

    def pass_on(self, checkpoint: int, place: int) -> None:
        assert self.place[checkpoint - 1] == place, "a checkpoint takes one step after the other"
        for k in range(self.system.checkpoints):
            assert k + 1 >= checkpoint or not NOWHERE < self.place[k] <= place, (
                "each step passes on checkpoints in their order"
            )
        if place == LEDGER:
            self.place[checkpoint - 1] = DONE
        elif place == BEFORE and self.system.task_committers > 0:
            self.place[checkpoint - 1] = TASKS
        elif place == BEHIND:
            self.place[checkpoint - 1] = LEDGER
        else:
            self.place[checkpoint - 1] = self.behind_tasks()

    def keep(self, checkpoint: int, earlier: int, place: int) -> None:
        self.system.store.check_begun(checkpoint)
        assert self.kept[earlier - 1] == NOWHERE, "a stored checkpoint has each earlier one once"
        assert self.place[earlier - 1] == place, (
            "a stored checkpoint has earlier ones where they are"
        )
        self.kept[earlier - 1] = place

    def keep_tries(self, tries: int) -> None:
        if tries > 0:
            self.kept_tries = tries

    def check_kept(self) -> None:
        for k in range(self.system.checkpoints):
            assert (
                self.kept[k] == self.place[k] or self.place[k] == DONE or self.place[k] == NOWHERE
            ), "a stored checkpoint has each earlier one that is not committed"
            assert self.kept[k] == NOWHERE or self.kept[k] < DONE, "and none that is"

    def store(self, checkpoint: int) -> None:
        self.completed = checkpoint
        self.was_stored[checkpoint - 1] = True
        self.tries = self.kept_tries
        for k in range(self.system.checkpoints):
            self.stored[k] = self.kept[k]
        self.clear()

    def clear(self) -> None:
        self.kept_tries = 0
        for k in range(self.system.checkpoints):
            self.kept[k] = NOWHERE

    def forget(self) -> None:
        self.clear()
        for k in range(self.system.checkpoints):
            self.place[k] = self.stored[k]
            if self.completed == k + 1:
                self.place[k] = self.first()
            elif self.was_stored[k] and self.stored[k] == NOWHERE:
                self.place[k] = DONE

    def adopt(self) -> None:
        """Let the machines of the next driver go on with what the stored checkpoint says."""
        tries = self.tries
        for k in range(self.system.checkpoints):
            if self.stored[k] == LEDGER:
                self.system.committer.adopt(k + 1, tries)
                tries = 0
            elif self.stored[k] == BEHIND:
                self.system.stage_behind.take(k + 1)
            elif self.stored[k] == TASKS:
                self.system.committable_collector.expect(k + 1)
                for s in range(self.system.subtasks):
                    self.system.parts[s].adopt(k + 1)
            elif self.stored[k] == BEFORE:
                self.system.stage_before.take(k + 1)


class Before(Environment):
    """The user's operators in front of the tasks, with their state: port `operators` of `stage_before`."""

    PEERS: ClassVar[dict[str, str]] = {"stage": "stage_before"}
    STATES = ("open",)
    INITIAL = "open"

    system: CommittingInSteps
    stage: CommittableStage

    asked: int = Int("checkpoints")
    """What they are to process; 0 for none."""
    tries: int = Int("commit_retries")
    has_got: list[bool] = Array(Bool(), "checkpoints")
    """Their state: the checkpoints that they have processed."""
    kept_got: list[bool] = Array(Bool(), "checkpoints")
    stored_got: list[bool] = Array(Bool(), "checkpoints")

    finish: Trigger
    put_off: Trigger
    refuse: Trigger
    hang: Trigger
    late: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("finish",  "open", STAY, "is_busy",
            "report_processed",              "they have processed the checkpoint"),
        Row("put_off", "open", STAY, "is_busy and may_fail",
            "spend_failure, report_later",   "they cannot now"),
        Row("refuse",  "open", STAY, "is_busy and may_fail",
            "spend_failure, report_refused", "they have failed"),
        Row("hang",    "open", STAY, "is_busy and may_fail",
            "spend_failure, report_hangs",   "they do not answer within the limit"),
        Row("late",    "open", STAY, None,
            "repeat_answers",                "answers to earlier tries come too late"),
    )
    # fmt: on

    def is_busy(self) -> bool:
        return self.asked > 0

    def may_fail(self) -> bool:
        return self.system.budget.has_failures()

    def spend_failure(self) -> None:
        self.system.budget.failures += 1

    def taken(self) -> int:
        """The checkpoint that was asked for, which is not any more."""
        checkpoint = self.asked
        self.asked = 0
        return checkpoint

    def report_processed(self) -> None:
        checkpoint = self.taken()
        self.stage.processed(checkpoint, self.tries, checkpoint + self.place())

    def report_later(self) -> None:
        self.stage.retry_later(self.taken(), self.tries, "they are busy")

    def report_refused(self) -> None:
        self.stage.refused(self.taken(), self.tries, "they have failed")

    def report_hangs(self) -> None:
        self.stage.expire(self.taken(), self.tries, "they do not answer")

    def repeat_answers(self) -> None:
        for k in range(self.system.checkpoints):
            for tries in range(self.system.tries):
                if k + 1 != self.asked or tries != self.tries:
                    self.stage.processed(k + 1, tries, 0)
                    self.stage.retry_later(k + 1, tries, "late")
                    self.stage.refused(k + 1, tries, "late")
                    self.stage.expire(k + 1, tries, "late")

    def snapshot(self) -> None:
        for k in range(self.system.checkpoints):
            self.kept_got[k] = self.has_got[k]

    def store(self) -> None:
        for k in range(self.system.checkpoints):
            self.stored_got[k] = self.kept_got[k]
        self.clear()

    def clear(self) -> None:
        for k in range(self.system.checkpoints):
            self.kept_got[k] = False

    def forget(self) -> None:
        self.asked = 0
        self.tries = 0
        self.clear()
        for k in range(self.system.checkpoints):
            self.has_got[k] = self.stored_got[k]

    def place(self) -> int:
        return BEFORE

    # port `operators`

    def process(self, checkpoint: int, tries: int) -> None:
        assert self.system.way.place[checkpoint - 1] == self.place(), (
            "operators process what has come to them"
        )
        assert tries == 0 or tries == self.tries + 1, "tries are counted"
        self.asked = checkpoint
        self.tries = tries

    def take(self, checkpoint: int, outcome: int) -> None:
        assert outcome == checkpoint + self.place(), "what has come out is what goes on"
        assert not self.has_got[checkpoint - 1], "operators process each checkpoint once"
        self.has_got[checkpoint - 1] = True
        self.system.way.pass_on(checkpoint, self.place())

    def keep(self, checkpoint: int, earlier: int) -> None:
        self.system.way.keep(checkpoint, earlier, self.place())


class Behind(Before):
    """The user's operators in front of the global committer: port `operators` of `stage_behind`."""

    PEERS: ClassVar[dict[str, str]] = {"stage": "stage_behind"}

    def place(self) -> int:
        return BEHIND


class GlobalSink(SlowSink):
    """The target of the global committer."""

    system: CommittingInSteps

    is_covered: list[bool] = Array(Bool(), "checkpoints")
    is_visible: list[bool] = Array(Bool(), "checkpoints")

    def report_committed(self) -> None:
        checkpoint = self.asked
        self.visible = self.asked
        self.asked = 0
        for k in range(self.system.checkpoints):
            if self.is_covered[k]:
                self.show(k + 1)
        self.system.committer.committed(checkpoint, self.tries)

    def show(self, checkpoint: int) -> None:
        self.is_covered[checkpoint - 1] = False
        self.is_visible[checkpoint - 1] = True
        for k in range(self.system.checkpoints):
            assert (
                k + 1 >= checkpoint or self.is_visible[k] or not self.system.way.is_completed(k + 1)
            ), "checkpoints are committed globally in their order, and none is left out"
        for s in range(self.system.subtasks):
            assert self.system.parts[s].has_effect[checkpoint - 1] or (
                self.system.task_committers == 0
            ), "a checkpoint is committed globally once all tasks have committed their parts"

    def forget(self) -> None:
        self.asked = 0
        self.tries = 0
        for k in range(self.system.checkpoints):
            self.is_covered[k] = False

    # port `sink` of the committer

    def carry(self, checkpoint: int, earlier: int, tries: int) -> None:
        self.system.store.has_ledger = True
        self.system.way.keep(checkpoint, earlier, LEDGER)
        self.system.way.keep_tries(tries)

    def cover(self, checkpoint: int) -> None:
        assert self.system.way.place[checkpoint - 1] == LEDGER, (
            "what is committed globally has taken each step before"
        )
        self.is_covered[checkpoint - 1] = True

    def settled(self, checkpoint: int) -> None:
        assert self.is_visible[checkpoint - 1], "what leaves the ledger has taken effect"
        self.system.way.pass_on(checkpoint, LEDGER)
