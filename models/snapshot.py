"""The coordinator's part of one checkpoint: from asking for a snapshot to a result that may be
relied on.

Marks the gateways before the coordinator is asked, closes them in the step in which its future
completes, and reports success only when every event sent before that moment was handled by its
subtask: an event that gets lost on the way would be in no state at all. Leaves to `Checkpoint` what
the result means, and that one checkpoint follows the other.

Source: Apache Flink's OperatorCoordinatorHolder, checkpointCoordinator (rules H9 to H12 in
docs/protocol.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import (
    STAY,
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

IDLE, ASKED, CONFIRMING = "idle", "asked", "confirming"


class CoordinatorPort(Port):
    """The call of the user's coordinator."""

    @fallible("fail", succeeds="succeed", within="checkpoint_timeout_s")
    def checkpoint(self, checkpoint: int) -> None:
        """Ask for a snapshot."""


class SnapshotPort(Port):
    """The place where the coordinator's bytes are kept until the checkpoint is stored."""

    def keep(self, checkpoint: int, state: Opaque) -> None:
        """The coordinator's state in this checkpoint."""


class CoordinatorSnapshot(Machine):
    """One coordinator's snapshot for the checkpoint under way."""

    INDEX = ("coordinator",)
    STATES = (IDLE, ASKED, CONFIRMING)
    INITIAL = IDLE

    system: Job
    coordinator: int
    user: CoordinatorPort = output(CoordinatorPort)
    results: SnapshotPort = output(SnapshotPort)

    checkpoint: int = Int("checkpoints")
    awaited: int = Int("in_flight")
    """Sends from before the snapshot that are not confirmed yet, over all subtasks."""

    ask: Trigger
    succeed: Trigger
    fail: Trigger
    confirm: Trigger
    lose: Trigger
    cancel: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("ask",        IDLE,                ASKED,      "may_mark",
            "mark_gateways, ask_coordinator",           "a checkpoint was triggered"),

        Row("succeed",    ASKED,               CONFIRMING, "is_current and may_close and has_in_flight",
            "keep_state, close_gateways",               "the snapshot is taken; earlier sends are in flight"),
        Row("succeed",    ASKED,               IDLE,       "is_current and may_close and not has_in_flight",
            "keep_state, close_gateways, report_ready", "the snapshot is taken, and all earlier sends are handled"),
        Row("succeed",    ASKED,               IDLE,       "is_current and not may_close",
            "report_unmarked",                          "a gateway is not marked any more, so it cannot be closed"),
        Ignore("succeed", ASKED,                           "not is_current",
                                                        "the future of an earlier checkpoint"),
        Ignore("succeed", (IDLE, CONFIRMING),              None,
                                                        "the future of a checkpoint that is over"),

        Row("fail",       ASKED,               IDLE,       "is_current",
            "report_failed",                            "the coordinator could not take its snapshot"),
        Ignore("fail",    ASKED,                           "not is_current",
                                                        "the future of an earlier checkpoint"),
        Ignore("fail",    (IDLE, CONFIRMING),              None,
                                                        "the future of a checkpoint that is over"),

        Row("confirm",    CONFIRMING,          STAY,       "not is_last",
            "count_down",                               "other sends from before the snapshot are in flight"),
        Row("confirm",    CONFIRMING,          IDLE,       "is_last",
            "count_down, report_ready",                 "all sends from before the snapshot are handled"),

        Row("lose",       CONFIRMING,          IDLE,       None,
            "stop_waiting, report_failed",              "an event from before the snapshot is in no state"),
        Ignore("lose",    (IDLE, ASKED),                   None,
                                                        "the snapshot is over"),

        Row("cancel",     ASKED,               IDLE,       "is_current",
            None,                                       "the checkpoint was aborted"),
        Row("cancel",     CONFIRMING,          IDLE,       "is_current",
            "stop_waiting",                             "the checkpoint was aborted; its sends stay counted"),
        Ignore("cancel",  (ASKED, CONFIRMING),             "not is_current",
                                                        "another checkpoint was aborted"),
        Ignore("cancel",  IDLE,                            None,
                                                        "the coordinator's snapshot is over"),
    )
    # fmt: on

    def may_mark(self, checkpoint: int) -> bool:
        return all(
            self.system.gateway[self.coordinator, s].may_mark(checkpoint)
            for s in range(self.system.subtasks)
        )

    def is_current(self, checkpoint: int) -> bool:
        return checkpoint == self.checkpoint

    def is_asked_for(self, checkpoint: int) -> bool:
        """Return whether the coordinator's answer for this checkpoint is still waited for."""
        return self.state == ASKED and checkpoint == self.checkpoint

    def may_close(self, checkpoint: int) -> bool:
        return all(
            self.system.gateway[self.coordinator, s].is_marked(checkpoint)
            for s in range(self.system.subtasks)
        )

    def has_in_flight(self) -> bool:
        return any(
            self.system.gateway[self.coordinator, s].in_flight() > 0
            for s in range(self.system.subtasks)
        )

    def is_last(self, count: int) -> bool:
        return count == self.awaited

    def mark_gateways(self, checkpoint: int) -> None:
        self.checkpoint = checkpoint
        for s in range(self.system.subtasks):
            self.system.gateway[self.coordinator, s].mark(checkpoint)

    def ask_coordinator(self, checkpoint: int) -> None:
        self.user.checkpoint(checkpoint)

    def keep_state(self, checkpoint: int, state: Opaque) -> None:
        self.results.keep(checkpoint, state)

    def close_gateways(self, checkpoint: int) -> None:
        self.awaited = 0
        for s in range(self.system.subtasks):
            self.awaited += self.system.gateway[self.coordinator, s].in_flight()
            self.system.gateway[self.coordinator, s].close(checkpoint)

    def count_down(self, count: int) -> None:
        self.awaited -= count

    def stop_waiting(self) -> None:
        self.awaited = 0
        for s in range(self.system.subtasks):
            self.system.gateway[self.coordinator, s].stop_waiting()

    def report_ready(self) -> None:
        self.system.checkpoint.coordinator_ready(self.checkpoint)

    def report_unmarked(self) -> None:
        self.system.checkpoint.coordinator_failed(
            self.checkpoint, "a gateway is not marked any more, so it cannot be closed"
        )

    def report_failed(self, checkpoint: int, reason: Opaque) -> None:
        self.system.checkpoint.coordinator_failed(checkpoint, reason)
