"""The driver of a job whose commits take several steps: the way of each checkpoint through them,
what is stored of it, the operators between the steps, the target, and a driver that dies.

The claim about what is stored is made where it is stored: that a checkpoint holds each earlier one
in exactly one place, or that one is committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import STAY, Array, Bool, Int, Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.closed.surroundings.committing import (
    BEFORE,
    BEHIND,
    DONE,
    LEDGER,
    NOWHERE,
    TASKS,
)
from epochgate.models.closed.surroundings.driver import (
    DONE as ASKED,
    Launch,
    Person,
    Requester,
    Restarter,
    SlowSink,
)
from epochgate.models.closed.surroundings.store import Store
from epochgate.models.lifecycle import CANCELED, FAILED, FINISHED

if TYPE_CHECKING:
    from epochgate.models.closed.committing import CommittingInSteps
    from epochgate.models.committable_stage import StageBefore, StageBehind


class Way(Environment):
    """Where each completed checkpoint is, for the driver and in the newest stored checkpoint."""

    system: CommittingInSteps

    place: list[int] = Array(Int(DONE), "checkpoints")
    kept: list[int] = Array(Int(DONE), "checkpoints")
    """Where the checkpoint under way says that it is."""
    stored: list[int] = Array(Int(DONE), "checkpoints")
    was_stored: list[bool] = Array(Bool(), "checkpoints")
    completed: int = Int("checkpoints")
    """The newest that is stored; 0 for none."""
    kept_tries: int = Int("commit_retries")
    tries: int = Int("commit_retries")
    """How often the oldest one at the global committer was tried in vain, as is stored."""

    def first(self) -> int:
        """Where a checkpoint begins."""
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
                self.system.behind.take(k + 1)
            elif self.stored[k] == TASKS:
                self.system.collector.expect(k + 1)
                for s in range(self.system.subtasks):
                    self.system.parts[s].adopt(k + 1)
            elif self.stored[k] == BEFORE:
                self.system.before.take(k + 1)


class Before(Environment):
    """The user's operators in front of the tasks, with their state: port `operators` of `before`."""

    PEERS: ClassVar[dict[str, str]] = {"stage": "before"}
    STATES = ("open",)
    INITIAL = "open"

    system: CommittingInSteps
    stage: StageBefore

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
        self.stage.processed(self.taken(), self.tries, 1)

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
                    self.stage.processed(k + 1, tries, 1)
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
        assert not self.has_got[checkpoint - 1], "operators process each checkpoint once"
        self.has_got[checkpoint - 1] = True
        self.system.way.pass_on(checkpoint, self.place())

    def keep(self, checkpoint: int, earlier: int) -> None:
        self.system.way.keep(checkpoint, earlier, self.place())


class Behind(Before):
    """The user's operators in front of the global committer: port `operators` of `behind`."""

    PEERS: ClassVar[dict[str, str]] = {"stage": "behind"}

    stage: StageBehind

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


class StoreOfSteps(Store):
    """The store, with what the next driver finds in it."""

    system: CommittingInSteps

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in Store.ROWS if row.trigger != "finish_save"),

        Row("finish_save", "ready", STAY, "is_saving",
            "keep_it, report_stored", "it is durable"),
    )
    # fmt: on

    def keep_it(self) -> None:
        self.system.way.store(self.begun)
        self.system.before_it.store()
        self.system.behind_it.store()
        for s in range(self.system.subtasks):
            self.system.parts[s].store()

    def replaced(self) -> None:
        self.has_work = False
        self.is_late_answer_due = False
        self.has_ledger = False
        self.begun = 0
        for s in range(self.system.subtasks):
            self.has_part[s] = False

    # port `driver` of the checkpoint

    def save(self, checkpoint: int) -> None:
        self.check_begun(checkpoint)
        self.system.way.check_kept()
        self.system.before_it.snapshot()
        self.system.behind_it.snapshot()
        for s in range(self.system.subtasks):
            self.system.parts[s].check_kept()
        self.has_ledger = False
        self.has_work = True

    def completed(self, checkpoint: int) -> None:
        self.check_begun(checkpoint)
        assert self.system.way.completed == checkpoint, "what is completed is stored"
        self.system.way.complete(checkpoint)
        self.forget()

    def forget(self) -> None:
        self.begun = 0
        self.system.way.clear()
        self.system.before_it.clear()
        self.system.behind_it.clear()
        for s in range(self.system.subtasks):
            self.has_part[s] = False
            self.system.parts[s].clear()


