"""The job's lifecycle: running, restarting as a whole, and how it ends; regional failover is one
subtask's affair.

Decides when a failure of one attempt stays with its subtask and when everything goes back to the
last completed checkpoint, that neither restarts before the checkpoint being stored is settled, and
that the job ends only when no process speaks any more, everything completed is committed, and no
work after a commit is under way; how it ends is decided before its coordinators are closed. Leaves
to the restart strategy behind its port after which back-off, or whether at all, to try again (its
answer is `Attempt.restart`, `backed_off` or `give_up`).

Source: Apache Flink's DefaultScheduler and its failover strategies (section 4 of docs/protocol.md).
Every subtask is a failover region of its own, since no data flows between subtasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import (
    ANY,
    STAY,
    Bool,
    Ignore,
    Int,
    Machine,
    Opaque,
    Port,
    Row,
    Trigger,
    fallible,
    output,
)

if TYPE_CHECKING:
    from epochgate.models.job import Job

CREATED, RUNNING, STOPPING, RESTARTING = "created", "running", "stopping", "restarting"
FINISHING, FAILING, CANCELING = "finishing", "failing", "canceling"
FINISHED, FAILED, CANCELED = "finished", "failed", "canceled"
ENDING = (FINISHING, FAILING, CANCELING)
ENDED = (FINISHED, FAILED, CANCELED)


class LifecyclePort(Port):
    """The restart strategy that the job asks, and the driver."""

    @fallible("give_up")
    def restart_one(self, subtask: int, attempt: int, reason: Opaque) -> None:
        """After how long may this subtask try again? Answer with its attempt's `restart`, or with
        `give_up`.
        """

    @fallible("give_up", succeeds="backed_off")
    def restart_all(self, restarts: int, reason: Opaque) -> None:
        """After how long may all subtasks try again? Answer with `backed_off(restarts)`, or with
        `give_up`.
        """

    def finish(self, subtask: int, identity: int) -> None:
        """Tell this process that the job has what it needs, and to leave cleanly."""

    def ending(self, reason: Opaque) -> None:
        """The job goes down, and this is why; say `expire_end` once `end_timeout_s` has passed."""

    def decided(self, outcome: Opaque, checkpoint: int) -> None:
        """The job is finished, failed or canceled, with this as its last completed checkpoint; its
        coordinators are closed next, and none that hangs there changes it.
        """

    def ended(self) -> None:
        """The coordinators are closed: the job is over."""


class JobLifecycle(Machine):
    """The lifecycle of the job as a whole."""

    STATES = (
        CREATED,
        RUNNING,
        STOPPING,
        RESTARTING,
        FINISHING,
        FAILING,
        CANCELING,
        FINISHED,
        FAILED,
        CANCELED,
    )
    INITIAL = CREATED
    TERMINAL = ENDED

    system: Job
    driver: LifecyclePort = output(LifecyclePort)

    leaving: int = Int("subtasks")
    """While all attempts go down: those whose process has not left yet."""
    running: int = Int("subtasks")
    ended: int = Int("subtasks")
    """Running attempts that have reached the end of their input."""
    restarts: int = Int("restarts")
    """How often everything was restarted."""
    has_backed_off: bool = Bool()
    is_stop_wanted: bool = Bool()

    start: Trigger
    attempt_running: Trigger
    attempt_ended: Trigger
    attempt_stopped: Trigger
    attempt_left: Trigger
    attempt_failed: Trigger
    fail_globally: Trigger
    backed_off: Trigger
    checkpoint_completed: Trigger
    checkpoint_over: Trigger
    reconsider: Trigger
    stop: Trigger
    give_up: Trigger
    cancel: Trigger
    expire_end: Trigger
    closed: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("start",    CREATED, RUNNING, None,
            "start_all",                           "the driver is ready"),
        Ignore("start", ENDED,            None,
                                                   "the job was ended before it began"),

        Row("attempt_running",   ANY,                                  STAY, "not is_last_running",
            "count_running",                       "other attempts have not restored their state"),
        Row("attempt_running",   ANY,                                  STAY, "is_last_running",
            "count_running, resume_request",       "every attempt has restored its state"),
        Row("attempt_ended",     ANY,                                  STAY, "not is_last_end",
            "count_ended",                         "other subtasks have not reached the end of their input"),
        Row("attempt_ended",     ANY,                                  STAY, "is_last_end",
            "count_ended, ask_for_last",           "all subtasks have reached the end of their input"),
        Row("attempt_stopped",   ANY,                                  STAY, None,
            "count_stopped",                       "the attempt does not run any more"),
        Row("attempt_left",      (RESTARTING, *ENDING), STAY, "not is_last_leaving",
            "count_left",                          "other attempts have a process"),
        Row("attempt_left",      (RESTARTING, *ENDING), STAY, "is_last_leaving",
            "count_left, settle_down",             "no attempt has a process any more"),
        Ignore("attempt_left",   (RUNNING, STOPPING),         None,
                                                   "the process has left, but the job goes on"),

        Row("attempt_failed",    (RUNNING, STOPPING),   STAY, None,
            "ask_restart_one",                     "a failed attempt concerns its own subtask only"),
        Row("attempt_failed",    FINISHING,             STAY, None,
            "note_left",                           "the process was told to leave, and needs no successor"),

        Row("fail_globally",    (RUNNING, STOPPING),                    RESTARTING, None,
            "cancel_all, ask_restart_all",         "the job's state as a whole cannot be relied on"),
        Ignore("fail_globally", (CREATED, RESTARTING, *ENDING, *ENDED),             None,
                                                   "all attempts are down, or go down already"),

        Row("backed_off",    RESTARTING,                                    STAY, "is_current",
            "note_back_off, settle_down",          "the restart strategy allows another try"),
        Ignore("backed_off", RESTARTING,                                          "not is_current",
                                                   "the back-off was for an earlier restart"),
        Ignore("backed_off", (CREATED, RUNNING, STOPPING, *ENDING, *ENDED),       None,
                                                   "the job waits for no back-off"),

        Row("checkpoint_completed",    RUNNING,                       FINISHING, "is_end",
            "finish_all",                          "the checkpoint holds the end of all input"),
        Ignore("checkpoint_completed", RUNNING,                                  "not is_end",
                                                   "a subtask has more input: the job goes on"),
        Row("checkpoint_completed",    STOPPING,                      FINISHING, None,
            "finish_all",                          "the last checkpoint of the stopping job is completed"),
        Ignore("checkpoint_completed", (RESTARTING, *ENDING, *ENDED),            None,
                                                   "the job restarts or ends already"),

        Row("checkpoint_over",    (RUNNING, STOPPING),   STAY, None,
            "resume_restarts",                     "restarts that waited for the store may go on"),
        Row("checkpoint_over",    (RESTARTING, *ENDING), STAY, None,
            "settle_down",                         "the restart or end that waited for the store may go on"),
        Ignore("checkpoint_over", ENDED,                       None,
                                                   "the job has ended with this checkpoint"),

        Row("reconsider",    RESTARTING,                           RUNNING,  "may_restart_all and not wants_stop",
            "restore_all",                         "all attempts are down, and the back-off is over"),
        Row("reconsider",    RESTARTING,                           STOPPING, "may_restart_all and wants_stop",
            "restore_all, ask_for_last",           "all attempts are down; a stop is pending"),
        Ignore("reconsider", RESTARTING,                                     "not may_restart_all",
                                                   "the back-off, an attempt or a save is not over yet"),
        Row("reconsider",    FINISHING,                            FINISHED, "is_down and is_committed and has_worked",
            "tell_finished, end",                  "all processes have left, and all output is committed"),
        Row("reconsider",    FAILING,                              FAILED,   "is_down",
            "tell_failed, end",                    "all processes have left"),
        Row("reconsider",    CANCELING,                            CANCELED, "is_down",
            "tell_canceled, end",                  "all processes have left"),
        Ignore("reconsider", FINISHING,                                      "not is_down",
                                                   "a process has not left, or a checkpoint is being stored"),
        Ignore("reconsider", FINISHING,                                      "is_down and not is_committed",
                                                   "the sink has not committed the last checkpoint"),
        Ignore("reconsider", FINISHING,                                      "is_down and is_committed and not has_worked",
                                                   "the work after the last commit is under way"),
        Ignore("reconsider", (FAILING, CANCELING),                           "not is_down",
                                                   "a process has not left, or a checkpoint is being stored"),
        Ignore("reconsider", (CREATED, RUNNING, STOPPING, *ENDED),           None,
                                                   "no restart or end is pending"),

        Row("stop",    RUNNING,                     STOPPING, None,
            "want_stop, ask_for_last",             "the job is to end with a last checkpoint"),
        Row("stop",    RESTARTING,                  STAY,     None,
            "want_stop",                           "the last checkpoint waits until all attempts run"),
        Row("stop",    CREATED,                     CANCELED, None,
            "tell_canceled, end",                  "the job has not begun"),
        Ignore("stop", (STOPPING, *ENDING, *ENDED),           None,
                                                   "the job ends already"),

        Row("give_up",    (RUNNING, STOPPING, RESTARTING, FINISHING), FAILING, None,
            "tell_cause, cancel_all, settle_down", "a restart is not allowed or would not help"),
        Row("give_up",    CREATED,                                    FAILED,  None,
            "tell_cause, tell_failed, end",        "the job could not begin"),
        Ignore("give_up", (FAILING, CANCELING, *ENDED),                        None,
                                                   "the job ends already"),

        Row("cancel",    (RUNNING, STOPPING, RESTARTING, FINISHING), CANCELING, None,
            "tell_cause, cancel_all, settle_down", "the user cancels the job"),
        Row("cancel",    CREATED,                                    CANCELED,  None,
            "tell_cause, tell_canceled, end",      "the job has not begun"),
        Ignore("cancel", (FAILING, CANCELING, *ENDED),                          None,
                                                   "the job ends already"),

        Row("expire_end",    (FAILING, CANCELING), STAY, None,
            "give_save_up",                        "a store that does not answer holds up no end"),
        Ignore("expire_end", ENDED,                      None,
                                                   "the job has ended within the limit"),

        Row("closed", ENDED, STAY, None,
            "tell_end",                            "the coordinators of the job are closed"),
    )
    # fmt: on

    def is_current(self, restarts: int) -> bool:
        return restarts == self.restarts

    def is_end(self, is_end: bool) -> bool:
        return is_end

    def wants_stop(self) -> bool:
        return self.is_stop_wanted

    def is_down(self) -> bool:
        return self.leaving == 0 and not self.system.checkpoint.is_storing()

    def is_committed(self) -> bool:
        return self.system.committer.is_settled()

    def has_worked(self) -> bool:
        return self.system.post_commit.is_settled()

    def has_ended(self) -> bool:
        return self.state == FINISHED or self.state == FAILED or self.state == CANCELED

    def may_restart_all(self) -> bool:
        return self.has_backed_off and self.is_down()

    def may_restart_one(self) -> bool:
        return self.state == RUNNING or self.state == STOPPING

    def is_restarting(self) -> bool:
        """Return whether all attempts go down in order to start again."""
        return self.state == RESTARTING

    def is_at_end(self) -> bool:
        """Return whether all subtasks have reached the end of their input."""
        return self.ended == self.sources()

    def may_checkpoint(self) -> bool:
        return self.may_restart_one() and self.running == self.system.subtasks

    def needs_checkpoint(self) -> bool:
        """Return whether the job cannot end without another checkpoint."""
        return self.state == STOPPING or (self.state == RUNNING and self.is_at_end())

    def start_all(self) -> None:
        for c in range(self.system.coordinators):
            if self.system.checkpoint.completed > 0:
                self.system.holder[c].reset(self.system.checkpoint.completed)
            else:
                self.system.holder[c].start()
        if self.system.checkpoint.completed > 0:
            self.hand_on()
        self.schedule_all()

    def hand_on(self) -> None:
        """Commit the restored checkpoint, which a driver may have left before its commit."""
        self.system.committer.due(self.system.checkpoint.completed)

    def schedule_all(self) -> None:
        for s in range(self.system.subtasks):
            self.system.attempt[s].schedule()

    def is_last_running(self) -> bool:
        return self.running + 1 == self.system.subtasks

    def is_last_leaving(self) -> bool:
        return self.leaving == 1

    def is_last_end(self) -> bool:
        return self.ended + 1 == self.sources()

    def sources(self) -> int:
        """Count the attempts that have to reach the end of their input."""
        return self.system.subtasks

    def count_running(self) -> None:
        self.running += 1

    def resume_request(self) -> None:
        self.system.request.reconsider()

    def count_ended(self) -> None:
        self.ended += 1

    def count_stopped(self, had_ended: bool) -> None:
        self.running -= 1
        if had_ended:
            self.ended -= 1

    def count_left(self) -> None:
        self.leaving -= 1

    def note_left(self) -> None:
        self.attempt_left()

    def count_leaving(self) -> None:
        self.leaving = 0
        for s in range(self.system.subtasks):
            if self.system.attempt[s].has_process():
                self.leaving += 1

    def ask_restart_one(self, subtask: int, attempt: int, reason: Opaque) -> None:
        self.driver.restart_one(subtask, attempt, reason)

    def tell_cause(self, reason: Opaque) -> None:
        self.driver.ending(reason)

    def cancel_all(self, reason: Opaque) -> None:
        self.system.checkpoint.abort(reason)
        self.running = 0
        self.ended = 0
        self.count_leaving()
        self.cancel_attempts()

    def cancel_attempts(self) -> None:
        for s in range(self.system.subtasks):
            self.system.attempt[s].cancel()

    def ask_restart_all(self, reason: Opaque) -> None:
        self.has_backed_off = False
        self.restarts += 1
        self.driver.restart_all(self.restarts, reason)

    def note_back_off(self) -> None:
        self.has_backed_off = True

    def settle_down(self) -> None:
        self.reconsider()

    def resume_restarts(self) -> None:
        for s in range(self.system.subtasks):
            if self.system.attempt[s].has_restart_due:
                self.system.attempt[s].restart(self.system.attempt[s].number)

    def restore_all(self) -> None:
        for c in range(self.system.coordinators):
            self.system.holder[c].reset(self.system.checkpoint.completed)
        self.recreate_all()

    def recreate_all(self) -> None:
        for s in range(self.system.subtasks):
            self.system.attempt[s].recreate()

    def give_save_up(self, reason: Opaque) -> None:
        self.system.checkpoint.give_save_up(reason)

    def want_stop(self) -> None:
        self.is_stop_wanted = True

    def ask_for_last(self) -> None:
        self.system.request.submit()

    def finish_all(self) -> None:
        self.count_leaving()
        for s in range(self.system.subtasks):
            if self.system.attempt[s].is_running():
                self.driver.finish(s, self.system.attempt[s].identity)

    def end(self) -> None:
        for c in range(self.system.coordinators):
            self.system.holder[c].close()
        self.closed()

    def tell_finished(self) -> None:
        self.driver.decided("finished", self.system.checkpoint.completed)

    def tell_failed(self) -> None:
        self.driver.decided("failed", self.system.checkpoint.completed)

    def tell_canceled(self) -> None:
        self.driver.decided("canceled", self.system.checkpoint.completed)

    def tell_end(self) -> None:
        self.driver.ended()
