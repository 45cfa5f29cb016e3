"""Store, sink, timers and the driver's start: what else happens around the job, and when.

The store records which checkpoints are completed and claims I1 and I2 for each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import STAY, Array, Bool, Int, Machine, Row, Trigger
from epochgate.models.attempt import FAILED
from epochgate.models.request import IDLE

if TYPE_CHECKING:
    from epochgate.models.closed_job import ClosedJob, EndingJob, ResumingJob

DONE = "done"


class Store(Machine):
    """The store, the timer and the record of completed checkpoints: port `driver` of the
    checkpoint.
    """

    STATES = ("ready",)
    INITIAL = "ready"

    system: ClosedJob

    has_work: bool = Bool()
    """A checkpoint was given to it to store."""

    finish_save: Trigger
    fail_save: Trigger
    expire: Trigger

    # fmt: off
    ROWS = (
        Row("finish_save", "ready", STAY, "is_saving",                 "report_stored",                 "it is durable"),
        Row("fail_save",   "ready", STAY, "is_saving and may_fail",    "spend_failure, report_failed",  "it is not"),
        Row("expire",      "ready", STAY, "is_running and may_expire", "spend_timeout, report_expired", "the checkpoint takes too long"),
    )
    # fmt: on

    def is_saving(self) -> bool:
        return self.has_work

    def may_fail(self) -> bool:
        return self.system.budget.has_failures()

    def spend_failure(self) -> None:
        self.system.budget.failures += 1

    def is_running(self) -> bool:
        return not self.system.checkpoint.is_over() and not self.system.checkpoint.is_storing()

    def may_expire(self) -> bool:
        return self.system.timeouts_cost == 0 or self.system.budget.has_failures()

    def spend_timeout(self) -> None:
        self.system.budget.failures += self.system.timeouts_cost

    def report_stored(self) -> None:
        self.has_work = False
        self.system.checkpoint.stored(self.system.checkpoint.number)

    def report_failed(self) -> None:
        self.has_work = False
        number = self.system.checkpoint.number
        failures = self.system.checkpoint.failures
        self.system.checkpoint.store_failed(number)
        self.expect_counted(number, failures)

    def report_expired(self) -> None:
        number = self.system.checkpoint.number
        failures = self.system.checkpoint.failures
        self.system.checkpoint.expire(number)
        self.expect_counted(number, failures)

    def expect_counted(self, checkpoint: int, failures: int) -> None:
        """This checkpoint has just failed, after so many others."""
        assert self.system.checkpoint.number != checkpoint or self.system.checkpoint.is_over(), (
            "a checkpoint that has failed is over"
        )
        assert self.system.checkpoint.failures == failures + 1 or (
            failures == self.system.tolerable_failures and self.system.checkpoint.failures == 0
        ), "a checkpoint that has failed is counted, until there are too many"

    # port `driver` of the checkpoint

    def started(self, checkpoint: int) -> None:
        pass

    def keep(self, checkpoint: int, subtask: int, snapshot: int) -> None:
        pass

    def save(self, checkpoint: int) -> None:
        self.has_work = True

    def completed(self, checkpoint: int) -> None:
        for c in range(self.system.coordinators):
            assert self.system.keeper[c, 0].has_state, (
                "a completed checkpoint holds the state of every coordinator"
            )
        for s in range(self.system.subtasks):
            for c in range(self.system.coordinators):
                assert (
                    self.system.sender[c, s].snapshot_sent
                    <= self.system.process[s].snapshot_handled[c]
                ), "I1: what was sent before the coordinator's snapshot is in the subtask's"
                assert (
                    self.system.process[s].snapshot_handled[c]
                    <= self.system.sender[c, s].snapshot_sent
                ), "I2: what was sent after the coordinator's snapshot is not in the subtask's"
                assert (
                    self.system.process[s].snapshot_receipts[c]
                    <= self.system.sender[c, s].snapshot_heard
                ), "I7: what an operator has a receipt for is in its coordinator's snapshot"
                self.system.sender[c, s].completed_heard = self.system.sender[c, s].snapshot_heard
                self.system.process[s].completed_receipts[c] = self.system.process[
                    s
                ].snapshot_receipts[c]
                self.system.sender[c, s].completed_sent = self.system.sender[c, s].snapshot_sent
                self.system.process[s].completed_handled[c] = self.system.process[
                    s
                ].snapshot_handled[c]
        self.aborted(checkpoint)

    def aborted(self, checkpoint: int) -> None:
        for c in range(self.system.coordinators):
            self.system.keeper[c, 0].has_state = False
        for s in range(self.system.subtasks):
            for c in range(self.system.coordinators):
                self.system.sender[c, s].snapshot_sent = 0
                self.system.process[s].snapshot_handled[c] = 0
                self.system.sender[c, s].snapshot_heard = 0
                self.system.process[s].snapshot_receipts[c] = 0
        if self.system.renumbered > 0:
            self.system.names.rename_marks()


class Requester(Machine):
    """Who wants checkpoints: port `requester` of the request."""

    STATES = ("wanting",)
    INITIAL = "wanting"

    system: ClosedJob

    is_waiting: bool = Bool()
    """Somebody has asked for a checkpoint, and none has begun since."""

    want: Trigger
    ask: Trigger

    # fmt: off
    ROWS = (
        Row("want", "wanting", STAY, "is_wanting and is_idle", "submit",     "the interval is over"),
        Row("ask",  "wanting", STAY, "is_wanting",             "submit_now", "somebody wants a checkpoint besides the periodic ones, as for a savepoint"),
    )
    # fmt: on

    def is_wanting(self) -> bool:
        return self.system.checkpoint.number < self.system.wanted

    def is_idle(self) -> bool:
        return self.system.request.state == IDLE

    def submit_now(self) -> None:
        self.is_waiting = True
        self.system.request.submit()

    def submit(self) -> None:
        self.system.request.submit_periodic()

    def chosen(self, checkpoint: int) -> None:
        self.is_waiting = False


class Sink(Machine):
    """The sink, which commits at once: port `sink` of the committer."""

    system: ClosedJob

    def commit(self, checkpoint: int, tries: int) -> None:
        assert checkpoint <= self.system.checkpoint.completed, (
            "nothing is committed before its checkpoint is completed"
        )
        self.system.committer.committed()


class SlowSink(Machine):
    """A sink that takes its time, cannot commit now, or never will: port `sink` of the committer."""

    STATES = ("ready",)
    INITIAL = "ready"

    system: EndingJob

    asked: int = Int("checkpoints")
    """The checkpoint up to which it is committing; 0 for none."""
    visible: int = Int("checkpoints")
    """The one up to which it has committed."""

    finish: Trigger
    put_off: Trigger
    refuse: Trigger

    # fmt: off
    ROWS = (
        Row("finish",  "ready", STAY, "is_committing",              "report_committed",              "everything up to the checkpoint is visible"),
        Row("put_off", "ready", STAY, "is_committing and may_fail", "spend_failure, report_later",   "it cannot commit now"),
        Row("refuse",  "ready", STAY, "is_committing and may_fail", "spend_failure, report_refused", "it never will"),
    )
    # fmt: on

    def is_committing(self) -> bool:
        return self.asked > 0

    def may_fail(self) -> bool:
        return self.system.budget.has_failures()

    def spend_failure(self) -> None:
        self.system.budget.failures += 1

    def report_committed(self) -> None:
        self.visible = self.asked
        self.asked = 0
        self.system.committer.committed()

    def report_later(self) -> None:
        self.asked = 0
        self.system.committer.retry_later()

    def report_refused(self) -> None:
        self.asked = 0
        self.system.committer.refused()

    # port `sink` of the committer

    def commit(self, checkpoint: int, tries: int) -> None:
        assert checkpoint <= self.system.checkpoint.completed, (
            "nothing is committed before its checkpoint is completed"
        )
        self.asked = checkpoint
        if self.system.slow_commits == 0:
            self.report_committed()


class Restarter(Machine):
    """The restart strategy's timers: port `driver` of the lifecycle."""

    STATES = ("ready",)
    INITIAL = "ready"

    system: ClosedJob

    due: list[bool] = Array(Bool(), "subtasks")
    restarts: int = Int("restarts")
    """The restart of all that waits for its back-off; 0 for none."""
    next_numbers: list[int] = Array(Int("attempts"), "subtasks")
    """The least number of a subtask's next attempt; 0 if everything was not restarted before it."""

    back_off: Trigger

    # fmt: off
    ROWS = (
        Row("back_off", "ready", STAY, "is_backing_off", "report", "the delay is over"),
    )
    # fmt: on

    def is_backing_off(self) -> bool:
        return self.restarts > 0

    def report(self) -> None:
        self.system.lifecycle.backed_off(self.restarts)
        self.restarts = 0
        if self.system.renumbered > 0:
            self.system.lifecycle.restarts = 0

    # port `driver` of the lifecycle

    def restart_one(self, subtask: int, attempt: int) -> None:
        self.due[subtask] = True

    def restart_all(self, restarts: int) -> None:
        self.restarts = restarts
        if self.system.renumbered == 0:
            for s in range(self.system.subtasks):
                self.next_numbers[s] = self.system.attempt[s].number + 1

    def ended(self) -> None:
        pass