class Hearer(Restarter):
    """The timers of one driver's restarts."""

    def replaced(self) -> None:
        self.restarts = 0
        self.knows_cause = False
        self.is_end_limited = False
        self.is_decided = False
        self.knows_end = False
        for s in range(self.system.subtasks):
            self.due[s] = False
            self.next_numbers[s] = 0


class Interval(Requester):
    """Who wants checkpoints, while a driver is there."""

    system: CommittingInSteps

    def is_wanting(self) -> bool:
        return (
            self.system.launch.state == "after"
            and self.system.checkpoint.number < self.system.wanted
        )


class User(Person):
    """The user of the job, who may stop it; the next driver knows nothing of that."""

    system: CommittingInSteps

    replaced: Trigger

    # fmt: off
    ROWS = (
        Row("stop",     "content", ASKED,     "has_begun", "stop_job", "leave with a last checkpoint"),
        Row("replaced", ASKED,     "content", None,        None,       "the job is started again"),
        Row("replaced", "content", STAY,      None,        None,       "the job is started again"),
    )
    # fmt: on

    def has_begun(self) -> bool:
        return self.system.launch.state == "after"


class Driver(Launch):
    """The driver: it dies at any moment, and is started again until the job has finished."""

    TERMINAL = ()

    system: CommittingInSteps

    die: Trigger
    die_unheard: Trigger
    end: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("launch",      "before", "after", None,
            "adopt, start",                   "the driver goes on with the newest stored checkpoint"),
        Row("die",         "after", "before", "may_die",
            "spend_failure, forget",          "the driver is killed"),
        Row("die_unheard", "after", "before", "may_die and is_saving",
            "spend_failure, keep_it, forget", "it is killed when its checkpoint is stored, and does not know"),
        Row("end",         "after", "before", "has_failed",
            "forget",                         "the job has failed, and is started again"),
    )
    # fmt: on

    def may_die(self) -> bool:
        return (
            self.system.budget.has_failures()
            and self.system.lifecycle.state != FINISHED
            and self.system.lifecycle.state != CANCELED
            and self.system.lifecycle.state != FAILED
        )

    def is_saving(self) -> bool:
        return self.system.store.is_saving()

    def has_failed(self) -> bool:
        return self.system.lifecycle.state == FAILED

    def spend_failure(self) -> None:
        self.system.budget.failures += 1

    def keep_it(self) -> None:
        self.system.store.keep_it()

    def adopt(self) -> None:
        if self.system.way.completed > 0:
            self.system.checkpoint.restore(self.system.way.completed, self.system.way.completed)
        self.system.way.adopt()

    def forget(self) -> None:
        self.system.lifecycle.replaced()
        self.system.checkpoint.replaced()
        self.system.request.replaced()
        self.system.committer.replaced()
        self.system.before.replaced()
        self.system.collector.replaced()
        self.system.behind.replaced()
        self.system.restarter.replaced()
        self.system.requester.is_waiting = False
        self.system.person.replaced()
        self.system.way.forget()
        self.system.before_it.forget()
        self.system.behind_it.forget()
        self.system.sink.forget()
        for s in range(self.system.subtasks):
            self.system.attempt[s].replaced()
            self.system.subtask_committer[s].replaced()
            self.system.process[s].replaced()
            self.system.parts[s].forget()
        self.system.store.replaced()
