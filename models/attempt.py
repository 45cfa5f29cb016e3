"""The execution attempt of one subtask: from created to finished, failed or canceled, and then its
successor.

Decides which process speaks for the subtask. A process is known by its `identity`, which grows with
each new one (in Spark the task attempt id, then a count); a newer identity evicts the older, an
older one is refused, and whatever the evicted one still says is ignored, so a zombie can neither
acknowledge nor commit. `number` counts the attempts that the job has made and binds the
coordinators' gateways. A process that arrives before its attempt is scheduled waits.

Also decides whether a process whose attempt is over may begin the next one, if it is fit for that
(`Resident`): where the subtask goes on and no newer process is known, under a newer identity.

Leaves to `JobLifecycle` when to restart, to `Checkpoint` what an acknowledgement means, to the
transport how a process comes to be. Source: Flink's ExecutionState and ExecutionVertex.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import ANY, STAY, Bool, Ignore, Int, Machine, Opaque, Port, Row, Trigger, output
from epochgate.fsm.ports import fallible

if TYPE_CHECKING:
    from epochgate.models.job import Job

CREATED, SCHEDULED, DEPLOYING = "created", "scheduled", "deploying"
INITIALIZING, RUNNING = "initializing", "running"
FINISHED, CANCELING, CANCELED, FAILED = "finished", "canceling", "canceled", "failed"
STARTING = (DEPLOYING, INITIALIZING)
STATES = (CREATED, SCHEDULED, *STARTING, RUNNING, FINISHED, CANCELING, CANCELED, FAILED)
CONNECTED = (*STARTING, RUNNING)
REACHABLE = (INITIALIZING, RUNNING)
GONE = (CREATED, SCHEDULED, FINISHED, CANCELING, CANCELED, FAILED)


def every_state_but(*states: str) -> tuple[str, ...]:
    """Return the states other than these, in order."""
    return tuple(state for state in STATES if state not in states)


class TaskPort(Port):
    """The process that runs the attempt."""

    @fallible("fail, lost, expire_start", succeeds="run", within="attempt_start_timeout_s")
    def restore(self, identity: int, attempt: int, checkpoint: int) -> None:
        """Begin from the subtask's state in `checkpoint`; 0 means from nothing."""


class SchedulerPort(Port):
    """The scheduler of processes."""

    def deploy(self, attempt: int) -> None:
        """A process is wanted for this attempt; it will connect."""

    def starting(self, attempt: int) -> None:
        """The attempt's time to restore begins; `expire_start` follows where it is too short."""

    def release(self, identity: int) -> None:
        """Release this process: it will be lost, and comes back as a newer one or is replaced."""

    def end(self, identity: int) -> None:
        """End this process; that it is gone will be reported as lost."""

    def refuse(self, identity: int) -> None:
        """End this process: a newer one speaks for the subtask."""

    def dismiss(self, identity: int) -> None:
        """Tell this process to leave: the subtask has finished, and no other is to take its place."""

    def metrics(self, counters: Opaque) -> None:
        """The figures of the subtask since its attempt began, or a warning about it."""


