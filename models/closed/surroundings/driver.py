"""Requesters, sink, timers and the driver's start: what else happens around the job, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import STAY, Array, Bool, Int, Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.attempt import FAILED
from epochgate.models.lifecycle import FAILED as JOB_FAILED
from epochgate.models.request import IDLE

if TYPE_CHECKING:
    from epochgate.models.closed.endings import EndingJob
    from epochgate.models.closed.job import ClosedJob

DONE = "done"


class Requester(Environment):
    """The requester of checkpoints: port `requester` of the request."""

    STATES = ("wanting",)
    INITIAL = "wanting"

    system: ClosedJob

    is_waiting: bool = Bool()
    """A client has asked for a checkpoint, and none has begun since."""
    is_late: bool = Bool()
    """A client that asks after the end is to be refused in this step; never so between two steps."""

    want: Trigger
    ask: Trigger

    # fmt: off
    ROWS = (
        Row("want", "wanting", STAY, "is_wanting and is_idle",
            "submit",     "the interval is over"),
        Row("ask",  "wanting", STAY, "is_wanting",
            "submit_now", "a client requests a checkpoint besides the periodic ones, as for a savepoint"),
    )
    # fmt: on

    def is_wanting(self) -> bool:
        return self.system.checkpoint.number < self.system.wanted

    def is_idle(self) -> bool:
        return self.system.request.state == IDLE

    def submit_now(self) -> None:
        self.is_waiting = True
        self.is_late = self.system.restarter.knows_end
        self.system.request.submit()

    def submit(self) -> None:
        self.system.request.submit_periodic()

    def chosen(self, checkpoint: int) -> None:
        assert checkpoint == self.system.checkpoint.number, "requests know their checkpoint"
        self.is_waiting = False

    def refused(self) -> None:
        assert self.system.restarter.knows_end, "a checkpoint is refused after the job's end only"
        self.is_waiting = False
        self.is_late = False


class Sink(Environment):
    """The sink, which commits at once: port `sink` of the committer."""

    system: ClosedJob

    def commit(self, checkpoint: int, tries: int) -> None:
        assert checkpoint <= self.system.checkpoint.completed, (
            "nothing is committed before its checkpoint is completed"
        )
        self.system.committer.committed(checkpoint, tries)

    def carry(self, checkpoint: int, earlier: int, tries: int) -> None:
        pass

    def cover(self, checkpoint: int) -> None:
        pass

    def settled(self, checkpoint: int) -> None:
        pass

    def forgone(self, checkpoint: int) -> None:
        pass

    # port `worker` of the work after commits, of which there is none

    def work(self, checkpoint: int, tries: int) -> None:
        pass

    def record(self, checkpoint: int, earlier: int) -> None:
        pass

    def stalled(self, checkpoint: int, reason: int) -> None:
        pass

    def release(self, checkpoint: int) -> None:
        pass


class SlowSink(Environment):
    """A sink that takes its time, cannot commit now, or never will: port `sink` of the committer."""

    STATES = ("ready",)
    INITIAL = "ready"

    system: EndingJob

    asked: int = Int("checkpoints")
    """The checkpoint up to which it is committing; 0 for none."""
    tries: int = Int("commit_retries")
    """How often that has failed before."""
    visible: int = Int("checkpoints")
    """The one up to which it has committed."""
    working: int = Int("checkpoints")
    """The checkpoint whose work after the commit is under way; 0 for none."""
    work_tries: int = Int("commit_retries")
    worked: int = Int("checkpoints")
    """The one up to which that is done."""
    is_stalled: bool = Bool()

    finish: Trigger
    put_off: Trigger
    refuse: Trigger
    hang: Trigger
    finish_work: Trigger
    fail_work: Trigger
    hang_in_work: Trigger

    # fmt: off
    ROWS = (
        Row("finish",  "ready", STAY, "is_committing",
            "report_committed",              "everything up to the checkpoint is visible"),
        Row("put_off", "ready", STAY, "is_committing and may_fail",
            "spend_failure, report_later",   "it cannot commit now"),
        Row("refuse",  "ready", STAY, "is_committing and may_fail",
            "spend_failure, report_refused", "it never will"),
        Row("hang",    "ready", STAY, "is_committing and may_fail",
            "spend_failure, report_commit_hangs", "it does not answer within the limit"),
        Row("finish_work", "ready", STAY, "is_working",
            "report_worked",                 "the work after the commit returns"),
        Row("fail_work",   "ready", STAY, "is_working and may_fail",
            "spend_failure, report_failed",  "the work after the commit raises"),
        Row("hang_in_work", "ready", STAY, "is_working and may_fail",
            "spend_failure, report_work_hangs", "the work after the commit does not end within the limit"),
    )
    # fmt: on

    def is_committing(self) -> bool:
        return self.asked > 0

    def is_working(self) -> bool:
        return self.working > 0

    def may_fail(self) -> bool:
        return self.system.budget.has_failures()

    def spend_failure(self) -> None:
        self.system.budget.failures += 1

    def report_committed(self) -> None:
        checkpoint = self.asked
        self.visible = self.asked
        self.asked = 0
        self.system.committer.committed(checkpoint, self.tries)

    def report_later(self) -> None:
        checkpoint = self.asked
        self.asked = 0
        self.system.committer.retry_later(checkpoint, self.tries, "the sink is busy")

    def report_refused(self) -> None:
        checkpoint = self.asked
        self.asked = 0
        self.system.committer.refused(checkpoint, self.tries, "the sink refuses it")

    def report_worked(self) -> None:
        self.worked = self.working
        self.working = 0
        self.is_stalled = False
        self.system.post_commit.done(self.worked, self.work_tries)

    def report_failed(self) -> None:
        checkpoint = self.working
        self.working = 0
        self.system.post_commit.failed(checkpoint, self.work_tries, "the work has failed")

    def report_commit_hangs(self) -> None:
        checkpoint = self.asked
        self.asked = 0
        self.system.committer.expire(checkpoint, self.tries, "the sink does not answer")

    def report_work_hangs(self) -> None:
        checkpoint = self.working
        self.working = 0
        self.system.post_commit.expire(checkpoint, self.work_tries, "the work does not end")

    # port `sink` of the committer

    def commit(self, checkpoint: int, tries: int) -> None:
        assert checkpoint <= self.system.checkpoint.completed, (
            "nothing is committed before its checkpoint is completed"
        )
        self.asked = checkpoint
        self.tries = tries
        if self.system.slow_commits == 0:
            self.report_committed()

    def carry(self, checkpoint: int, earlier: int, tries: int) -> None:
        self.system.store.has_ledger = True

    def cover(self, checkpoint: int) -> None:
        pass

    def settled(self, checkpoint: int) -> None:
        pass

    def forgone(self, checkpoint: int) -> None:
        pass

    # port `worker` of the work after commits

    def work(self, checkpoint: int, tries: int) -> None:
        assert checkpoint <= self.visible, "the work begins once the checkpoint is visible"
        self.working = checkpoint
        self.work_tries = tries
        if self.system.slow_commits == 0:
            self.report_worked()

    def record(self, checkpoint: int, earlier: int) -> None:
        self.system.store.has_debts = True

    def stalled(self, checkpoint: int, reason: int) -> None:
        self.is_stalled = True

    def release(self, checkpoint: int) -> None:
        pass


class Restarter(Environment):
    """The restart strategy's timers: port `driver` of the lifecycle."""

    STATES = ("ready",)
    INITIAL = "ready"

    system: ClosedJob

    due: list[bool] = Array(Bool(), "subtasks")
    restarts: int = Int("restarts")
    """The restart of all that waits for its back-off; 0 for none."""
    next_numbers: list[int] = Array(Int("attempts"), "subtasks")
    """The least number of a subtask's next attempt; 0 if no restart was asked for before it."""
    knows_cause: bool = Bool()
    """It was told why the job ends, and not yet that it has."""
    is_end_limited: bool = Bool()
    """The limit of the job's end has not passed."""
    is_decided: bool = Bool()
    """It was told how the job ends, and no coordinator was closed for that before."""
    knows_end: bool = Bool()
    """It was told that the job has ended."""

    back_off: Trigger
    expire_end: Trigger

    # fmt: off
    ROWS = (
        Row("back_off",   "ready", STAY, "is_backing_off",
            "report",     "the delay is over"),
        Row("expire_end", "ready", STAY, "is_ending",
            "report_end", "the job has not ended within its limit"),
    )
    # fmt: on

    def is_ending(self) -> bool:
        return self.is_end_limited

    def report_end(self) -> None:
        self.is_end_limited = False
        self.system.lifecycle.expire_end("the store has not answered")

    def is_backing_off(self) -> bool:
        return self.restarts > 0

    def report(self) -> None:
        if self.system.renumbered > 0:
            self.system.lifecycle.backed_off(0)
        else:
            self.system.lifecycle.backed_off(self.restarts)
        self.restarts = 0

    # port `driver` of the lifecycle

    def restart_one(self, subtask: int, attempt: int, reason: int) -> None:
        assert attempt == self.system.attempt[subtask].number, (
            "the attempt that failed is restarted"
        )
        self.due[subtask] = True

    def restart_all(self, restarts: int, reason: int) -> None:
        self.restarts = restarts
        if self.system.renumbered > 0:
            self.system.names.rename_restarts()
        else:
            for s in range(self.system.subtasks):
                self.next_numbers[s] = self.system.attempt[s].number + 1

    def finish(self, subtask: int, identity: int) -> None:
        self.system.wire[subtask].finish(identity)

    def ending(self, reason: int) -> None:
        self.knows_cause = True
        self.is_end_limited = True

    def decided(self, outcome: int, checkpoint: int) -> None:
        assert self.knows_cause or self.system.lifecycle.state != JOB_FAILED, (
            "a job that fails has told why"
        )
        assert checkpoint == self.system.checkpoint.completed, "it is the last that is completed"
        self.is_decided = True
        for c in range(self.system.coordinators):
            if self.system.user[c].is_closed:
                self.is_decided = False

    def ended(self) -> None:
        self.knows_cause = False
        self.is_end_limited = False
        self.knows_end = True


