"""The job's machines, each with one decision of another system, and the bug that came of it there.

What is written here is read by the checker and executed by the runtime.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Ignore, Opaque, Row
from epochgate.models.attempt import Attempt
from epochgate.models.checkpoint import Checkpoint
from epochgate.models.committer import GlobalCommitter
from epochgate.models.gateway import Gateway
from epochgate.models.holder import Holder
from epochgate.models.lifecycle import (
    CREATED,
    ENDED,
    ENDING,
    FINISHING,
    RESTARTING,
    RUNNING,
    STOPPING,
    JobLifecycle,
)
from epochgate.models.request import CheckpointRequest

# gateways


class NeverHeld(Gateway):
    """An event goes on the wire although the coordinator's snapshot is taken."""

    def hold(self, attempt: int, event: Opaque) -> None:
        self.pass_on(event)


class NeverAwaited(Gateway):
    """The coordinator's part is ready although an event from before it is on its way."""

    def in_flight(self) -> int:
        return 0


class LossIsConfirmation(Gateway):
    """A send that has failed is no longer waited for, and the snapshot goes on."""

    def give_up_in_flight(self, reason: Opaque) -> None:
        count = self.sent - self.confirmed
        self.sent = 0
        self.confirmed = 0
        if count > 0:
            self.sender.lost(count, reason)
        if self.awaited > 0:
            count = self.awaited
            self.awaited = 0
            self.system.snapshot[self.coordinator].confirm(count)


class AnyAttempt(Gateway):
    """A gateway belongs to a subtask, and reaches whichever attempt is there."""

    def is_bound(self, attempt: int) -> bool:
        return True


class StaleMark(Checkpoint):
    """An abort reaches the coordinator's holder, and no gateway."""

    def announce_abort(self, reason: Opaque) -> None:
        self.driver.aborted(self.number, reason)
        for c in range(self.system.coordinators):
            self.system.snapshot[c].cancel(self.number)
            self.system.holder[c].checkpoint_aborted(self.number)
        for s in range(self.system.subtasks):
            if self.system.attempt[s].is_running():
                self.tasks.aborted(s, self.system.attempt[s].identity, self.number)
        self.forget_parts()


class ReopenedAtInjection(Checkpoint):
    """The gateways open when the barriers are on their way."""

    def inject_barriers(self) -> None:
        for s in range(self.system.subtasks):
            self.tasks.barrier(s, self.system.attempt[s].identity, self.number)
            for c in range(self.system.coordinators):
                self.system.gateway[c, s].reopen(self.number)


# failures


class UntoldOfCancels(Attempt):
    """A coordinator is told of the attempt that failed, and not of those canceled with it."""

    def announce_cancel(self) -> None:
        self.drop_in_flight("all attempts were canceled")


class ToldAtRestart(Attempt):
    """A coordinator learns of a failure when the subtask is restarted."""

    def announce_failed(self, reason: Opaque) -> None:
        pass

    def reset_coordinators(self) -> None:
        for c in range(self.system.coordinators):
            self.system.holder[c].attempt_failed(self.subtask, self.number - 1, "it had failed")
            self.system.holder[c].subtask_reset(self.subtask, self.system.checkpoint.completed)
        self.admit_others()


class EveryFailureCounts(Holder):
    """Each failure that a coordinator reports restarts the job."""

    def is_failing(self) -> bool:
        return False