class Attempt(Machine):
    """The attempt of one subtask, and which process speaks for it."""

    INDEX = ("subtask",)
    STATES = STATES
    INITIAL = CREATED

    system: Job
    subtask: int
    task: TaskPort = output(TaskPort)
    scheduler: SchedulerPort = output(SchedulerPort)

    number: int = Int("attempts")
    identity: int = Int("identities")
    """The process that speaks for this attempt, or spoke for the last one."""
    waiting: int = Int("identities")
    """A newer process that waits for its attempt to be scheduled; 0 if none does."""
    newest: int = Int("identities")
    """The newest process that has ever connected, also if it was gone before its turn."""
    has_ended: bool = Bool()
    """The subtask has reached the end of its input and waits for the checkpoint that covers it."""
    has_restart_due: bool = Bool()
    """The back-off is over, but the checkpoint to restart from is still being stored."""

    schedule: Trigger
    connect: Trigger
    initialize: Trigger
    run: Trigger
    acknowledge: Trigger
    decline: Trigger
    confirm: Trigger
    operator_event: Trigger
    end_of_input: Trigger
    metrics: Trigger
    fail: Trigger
    fault: Trigger
    expire_start: Trigger
    lost: Trigger
    cancel: Trigger
    finish: Trigger
    restart: Trigger
    recreate: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("schedule", CREATED, SCHEDULED, "not has_waiting",
            "ask_for_process",                            "the attempt needs a process"),
        Row("schedule", CREATED, DEPLOYING, "has_waiting",
            "adopt_waiting, send_restore",                "a process of the subtask waits already"),

        Row("connect", SCHEDULED,                              DEPLOYING, "is_newer",
            "adopt, send_restore",                        "the requested process has connected"),
        Row("connect", STARTING,                               FAILED,    "is_newer",
            "keep_waiting, end_process, give_way",        "a newer process replaces the current process"),
        Row("connect", RUNNING,                                FAILED,    "is_newer",
            "keep_waiting, end_process, stop_running, give_way", "a newer process replaces the current process"),
        Row("connect", (CREATED, CANCELING, CANCELED, FAILED), STAY,      "is_newer",
            "keep_waiting",                               "the process waits until its attempt is scheduled"),
        Row("connect", FINISHED,                               STAY,      None,
            "dismiss",                                    "the subtask has finished: it needs no process"),
        Row("connect", every_state_but(FINISHED),              STAY,      "not is_newer",
            "refuse",                                     "a newer process is known: this process is a zombie"),

        Row("initialize",    DEPLOYING,                  INITIALIZING, "speaks",
            "announce_ready",                             "the process restores; events for the attempt may be sent"),
        Ignore("initialize", DEPLOYING,                                "not speaks",
                                                          "the message is from an evicted process"),
        Ignore("initialize", every_state_but(DEPLOYING),               None,
                                                          "a late or repeated report: the attempt is not deploying"),

        Row("run",    INITIALIZING,                  RUNNING, "speaks",
            "start_running",                              "the attempt has restored its state"),
        Ignore("run", INITIALIZING,                           "not speaks",
                                                          "the message is from an evicted process"),
        Ignore("run", every_state_but(INITIALIZING),          None,
                                                          "a late or repeated report: the attempt is not restoring"),

        Row("acknowledge",    RUNNING,                  STAY, "speaks",
            "pass_acknowledgement",                       "the subtask's part of a checkpoint"),
        Ignore("acknowledge", RUNNING,                        "not speaks",
                                                          "the message is from an evicted process"),
        Ignore("acknowledge", every_state_but(RUNNING),       None,
                                                          "this attempt takes no part in a checkpoint"),

        Row("decline",    RUNNING,                  STAY, "speaks",
            "pass_decline",                               "the subtask could not take its snapshot"),
        Ignore("decline", RUNNING,                        "not speaks",
                                                          "the message is from an evicted process"),
        Ignore("decline", every_state_but(RUNNING),       None,
                                                          "this attempt takes no part in a checkpoint"),

        Row("confirm",    REACHABLE,                   STAY, "speaks",
            "pass_confirmation",                          "the subtask has handled events"),
        Ignore("confirm", REACHABLE,                         "not speaks",
                                                          "the message is from an evicted process"),
        Ignore("confirm", every_state_but(*REACHABLE),       None,
                                                          "no send of this attempt waits for a confirmation"),

        Row("operator_event",    REACHABLE,                   STAY, "speaks",
            "pass_event",                                 "an operator speaks to its coordinator"),
        Ignore("operator_event", REACHABLE,                         "not speaks",
                                                          "the message is from an evicted process"),
        Ignore("operator_event", every_state_but(*REACHABLE),       None,
                                                          "the attempt is not running"),

        Row("end_of_input",    RUNNING,                  STAY, "speaks and not is_ended",
            "note_end",                                   "the subtask has nothing more to read"),
        Ignore("end_of_input", RUNNING,                        "speaks and is_ended",
                                                          "the end of the input was reported before"),
        Ignore("end_of_input", RUNNING,                        "not speaks",
                                                          "the message is from an evicted process"),
        Ignore("end_of_input", every_state_but(RUNNING),       None,
                                                          "a late report: the attempt is not running"),

        Row("metrics",    CONNECTED, STAY, "speaks",
            "pass_metrics",                               "figures of the current process have arrived"),
        Ignore("metrics", CONNECTED,       "not speaks",
                                                          "the message is from an evicted process"),
        Ignore("metrics", GONE,            None,
                                                          "the attempt has no process, or goes down already"),

        Row("fail",    STARTING,  FAILED, "speaks and not is_fatal",
            "release_process, report_failure",                "the process reports that it cannot go on"),
        Row("fail",    RUNNING,   FAILED, "speaks and not is_fatal",
            "release_process, stop_running, report_failure", "the process reports that it cannot go on"),
        Row("fail",    CONNECTED, STAY,   "speaks and is_fatal",
            "give_job_up",                                "the process reports that no attempt could go on"),
        Ignore("fail", CONNECTED,         "not speaks",
                                                          "the message is from an evicted process"),
        Ignore("fail", GONE,              None,
                                                          "the attempt has no process, or goes down already"),

        Row("fault",    STARTING, FAILED, None,
            "release_process, break_down",                "the driver cannot rely on this attempt any more"),
        Row("fault",    RUNNING,  FAILED, None,
            "release_process, stop_running, break_down",  "the driver cannot rely on this attempt any more"),
        Ignore("fault", GONE,             None,
                                                          "the attempt has no process, or goes down already"),

        Row("expire_start",    STARTING,                   FAILED, "is_current",
            "release_process, report_slow",               "the attempt takes too long to restore its state"),
        Ignore("expire_start", STARTING,                           "not is_current",
                                                          "the timer of an earlier attempt"),
        Ignore("expire_start", every_state_but(*STARTING),         None,
                                                          "the attempt is not restoring its state"),

        Row("lost",    STARTING,                                         FAILED,   "speaks",
            "report_failure",                             "the process or its connection is gone"),
        Row("lost",    RUNNING,                                          FAILED,   "speaks",
            "stop_running, report_failure",               "the process or its connection is gone"),
        Row("lost",    CANCELING,                                        CANCELED, "speaks",
            "report_left",                                "the process has ended on request"),
        Row("lost",    ANY,                                              STAY,     "not speaks and is_waiting",
            "forget_waiting",                             "the waiting process is gone"),
        Ignore("lost", ANY,                                                        "not speaks and not is_waiting",
                                                          "an evicted process is gone"),
        Ignore("lost", (CREATED, SCHEDULED, FINISHED, CANCELED, FAILED),           "speaks",
                                                          "the attempt of the process is over already"),

        Row("cancel",    (CREATED, SCHEDULED),                    CANCELED,  None,
            None,                                         "the attempt has no process yet"),
        Row("cancel",    CONNECTED,                               CANCELING, "restarts",
            "announce_cancel, release_process, forget_end", "all attempts go down together, and start again"),
        Row("cancel",    CONNECTED,                               CANCELING, "not restarts",
            "announce_cancel, end_process, forget_end",   "all attempts go down for good"),
        Ignore("cancel", (FINISHED, CANCELING, CANCELED, FAILED),            None,
                                                          "the attempt goes down, or is over already"),

        Row("finish",    RUNNING,                  FINISHED, "speaks",
            "finish_sends, stop_running, report_left",    "the process has left on request"),
        Ignore("finish", RUNNING,                            "not speaks",
                                                          "the message is from an evicted process"),
        Ignore("finish", every_state_but(RUNNING),           None,
                                                          "the attempt is not running"),

        Row("restart",    FAILED,                  CREATED, "is_current and may_restart",
            "renew, reset_coordinators, begin",           "the back-off is over"),
        Row("restart",    FAILED,                  STAY,    "is_current and not may_restart",
            "remember_restart",                           "a checkpoint is being stored, or the job goes down"),
        Ignore("restart", FAILED,                           "not is_current",
                                                          "another restart of the attempt came first"),
        Ignore("restart", every_state_but(FAILED),          None,
                                                          "another restart of the attempt came first"),

        Row("recreate", (FINISHED, CANCELED, FAILED), CREATED, None,
            "renew, begin",                               "all subtasks start again from one checkpoint"),
    )
    # fmt: on

    def has_waiting(self) -> bool:
        return self.waiting > 0

    def is_newer(self, identity: int) -> bool:
        return identity > self.newest

    def speaks(self, identity: int) -> bool:
        return identity == self.identity

    def is_waiting(self, identity: int) -> bool:
        return identity == self.waiting

    def is_ended(self) -> bool:
        return self.has_ended

    def is_current(self, number: int) -> bool:
        return number == self.number

    def restarts(self) -> bool:
        """Return whether all attempts that go down are to start again."""
        return self.system.lifecycle.is_restarting()

    def may_restart(self) -> bool:
        return self.system.lifecycle.may_restart_one() and not self.system.checkpoint.is_storing()

    def is_reachable(self) -> bool:
        """True if an event sent now would reach the attempt: Flink's running for coordinators."""
        return self.state == INITIALIZING or self.state == RUNNING

    def is_running(self) -> bool:
        return self.state == RUNNING

    def is_connected(self) -> bool:
        """Return whether a process speaks for the attempt."""
        return self.state == DEPLOYING or self.state == INITIALIZING or self.state == RUNNING

    def has_process(self) -> bool:
        """Return whether a process speaks for the attempt, or has yet to leave it."""
        return self.is_connected() or self.state == CANCELING

    def is_fatal(self, identity: int, reason: Opaque, is_fatal: bool) -> bool:
        return is_fatal

    def ask_for_process(self) -> None:
        self.scheduler.deploy(self.number)

    def adopt(self, identity: int) -> None:
        self.identity = identity
        if identity > self.newest:
            self.newest = identity

    def adopt_waiting(self) -> None:
        self.adopt(self.waiting)
        self.waiting = 0

    def send_restore(self) -> None:
        self.scheduler.starting(self.number)
        self.task.restore(self.identity, self.number, self.system.checkpoint.completed)

    def keep_waiting(self, identity: int) -> None:
        if self.waiting > 0:
            self.scheduler.refuse(self.waiting)
        self.waiting = identity
        self.newest = identity

    def forget_waiting(self) -> None:
        self.waiting = 0

    def refuse(self, identity: int) -> None:
        self.scheduler.refuse(identity)

    def dismiss(self, identity: int) -> None:
        self.scheduler.dismiss(identity)

    def release_process(self) -> None:
        self.scheduler.release(self.identity)

    def end_process(self) -> None:
        self.scheduler.end(self.identity)

    def announce_ready(self) -> None:
        for c in range(self.system.coordinators):
            self.system.holder[c].attempt_ready(self.subtask, self.number)

    def start_running(self) -> None:
        self.system.lifecycle.attempt_running()

    def stop_running(self) -> None:
        self.system.lifecycle.attempt_stopped(self.has_ended)
        self.forget_end()

    def forget_end(self) -> None:
        self.has_ended = False

    def pass_acknowledgement(
        self, identity: int, checkpoint: int, is_final: bool, snapshot: Opaque
    ) -> None:
        self.system.checkpoint.acknowledge(checkpoint, self.subtask, is_final, snapshot)

    def pass_decline(self, identity: int, checkpoint: int, reason: Opaque) -> None:
        self.system.checkpoint.decline(checkpoint, reason)

    def pass_confirmation(self, identity: int, coordinator: int, number: int) -> None:
        self.system.gateway[coordinator, self.subtask].confirm(self.number, number)

    def pass_event(self, identity: int, coordinator: int, event: Opaque) -> None:
        self.system.holder[coordinator].event(self.subtask, self.number, event)

    def pass_metrics(self, identity: int, counters: Opaque) -> None:
        self.scheduler.metrics(counters)

    def note_end(self) -> None:
        self.has_ended = True
        self.end_others()
        self.system.lifecycle.attempt_ended()

    def end_others(self) -> None:
        """The other attempts of this subtask; here there are none."""

    def give_job_up(self, identity: int, reason: Opaque) -> None:
        self.system.lifecycle.give_up(reason)

    def give_way(self) -> None:
        self.go_down("a newer process took its place")

    def report_failure(self, identity: int, reason: Opaque) -> None:
        self.go_down(reason)

    def break_down(self, reason: Opaque) -> None:
        self.go_down(reason)

    def report_slow(self, number: int, reason: Opaque) -> None:
        self.go_down(reason)

    def go_down(self, reason: Opaque) -> None:
        self.system.checkpoint.abort(reason)
        self.drop_in_flight(reason)
        self.announce_failed(reason)
        self.report_failed(reason)

    def announce_cancel(self) -> None:
        self.announce_failed("all attempts were canceled")
        self.drop_in_flight("all attempts were canceled")

    def finish_sends(self) -> None:
        self.drop_in_flight("its process has finished")

    def drop_in_flight(self, reason: Opaque) -> None:
        for c in range(self.system.coordinators):
            self.system.gateway[c, self.subtask].disconnect(reason)

    def announce_failed(self, reason: Opaque) -> None:
        for c in range(self.system.coordinators):
            self.system.holder[c].attempt_failed(self.subtask, self.number, reason)

    def report_failed(self, reason: Opaque) -> None:
        self.system.lifecycle.attempt_failed(self.subtask, self.number, reason)

    def report_left(self) -> None:
        self.system.lifecycle.attempt_left()

    def remember_restart(self) -> None:
        self.has_restart_due = True

    def renew(self) -> None:
        self.has_restart_due = False
        self.number = self.next_number()
        self.count_attempt()
        for c in range(self.system.coordinators):
            self.system.gateway[c, self.subtask].renew(self.number)

    def next_number(self) -> int:
        return self.number + 1

    def count_attempt(self) -> None:
        """Count the attempts of the subtask; here `number` does."""

    def reset_coordinators(self) -> None:
        for c in range(self.system.coordinators):
            self.system.holder[c].subtask_reset(self.subtask, self.system.checkpoint.completed)
        self.admit_others()

    def admit_others(self) -> None:
        """Other attempts of this subtask may begin too; here there are none."""

    def begin(self) -> None:
        self.schedule()
