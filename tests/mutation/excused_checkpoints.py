"""The mutants of a job's checkpoints, gateways and commits that survive, and why they may.

Those of the other machines are in `excused`.
"""

from __future__ import annotations

HOLDS_NOTHING = "a gateway holds events only while it is closed"
OWN_ATTEMPT = "an event is put on the wire of the gateway's own attempt, whatever attempt is given"
GOES_DOWN = "a job that goes down ignores a second order to do so"
LATER_ALL = (
    "what goes on once a checkpoint is over is fired behind all that its end fires in the same "
    "step, and comes to the same"
)
TOLD_FIRST = (
    "tasks are told within the step, and coordinators, gateways and the job hear behind it: the "
    "order in which both are said changes nothing"
)
CANCELS_SILENTLY = "that a snapshot is canceled changes no gateway before the gateways have opened"
WAITS_ANYWAY = (
    "which process waits for a place is the same before and after its attempt is canceled"
)
NONE_DUE = "no part of a checkpoint is due in this state, so that none is the last"

OF_CHECKPOINTS: dict[str, tuple[str, ...]] = {
    "the checkpoint that is completed has been noted as the newest one in the same step": (
        "checkpoint.complete: `self.number` -> `self.completed`",
    ),
    HOLDS_NOTHING: (
        "gateway: reopen from closed when is_marked: also from marked",
        "gateway: renew from any state but open: also from open",
    ),
    OWN_ATTEMPT: (
        "gateway.pass_on: `self.attempt` -> `self.latest`",
        "gateway.pass_on: `self.attempt` -> `self.sent`",
        "gateway.pass_on: `self.attempt` -> `self.confirmed`",
        "gateway.pass_on: `self.attempt` -> `self.awaited`",
    ),
    GOES_DOWN: (
        "checkpoint: store_unknown from storing when is_current: end_job twice",
        "checkpoint: expire_save from storing when is_current: end_job twice",
    ),
    LATER_ALL: (
        "checkpoint: store_unknown from storing when is_current: settle_request before end_job",
        "checkpoint: expire_save from storing when is_current: settle_request before end_job",
        "checkpoint.settle_request: `def settle_request(self) -> None: "
        "self.system.request.settle() self.system.lifecycle.checkpoint_over()` -> `def "
        "settle_request(self) -> None: self.system.lifecycle.checkpoint_over() "
        "self.system.request.settle()`",
        "checkpoint.abandon_for_good: `def abandon_for_good(self, checkpoint: int, reason: "
        "Opaque) -> None: self.announce_abort(reason) self.system.lifecycle.give_up(reason) "
        "self.settle_request()` -> `def abandon_for_good(self, checkpoint: int, reason: "
        "Opaque) -> None: self.announce_abort(reason) self.settle_request() "
        "self.system.lifecycle.give_up(reason)`",
        "checkpoint.abandon: `def abandon(self, reason: Opaque) -> None: "
        "self.announce_abort(reason) self.settle_request()` -> `def abandon(self, reason: "
        "Opaque) -> None: self.settle_request() self.announce_abort(reason)`",
    ),
    TOLD_FIRST: (
        "checkpoint.tell_completed: `def tell_completed(self) -> None: self.completed = "
        "self.number self.failures = 0 self.driver.completed(self.number) for c in "
        "range(self.system.coordinators): "
        "self.system.holder[c].checkpoint_complete(self.number) for s in "
        "range(self.system.subtasks): if self.system.attempt[s].is_running(): "
        "self.tasks.complete(s, self.system.attempt[s].identity, self.number) "
        "self.system.lifecycle.checkpoint_completed(self.ends_due == 0)` -> `def "
        "tell_completed(self) -> None: self.completed = self.number self.failures = 0 "
        "self.driver.completed(self.number) for s in range(self.system.subtasks): if "
        "self.system.attempt[s].is_running(): self.tasks.complete(s, "
        "self.system.attempt[s].identity, self.number) for c in "
        "range(self.system.coordinators): "
        "self.system.holder[c].checkpoint_complete(self.number) "
        "self.system.lifecycle.checkpoint_completed(self.ends_due == 0)`",
        "checkpoint.tell_completed: `def tell_completed(self) -> None: self.completed = "
        "self.number self.failures = 0 self.driver.completed(self.number) for c in "
        "range(self.system.coordinators): "
        "self.system.holder[c].checkpoint_complete(self.number) for s in "
        "range(self.system.subtasks): if self.system.attempt[s].is_running(): "
        "self.tasks.complete(s, self.system.attempt[s].identity, self.number) "
        "self.system.lifecycle.checkpoint_completed(self.ends_due == 0)` -> `def "
        "tell_completed(self) -> None: self.completed = self.number self.failures = 0 "
        "self.driver.completed(self.number) for c in range(self.system.coordinators): "
        "self.system.holder[c].checkpoint_complete(self.number) "
        "self.system.lifecycle.checkpoint_completed(self.ends_due == 0) for s in "
        "range(self.system.subtasks): if self.system.attempt[s].is_running(): "
        "self.tasks.complete(s, self.system.attempt[s].identity, self.number)`",
        "checkpoint.announce_abort: `def announce_abort(self, reason: Opaque) -> None: "
        "self.driver.aborted(self.number, reason) for c in range(self.system.coordinators): "
        "self.system.snapshot[c].cancel(self.number) for s in range(self.system.subtasks): "
        "self.system.gateway[c, s].reopen(self.number) "
        "self.system.holder[c].checkpoint_aborted(self.number) for s in "
        "range(self.system.subtasks): if self.system.attempt[s].is_running(): "
        "self.tasks.aborted(s, self.system.attempt[s].identity, self.number) self.unseal() "
        "self.forget_parts()` -> `def announce_abort(self, reason: Opaque) -> None: "
        "self.driver.aborted(self.number, reason) for s in range(self.system.subtasks): if "
        "self.system.attempt[s].is_running(): self.tasks.aborted(s, "
        "self.system.attempt[s].identity, self.number) for c in "
        "range(self.system.coordinators): self.system.snapshot[c].cancel(self.number) for s "
        "in range(self.system.subtasks): self.system.gateway[c, s].reopen(self.number) "
        "self.system.holder[c].checkpoint_aborted(self.number) self.unseal() "
        "self.forget_parts()`",
    ),
    CANCELS_SILENTLY: (
        "checkpoint.announce_abort: `for c in range(self.system.coordinators): "
        "self.system.snapshot[c].cancel(self.number) for s in range(self.system.subtasks): "
        "self.system.gateway[c, s].reopen(self.number) "
        "self.system.holder[c].checkpoint_aborted(self.number)` -> `for c in "
        "range(self.system.coordinators): for s in range(self.system.subtasks): "
        "self.system.gateway[c, s].reopen(self.number) "
        "self.system.snapshot[c].cancel(self.number) "
        "self.system.holder[c].checkpoint_aborted(self.number)`",
    ),
    "the checkpoint that was completed last is by then the one under way": tuple(
        f"checkpoint.{method}: `{told.format('number')}` -> `{told.format('completed')}`"
        for method, told in (
            ("tell_completed", "self.driver.completed(self.{})"),
            ("tell_completed", "self.system.holder[c].checkpoint_complete(self.{})"),
            (
                "tell_completed",
                "self.tasks.complete(s, self.system.attempt[s].identity, self.{})",
            ),
        )
    ),
    "the row is for the checkpoint under way": (
        "checkpoint.count_subtask: `self.driver.keep(checkpoint, subtask, snapshot)` -> "
        "`self.driver.keep(self.number, subtask, snapshot)`",
        "checkpoint.report: `self.driver.unknown(checkpoint, reason)` -> "
        "`self.driver.unknown(self.number, reason)`",
    ),
    WAITS_ANYWAY: (
        "ConcurrentJob.lifecycle.cancel_attempts: `def cancel_attempts(self) -> None: for "
        "v in range(self.system.vertices): self.system.vertex[v].abandon() for s in "
        "range(self.system.subtasks): self.system.attempt[s].cancel()` -> `def "
        "cancel_attempts(self) -> None: for s in range(self.system.subtasks): "
        "self.system.attempt[s].cancel() for v in range(self.system.vertices): "
        "self.system.vertex[v].abandon()`",
    ),
    NONE_DUE: (
        *(
            "checkpoint: coordinator_ready from triggering when is_current and "
            f"is_last_coordinator: also from {state}"
            for state in ("none", "pending", "storing", "completed", "aborted", "unknown")
        ),
        *(
            "checkpoint: acknowledge from pending when is_current and is_due and "
            f"is_last_subtask: also from {state}"
            for state in ("none", "storing", "completed", "aborted", "unknown")
        ),
        "checkpoint: acknowledge from pending when is_current and is_due and not is_last_subtask: "
        "also from storing",
    ),
}
"""Reason -> the names of the mutants that it is for."""