class BackOff(Machine):
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
        has_failed = self.system.attempt[self.subtask].state == FAILED
        self.system.attempt[self.subtask].restart(number)
        assert (
            not has_failed
            or self.system.attempt[self.subtask].state == FAILED
            or self.system.attempt[self.subtask].number > number
            or self.system.renumbered > 0
        ), "a new attempt has a number of its own"


class Budget(Machine):
    """How many failures there were."""

    system: ClosedJob

    failures: int = Int("F")

    def has_failures(self) -> bool:
        return self.failures < self.system.F


class Person(Machine):
    """Whoever started the job, and may stop or cancel it; or a fault that nothing can mend."""

    STATES = ("content", DONE)
    INITIAL = "content"
    TERMINAL = (DONE,)

    system: ClosedJob

    stop: Trigger
    cancel: Trigger
    give_up: Trigger

    # fmt: off
    ROWS = (
        Row("stop",    "content", DONE, None, "stop_job",    "leave with a last checkpoint"),
        Row("cancel",  "content", DONE, None, "cancel_job",  "end at once"),
        Row("give_up", "content", DONE, None, "give_job_up", "the job cannot go on"),
    )
    # fmt: on

    def stop_job(self) -> None:
        self.system.lifecycle.stop()

    def cancel_job(self) -> None:
        self.system.lifecycle.cancel()

    def give_job_up(self) -> None:
        self.system.lifecycle.give_up()


class Launch(Machine):
    """The driver begins."""

    STATES = ("before", "after")
    INITIAL = "before"
    TERMINAL = ("after",)

    system: ClosedJob

    launch: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("launch", "before", "after", None, "start", "the driver is ready"),
    )
    # fmt: on

    def start(self) -> None:
        self.system.lifecycle.start()
        for c in range(self.system.coordinators):
            self.system.user[c].answer_if_unfit()


class Resumption(Launch):
    """The driver begins, perhaps from what an earlier run has left."""

    system: ResumingJob

    resume: Trigger

    # fmt: off
    ROWS = (
        *Launch.ROWS,
        Row("resume", "before", "after", None, "adopt_checkpoint, start", "there is a completed checkpoint"),
    )
    # fmt: on

    def adopt_checkpoint(self) -> None:
        self.system.checkpoint.restore(1, 1)