class BackOff(Environment):
    """The delay before one subtask's restart."""

    INDEX = ("subtask",)
    STATES = ("timing",)
    INITIAL = "timing"

    system: ClosedJob
    subtask: int

    elapse: Trigger

    # fmt: off
    ROWS = (
        Row("elapse", "timing", STAY, "is_due", "restart", "the delay is over"),
    )
    # fmt: on

    def is_due(self) -> bool:
        return self.system.restarter.due[self.subtask]

    def restart(self) -> None:
        self.system.restarter.due[self.subtask] = False
        number = self.system.attempt[self.subtask].number
        if self.system.attempt[self.subtask].state == FAILED and self.system.renumbered == 0:
            self.system.restarter.next_numbers[self.subtask] = number + 1
        self.system.attempt[self.subtask].restart(number)


class Budget(Environment):
    """The number of failures so far."""

    system: ClosedJob

    failures: int = Int("F")

    def has_failures(self) -> bool:
        return self.failures < self.system.F


class Person(Environment):
    """The user of the job, who may stop or cancel it; or a fault that no restart repairs."""

    STATES = ("content", DONE)
    INITIAL = "content"
    TERMINAL = (DONE,)

    system: ClosedJob

    stop: Trigger
    cancel: Trigger
    give_up: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("stop",    "content", DONE, None, "stop_job",    "leave with a last checkpoint"),
        Row("cancel",  "content", DONE, None, "cancel_job",  "end at once"),
        Row("give_up", "content", DONE, None, "give_job_up", "the job cannot go on"),
    )
    # fmt: on

    def stop_job(self) -> None:
        self.system.lifecycle.stop()

    def cancel_job(self) -> None:
        self.system.lifecycle.cancel("the user has canceled it")

    def give_job_up(self) -> None:
        self.system.lifecycle.give_up("it cannot go on")


class Launch(Environment):
    """The driver begins."""

    STATES = ("before", "after")
    INITIAL = "before"
    TERMINAL: ClassVar[tuple[str, ...]] = ("after",)

    system: ClosedJob

    launch: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("launch", "before", "after", None, "start", "the driver is ready"),
    )
    # fmt: on

    def start(self) -> None:
        self.system.lifecycle.start()
