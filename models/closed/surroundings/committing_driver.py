"""The driver of a job whose commits take several steps: its store, its timers and users, and how it
dies and is started again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import STAY, Row, Trigger
from epochgate.models.closed.surroundings.driver import (
    DONE,
    Launch,
    Person,
    Requester,
    Restarter,
)
from epochgate.models.closed.surroundings.store import Store
from epochgate.models.lifecycle import CANCELED, FAILED, FINISHED

if TYPE_CHECKING:
    from epochgate.models.closed.committing import CommittingInSteps


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
    """The interval at which checkpoints are wanted, while a driver is there."""

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
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("stop",     "content", DONE,     "has_begun", "stop_job", "leave with a last checkpoint"),
        Row("replaced", DONE,     "content", None,        None,       "the job is started again"),
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
        self.system.stage_before.replaced()
        self.system.committable_collector.replaced()
        self.system.stage_behind.replaced()
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