class RestartedTwice(JobLifecycle):
    """A failure during a restart begins another one."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in JobLifecycle.ROWS if row.trigger != "fail_globally"),
        Row("fail_globally",    (RUNNING, STOPPING, RESTARTING),    RESTARTING, None,
            "cancel_all, ask_restart_all", "the job's state as a whole cannot be relied on"),
        Ignore("fail_globally", (CREATED, *ENDING, *ENDED),                     None,
                                           "all attempts are down, or go down already"),
    )
    # fmt: on


class NotResetBeforeTheFirst(JobLifecycle):
    """Without a completed checkpoint there is nothing to reset a coordinator to."""

    def restore_all(self) -> None:
        if self.system.checkpoint.completed > 0:
            for c in range(self.system.coordinators):
                self.system.holder[c].reset(self.system.checkpoint.completed)
        self.recreate_all()


class RestartedWhileGoingDown(Attempt):
    """A restart goes on although everything goes down, or a checkpoint is being stored."""

    def may_restart(self) -> bool:
        return True


class SpokenForByZombies(Attempt):
    """A process that was replaced still speaks for the subtask."""

    def speaks(self, identity: int) -> bool:
        return identity <= self.newest


# checkpoints


class NothingAfterAFailure(Checkpoint):
    """A checkpoint that fails leaves its trigger unsettled."""

    def fail(self, checkpoint: int, reason: Opaque) -> None:
        self.announce_abort(reason)
        if self.failures > self.system.tolerable_failures:
            self.failures = 0
            self.system.lifecycle.fail_globally(reason)


class NothingAfterAnAbort(Checkpoint):
    """A checkpoint that is discarded leaves its trigger unsettled."""

    def abandon(self, reason: Opaque) -> None:
        self.announce_abort(reason)


class AbortNotForwarded(Holder):
    """What wraps the coordinator does not pass on that a checkpoint was aborted."""

    def call_aborted(self, checkpoint: int) -> None:
        pass


class OverlappingCheckpoints(CheckpointRequest):
    """A request is served although a checkpoint is under way."""

    def may_trigger(self) -> bool:
        return self.system.lifecycle.may_checkpoint()

    def note_more(self) -> None:
        self.has_more = True
        self.choose()


class FirstCoordinatorIsEnough(Checkpoint):
    """The barriers go out when one coordinator is ready."""

    def is_last_coordinator(self) -> bool:
        return True


class IdsGoBack(Checkpoint):
    """Ids go on behind the restored checkpoint, not behind the newest that ever was."""

    def adopt(self, checkpoint: int, newest: int) -> None:
        self.number = checkpoint
        self.completed = checkpoint


class UnknownIsFailed(Checkpoint):
    """A save whose answer is lost is one that has failed."""

    def report(self, checkpoint: int, reason: Opaque) -> None:
        self.driver.aborted(self.number, reason)
        for c in range(self.system.coordinators):
            self.system.holder[c].checkpoint_aborted(self.number)
        self.forget_parts()


class FailureForgotten(Attempt):
    """An attempt that fails aborts no checkpoint."""

    def go_down(self, reason: Opaque) -> None:
        self.drop_in_flight(reason)
        self.announce_failed(reason)
        self.report_failed(reason)


# ends and commits


class EndRemembered(Attempt):
    """A subtask that has reached its end counts as ended after a restart too."""

    def forget_end(self) -> None:
        pass


class FinishedBeforeTheCommit(JobLifecycle):
    """A job has finished when its last checkpoint is completed, and its processes have left."""

    def is_committed(self) -> bool:
        return True


NOT_RUNNING = tuple(state for state in JobLifecycle.STATES if state != RUNNING)


class NoLastCheckpoint(JobLifecycle):
    """All subtasks have reached their end: the job leaves."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in JobLifecycle.ROWS
          if (row.trigger, row.when) != ("attempt_ended", "is_last_end")),
        Row("attempt_ended", RUNNING,              FINISHING, "is_last_end",
            "count_ended, finish_all", "all subtasks have reached the end of their input"),
        Row("attempt_ended", NOT_RUNNING,          STAY,      "is_last_end",
            "count_ended",             "the job goes down already"),
    )
    # fmt: on


class LedgerInMemory(GlobalCommitter):
    """What is not known to be committed is known to the driver alone."""

    def carry_ledger(self, checkpoint: int) -> None:
        pass


class NotCommittedAtStart(JobLifecycle):
    """A checkpoint that was completed and not committed stays so when a driver starts."""

    def start_all(self) -> None:
        for c in range(self.system.coordinators):
            if self.system.checkpoint.completed > 0:
                self.system.holder[c].reset(self.system.checkpoint.completed)
            else:
                self.system.holder[c].start()
        self.schedule_all()


class AnswerCoversAll(GlobalCommitter):
    """The answer to a commit counts for what was completed meanwhile, too."""

    def settle(self) -> None:
        self.covered.drain(self.waiting)
        for checkpoint in self.covered.take_all():
            self.sink.settled(checkpoint)
            self.system.post_commit.owe(checkpoint)


class NewestOnly(GlobalCommitter):
    """A commit is of the newest checkpoint: a notice that was missed stays so."""

    def ask(self) -> None:
        self.covered.drain(self.waiting)
        for checkpoint in self.covered.take_all():
            self.asked = checkpoint
        self.covered.push(self.asked)
        self.sink.cover(self.asked)
        self.sink.commit(self.asked, self.tries)
