"""The input of the global committer behind committers in the tasks: a checkpoint goes on once all
subtasks have passed on what they committed of it.

Decides when a checkpoint is whole, and that what a subtask passes on a second time is dropped. It
waits for no notice: that something has come implies that the checkpoint is completed. A checkpoint
that is stored holds what has come of those that are not whole. Source: Apache Flink's
CommittableCollector behind a CommitterOperator, where `commitOnInput` is true (rule C18 in
docs/protocol.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import (
    STAY,
    Array,
    Channel,
    Fifo,
    Ignore,
    Int,
    Machine,
    Opaque,
    Port,
    Row,
    Trigger,
    output,
)

if TYPE_CHECKING:
    from epochgate.models.committing_job import CommittingJob

IDLE, COLLECTING = "idle", "collecting"


class CollectorPort(Port):
    """The place where what the subtasks pass on is kept."""

    def collect(self, subtask: int, checkpoint: int, outcome: Opaque) -> None:
        """This is what a subtask has committed of a checkpoint."""

    def keep(self, checkpoint: int, earlier: int) -> None:
        """The checkpoint that is about to be stored holds what has come of an earlier one."""

    def whole(self, checkpoint: int) -> None:
        """All subtasks have passed on their parts of this checkpoint."""


class CommittableCollector(Machine):
    """The completed checkpoints of which some subtask has not passed on its part."""

    STATES = (IDLE, COLLECTING)
    INITIAL = IDLE

    system: CommittingJob
    parts: CollectorPort = output(CollectorPort)

    expected: Fifo[int] = Channel("checkpoints", "checkpoints")
    """Those that are not whole, oldest first."""
    received: list[int] = Array(Int("checkpoints"), "subtasks")
    """For each subtask the newest checkpoint that it has passed on."""

    expect: Trigger
    receive: Trigger
    carry: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("expect",     IDLE,       COLLECTING, None,
            "enter",          "the subtasks commit a completed checkpoint"),
        Row("expect",     COLLECTING, STAY,       None,
            "enter",          "an earlier checkpoint is not whole"),

        Row("receive",    COLLECTING, STAY,       "is_new and not makes_whole",
            "note",           "another subtask has not passed on its part"),
        Row("receive",    COLLECTING, STAY,       "is_new and makes_whole and not is_last",
            "note, hand_on",  "all of it has come, and a later checkpoint is not whole"),
        Row("receive",    COLLECTING, IDLE,       "is_new and makes_whole and is_last",
            "note, hand_on",  "all of it has come"),
        Ignore("receive", COLLECTING,             "not is_new",
                              "a restored subtask passes it on a second time"),
        Ignore("receive", IDLE,                   None,
                              "a restored subtask passes it on a second time"),

        Row("carry",      COLLECTING, STAY,       None,
            "carry_parts",    "a driver may die before all of it has come"),
        Ignore("carry",   IDLE,                   None,
                              "every checkpoint is whole"),
    )
    # fmt: on

    def is_new(self, subtask: int, checkpoint: int) -> bool:
        return checkpoint > self.received[subtask]

    def makes_whole(self, subtask: int, checkpoint: int) -> bool:
        return checkpoint >= self.expected.head() and all(
            self.received[s] >= self.expected.head() or s == subtask
            for s in range(self.system.subtasks)
        )

    def is_last(self) -> bool:
        return self.expected.size() == 1

    def is_settled(self) -> bool:
        return self.state == IDLE

    def enter(self, checkpoint: int) -> None:
        self.expected.push(checkpoint)

    def note(self, subtask: int, checkpoint: int, outcome: Opaque) -> None:
        self.received[subtask] = checkpoint
        self.parts.collect(subtask, checkpoint, outcome)

    def hand_on(self) -> None:
        self.parts.whole(self.expected.head())
        self.system.stage_behind.take(self.expected.pop())

    def carry_parts(self, checkpoint: int) -> None:
        for earlier in self.expected.take_all():
            self.expected.push(earlier)
            self.parts.keep(checkpoint, earlier)
