"""A coordinator's snapshot without a checkpoint, for jobs that take none.

Decides that one is taken at a time, that it is the coordinator's state at the moment in which its
future completes, and that it is handed over only when every event sent before that moment was
handled by its subtask. No gateway is marked or closed, since no barrier follows and the subtasks
keep no state; events sent afterwards go on. A reset of the coordinator ends the snapshot.

Leaves to the shell which events are on their way: they are counted once, when the future completes,
and each later ends in `confirm` or `lose` under the number of its snapshot. Source: the batch
snapshots of Apache Flink's OperatorCoordinatorHolder (rule H17), whose id there is also that of "no
checkpoint"; here the two differ.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import (
    STAY,
    Ignore,
    Int,
    Machine,
    Opaque,
    Port,
    Row,
    System,
    Trigger,
    fallible,
    machines,
    output,
)

IDLE, ASKED, CONFIRMING = "idle", "asked", "confirming"


class BatchSnapshotPort(Port):
    """The coordinator, and the requester of the snapshot."""

    @fallible("fail", succeeds="succeed", within="checkpoint_timeout_s")
    def ask_coordinator(self, number: int) -> None:
        """Ask for a snapshot under this number."""

    def keep(self, state: Opaque) -> None:
        """The coordinator's state; not to be handed over yet."""

    def taken(self) -> None:
        """Let what was kept be handed over."""

    def failed(self) -> None:
        """The snapshot has failed."""

    def refused(self) -> None:
        """An earlier snapshot is still under way."""


class BatchSnapshot(Machine):
    """One coordinator's snapshots without checkpoints, one after the other."""

    INDEX = ("coordinator",)
    STATES = (IDLE, ASKED, CONFIRMING)
    INITIAL = IDLE

    system: BatchSnapshots
    coordinator: int
    requester: BatchSnapshotPort = output(BatchSnapshotPort)

    number: int = Int("snapshots")
    """Which one is under way, or was the last; counted from 1."""
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
        Row("ask",        IDLE,                ASKED,      None,
            "begin, ask_coordinator",      "a snapshot without a checkpoint is requested"),
        Row("ask",        (ASKED, CONFIRMING), STAY,       None,
            "refuse",                      "an earlier snapshot is still under way"),

        Row("succeed",    ASKED,               CONFIRMING, "is_current and has_in_flight",
            "keep_state, await_sends",     "the snapshot is taken; earlier sends are in flight"),
        Row("succeed",    ASKED,               IDLE,       "is_current and not has_in_flight",
            "keep_state, report_taken",    "the snapshot is taken, and all earlier sends are handled"),
        Ignore("succeed", ASKED,                           "not is_current",
                                           "the future of an earlier snapshot"),
        Ignore("succeed", (IDLE, CONFIRMING),              None,
                                           "the future of a snapshot that is over"),

        Row("fail",       ASKED,               IDLE,       "is_current",
            "report_failed",               "the coordinator could not take its snapshot"),
        Ignore("fail",    ASKED,                           "not is_current",
                                           "the future of an earlier snapshot"),
        Ignore("fail",    (IDLE, CONFIRMING),              None,
                                           "the future of a snapshot that is over"),

        Row("confirm",    CONFIRMING,          STAY,       "is_current and not is_last",
            "count_down",                  "other sends from before the snapshot are in flight"),
        Row("confirm",    CONFIRMING,          IDLE,       "is_current and is_last",
            "count_down, report_taken",    "all sends from before the snapshot are handled"),
        Ignore("confirm", CONFIRMING,                      "not is_current",
                                           "the send was awaited by an earlier snapshot"),
        Ignore("confirm", (IDLE, ASKED),                   None,
                                           "the send was awaited by a snapshot that is over"),

        Row("lose",       CONFIRMING,          IDLE,       "is_current",
            "stop_waiting, report_failed", "an event from before the snapshot is in no state"),
        Ignore("lose",    CONFIRMING,                      "not is_current",
                                           "the send was awaited by an earlier snapshot"),
        Ignore("lose",    (IDLE, ASKED),                   None,
                                           "the send was awaited by a snapshot that is over"),

        Row("cancel",     (ASKED, CONFIRMING), IDLE,       None,
            "stop_waiting, report_failed", "the coordinator is reset, or the job is over"),
        Ignore("cancel",  IDLE,                            None,
                                           "no snapshot is under way"),
    )
    # fmt: on

    def is_current(self, number: int) -> bool:
        return number == self.number

    def has_in_flight(self, number: int, in_flight: int) -> bool:
        return in_flight > 0

    def is_last(self) -> bool:
        return self.awaited == 1

    def begin(self) -> None:
        self.number += 1

    def ask_coordinator(self) -> None:
        self.requester.ask_coordinator(self.number)

    def refuse(self) -> None:
        self.requester.refused()

    def keep_state(self, number: int, in_flight: int, state: Opaque) -> None:
        self.requester.keep(state)

    def await_sends(self, number: int, in_flight: int) -> None:
        self.awaited = in_flight

    def count_down(self) -> None:
        self.awaited -= 1

    def stop_waiting(self) -> None:
        self.awaited = 0

    def report_taken(self) -> None:
        self.requester.taken()

    def report_failed(self) -> None:
        self.requester.failed()


class BatchSnapshots(System):
    """The snapshots without checkpoints of all coordinators of a job."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"coordinator": "coordinators"}
    CONSTANTS: ClassVar[dict[str, int]] = {"coordinators": 0}

    coordinators: int

    batch_snapshot: list[BatchSnapshot] = machines(BatchSnapshot)
