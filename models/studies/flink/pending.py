"""Flink's checkpoint coordinator: the triggering of checkpoints, one after the other, and those that
are pending.

The first `savepoints` ids are plain savepoints: their completion is not announced, and none is
restored from. Without `periodic` there is no scheduler whose stop aborts what is pending when a
subtask fails: that happens only when the subtask is restored.

Source: Apache Flink's CheckpointCoordinator and PendingCheckpoint. Runs on the threads of a timer
and of the store; what it tells the coordinator is posted to the main thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import STAY, Array, Bool, Ignore, Machine, Row, Trigger
from epochgate.models.studies.flink.holder import (
    ABORT_TRIGGERING,
    ABORTED as TELL_ABORTED,
    COMPLETE,
    TRIGGER,
)

if TYPE_CHECKING:
    from epochgate.models.studies.flink.system import Flink

ABSENT, CREATED, TRIGGERED, READY, INJECTED, COMPLETED, ABORTED = (
    "absent",
    "created",
    "triggered",
    "ready",
    "injected",
    "completed",
    "aborted",
)


class Pending(Machine):
    """One checkpoint, from its creation to its end."""

    INDEX = ("checkpoint",)
    STATES = (ABSENT, CREATED, TRIGGERED, READY, INJECTED, COMPLETED, ABORTED)
    INITIAL = ABSENT
    TERMINAL = (COMPLETED, ABORTED)

    system: Flink
    checkpoint: int

    has_acknowledged: list[bool] = Array(Bool(), "N")
    is_needed: list[bool] = Array(Bool(), "N")
    """The subtask had not finished when the checkpoint began."""

    begin: Trigger
    ask_coordinators: Trigger
    coordinators_done: Trigger
    coordinators_failed: Trigger
    inject: Trigger
    acknowledge: Trigger
    complete: Trigger
    abort: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("begin",                  ABSENT,                       CREATED,   "may_begin",
            "count_subtasks",                        "a request is chosen"),
        Row("ask_coordinators",       CREATED,                      TRIGGERED, None,
            "post_trigger",                          "its place in the store is there"),
        Row("coordinators_done",      TRIGGERED,                    READY,     None,
            None,                                    "the coordinator's part is there"),
        Row("inject",                 READY,                        INJECTED,  None,
            "put_barriers",                          "sources are told, and the next trigger may begin"),
        Row("acknowledge",            INJECTED,                     STAY,      None,
            "note, complete_if_all",                 "a subtask has its part"),
        Row("complete",               INJECTED,                     COMPLETED, None,
            "compare, keep, subsume, post_complete", "all parts are there and stored"),

        Row("coordinators_failed",    TRIGGERED,                    ABORTED,   None,
            "post_abort_triggering, post_aborted",   "the coordinator's part failed"),
        Row("abort",                  (CREATED, TRIGGERED, READY),  ABORTED,   None,
            "post_aborted, post_abort_triggering",   "it is over, and so is its trigger"),
        Row("abort",                  INJECTED,                     ABORTED,   None,
            "post_aborted, tell_tasks",              "it is over"),

        Ignore("coordinators_done",   ABORTED,                                 None,
                                                     "it was aborted meanwhile"),
        Ignore("coordinators_failed", ABORTED,                                 None,
                                                     "it was aborted meanwhile"),
        Ignore("acknowledge",         ABORTED,                                 None,
                                                     "it is late"),
        Ignore("abort",               (ABSENT, COMPLETED, ABORTED),            None,
                                                     "there is nothing to abort"),
    )
    # fmt: on

    def may_begin(self) -> bool:
        return (
            all(self.allows_next(k) for k in range(self.system.K))
            and self.system.requests.has_room()
            and all(self.system.task[s].lets_checkpoints_begin() for s in range(self.system.N))
        )

    def allows_next(self, checkpoint: int) -> bool:
        """Return whether checkpoint `checkpoint` allows this one to begin: ids grow, one trigger at
        a time.
        """
        return not self.system.pending[checkpoint].is_triggering() and (
            checkpoint >= self.checkpoint or self.system.pending[checkpoint].state != ABSENT
        )

    def is_triggering(self) -> bool:
        return self.state == CREATED or self.state == TRIGGERED or self.state == READY

    def is_pending(self) -> bool:
        return self.is_triggering() or self.state == INJECTED

    def is_savepoint(self) -> bool:
        return self.checkpoint < self.system.savepoints

    def count_subtasks(self) -> None:
        for s in range(self.system.N):
            self.is_needed[s] = self.system.task[s].is_believed_to_run()

    def post_trigger(self) -> None:
        self.system.main.post(TRIGGER, self.checkpoint)

    def post_abort_triggering(self) -> None:
        self.system.main.post(ABORT_TRIGGERING, 0)

    def post_aborted(self) -> None:
        self.system.main.post(TELL_ABORTED, self.checkpoint)

    def post_complete(self) -> None:
        if not self.is_savepoint():
            self.system.main.post(COMPLETE, self.checkpoint)

    def put_barriers(self) -> None:
        for s in range(self.system.N):
            if self.system.task[s].is_believed_to_run():
                self.system.task[s].put_barrier(self.checkpoint)

    def tell_tasks(self) -> None:
        for s in range(self.system.N):
            self.system.task[s].put_abort(self.checkpoint)

    def note(self, subtask: int) -> None:
        self.has_acknowledged[subtask] = True

    def complete_if_all(self) -> None:
        if all(self.has_acknowledged[s] or not self.is_needed[s] for s in range(self.system.N)):
            self.complete()

    def compare(self) -> None:
        for s in range(self.system.N):
            if self.is_needed[s]:
                for e in range(self.system.E):
                    is_sent = e < self.system.sender[s].snapshot[self.checkpoint]
                    is_handled = self.system.task[s].snapshot[self.checkpoint][e]
                    assert is_handled or not is_sent, (
                        "I1: what was sent before the coordinator's snapshot is in the subtask's"
                    )
                    assert is_sent or not is_handled, (
                        "I2: what was sent after the coordinator's snapshot is not in the subtask's"
                    )

    def keep(self) -> None:
        """Let subtasks be restored from it, unless it is a savepoint."""
        if not self.is_savepoint():
            for s in range(self.system.N):
                if self.is_needed[s]:
                    self.system.sender[s].completed = self.system.sender[s].snapshot[
                        self.checkpoint
                    ]
                    for e in range(self.system.E):
                        self.system.task[s].completed[e] = self.system.task[s].snapshot[
                            self.checkpoint
                        ][e]

    def subsume(self) -> None:
        if not self.is_savepoint():
            for k in range(self.system.K):
                if k < self.checkpoint and k >= self.system.savepoints:
                    self.system.pending[k].abort()


class Requests(Machine):
    """The requests to all pending checkpoints together."""

    system: Flink

    def has_room(self) -> bool:
        count = 0
        for k in range(self.system.K):
            if self.system.pending[k].is_pending():
                count += 1
        return count < self.system.concurrent

    def abort_all(self) -> None:
        for k in range(self.system.K):
            self.system.pending[k].abort()
