"""Hudi's two coordinators: close() of the old one runs on while the next job's one commits.

A canceled job counts as ended while its coordinator still works on a slow file system. The next job
is started, its coordinator rolls back what is pending in the timeline, and deletes the files of it.
Then the old one, which looked at the timeline before, writes that its instant is completed::

    old   instant 0 inflight, looks ............................... completes instant 0
    next                       rolls instant 0 back, its files go   begins instant 1

Source: apache/hudi issue 19357, which reports the two coordinators and the loss, and not which
write met which; this is the shortest way that the model has. The issue is open. Mended here by a
fence: a coordinator that takes the timeline over raises its epoch, and the timeline takes nothing
that was begun under an older one. Left out: metadata table, heartbeats, compaction.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Bool, Ignore, Int, Machine, Row, Trigger
from epochgate.fsm.closed import (
    ClosedSystem,
    Environment,
    Step,
    always,
    eventually,
    sometimes,
    terminal,
)
from epochgate.fsm.system import machines

ABSENT, WRITING, COMMITTING, CLOSED = "absent", "writing", "committing", "closed"
NONE, INFLIGHT, COMPLETE, ROLLED_BACK = "none", "inflight", "complete", "rolled_back"
RUNNING, CANCELED = "running", "canceled"


class Coordinator(Machine):
    """StreamWriteOperatorCoordinator: one of each job; that of the first job is `coordinator[0]`."""

    INDEX = ("job",)
    STATES = (ABSENT, WRITING, COMMITTING, CLOSED)
    INITIAL = ABSENT
    TERMINAL = (CLOSED,)

    system: Hudi
    job: int

    start: Trigger
    look: Trigger
    commit: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("start",  ABSENT,     WRITING,    "may_start",
            "take_over, begin", "its job starts: it rolls back what is pending, and begins an instant"),
        Row("look",   WRITING,    COMMITTING, "is_pending",
            None,               "the files are there, and its instant is inflight"),
        Row("look",   WRITING,    CLOSED,     "not is_pending",
            None,               "its instant was rolled back"),
        Row("commit", COMMITTING, CLOSED,     "is_current",
            "complete",         "the timeline has its epoch still: the instant is complete"),
        Row("commit", COMMITTING, CLOSED,     "not is_current",
            None,               "the timeline refuses: another coordinator has taken over"),
    )
    # fmt: on

    def may_start(self) -> bool:
        return self.job == 0 or (
            self.system.first_job.state == CANCELED
            and self.system.coordinator[self.job - 1].state != ABSENT
        )

    def is_pending(self) -> bool:
        return self.system.instant[self.job].state == INFLIGHT

    def is_current(self) -> bool:
        return self.system.timeline.epoch == self.job

    def take_over(self) -> None:
        self.system.timeline.take_over(self.job)
        for j in range(self.system.jobs):
            if j < self.job:
                self.system.instant[j].roll_back()

    def begin(self) -> None:
        self.system.instant[self.job].begin()

    def complete(self) -> None:
        self.system.instant[self.job].complete()


class Job(Environment):
    """The first job, which its user cancels."""

    STATES = (RUNNING, CANCELED)
    INITIAL = RUNNING
    TERMINAL = (CANCELED,)

    system: Hudi

    cancel: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("cancel", RUNNING, CANCELED, "has_begun", None, "the job counts as ended; close() runs on"),
    )
    # fmt: on

    def has_begun(self) -> bool:
        return self.system.coordinator[0].state != ABSENT


class Timeline(Environment):
    """The timeline's knowledge of coordinators: who took it over last."""

    STATES = ("shared",)
    INITIAL = "shared"

    system: Hudi

    epoch: int = Int("last")

    take_over: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("take_over", "shared", STAY, None, "note", "a coordinator starts, and raises the epoch"),
    )
    # fmt: on

    def note(self, epoch: int) -> None:
        self.epoch = epoch


class Instant(Environment):
    """An instant of the timeline, and its files in the table."""

    INDEX = ("job",)
    STATES = (NONE, INFLIGHT, COMPLETE, ROLLED_BACK)
    INITIAL = NONE
    TERMINAL = (COMPLETE,)

    system: Hudi
    job: int

    has_files: bool = Bool()

    begin: Trigger
    complete: Trigger
    roll_back: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("begin",     NONE,                    INFLIGHT,    None, "write",  "subtasks write into it"),
        Row("complete",  (INFLIGHT, ROLLED_BACK), COMPLETE,    None, None,     "its completed file is written"),
        Row("roll_back", INFLIGHT,                ROLLED_BACK, None, "delete", "its writer is taken for dead"),
        Ignore("roll_back", (COMPLETE, ROLLED_BACK),                None,      "there is nothing to roll back"),
    )
    # fmt: on

    def write(self) -> None:
        self.has_files = True

    def delete(self) -> None:
        self.has_files = False


class Hudi(ClosedSystem):
    """Hudi's timeline with a fence: a canceled job's coordinator completes nothing."""

    IS_SEPARATED = False  # a design that does not run, told without ports
    INDEX_SETS: ClassVar[dict[str, str]] = {"job": "jobs"}
    CONSTANTS: ClassVar[dict[str, int]] = {"jobs": 2}
    DERIVED: ClassVar[dict[str, str]] = {"last": "jobs - 1"}
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("coordinator", "start"),
        Step("coordinator", "look"),
        Step("coordinator", "commit"),
        Step("first_job", "cancel"),
    )

    jobs: int
    last: int

    coordinator: list[Coordinator] = machines(Coordinator)
    first_job: Job = machines(Job)
    timeline: Timeline = machines(Timeline)
    instant: list[Instant] = machines(Instant)

    @always("a completed instant has its files")
    def shows_what_it_has(self) -> bool:
        return all(
            self.instant[j].state != COMPLETE or self.instant[j].has_files for j in range(self.jobs)
        )

    @eventually("the instant of the last job is completed")
    def goes_on(self) -> bool:
        return self.instant[self.last].state == COMPLETE

    @sometimes("two coordinators are about to commit")
    def has_two(self) -> bool:
        return self.coordinator[0].state == COMMITTING and self.coordinator[1].state == COMMITTING

    @sometimes("the first job's instant was completed before it was canceled")
    def ended_in_time(self) -> bool:
        return self.instant[0].state == COMPLETE and self.first_job.state == CANCELED

    @terminal("both coordinators are closed, and the last job's instant is completed")
    def is_over(self) -> bool:
        return self.goes_on() and all(self.coordinator[j].state == CLOSED for j in range(self.jobs))


class UnfencedCoordinator(Coordinator):
    """A coordinator that believes what it saw of the timeline."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in Coordinator.ROWS if row.trigger != "commit"),
        Row("commit", COMMITTING, CLOSED, None, "complete", "it saw its instant inflight"),
    )
    # fmt: on


class TwoCoordinators(Hudi):
    """Hudi as reported: an instant is completed whose files were deleted."""

    coordinator: list[Coordinator] = machines(UnfencedCoordinator)
