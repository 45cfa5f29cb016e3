"""The design with the marker, with one piece after the other left out."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import Row
from epochgate.fsm.system import machines
from epochgate.models.studies.acknowledged import (
    IDLE,
    INJECTED,
    READY,
    TRIGGERED,
    Acknowledged,
    Checkpoint,
    Sender,
)


class HastyCheckpoint(Checkpoint):
    """A checkpoint that does not wait for what is before the marker."""

    STATES = (IDLE, TRIGGERED, READY, INJECTED)

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in Checkpoint.ROWS if row.trigger not in ("marked", "settled", "abort")),

        Row("marked", TRIGGERED,                    READY, None,
            None,            "the marker came out"),
        Row("abort",  (TRIGGERED, READY, INJECTED), IDLE,  None,
            "clear, reopen", "it takes too long, or something failed"),
    )
    # fmt: on

    def proceed_if_settled(self) -> None:
        """Do nothing: a hasty checkpoint waits for no events."""


class NotWaiting(Acknowledged):
    """A barrier that comes through another subtask overtakes an event from before the snapshot."""

    CONSTANTS: ClassVar[dict[str, int]] = {**Acknowledged.CONSTANTS, "U": 0, "F": 0}

    checkpoint: Checkpoint = machines(HastyCheckpoint)


class EagerCheckpoint(Checkpoint):
    """A checkpoint that lets the outbox go on as soon as barriers are sent."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in Checkpoint.ROWS if row.trigger != "inject"),
        Row("inject", READY, INJECTED, None, "put_barriers, reopen", "the coordinator's part is there"),
    )
    # fmt: on


class ReopenedAtInjection(Acknowledged):
    """An event that waited behind the marker overtakes a barrier that comes through another
    subtask.
    """

    CONSTANTS: ClassVar[dict[str, int]] = {**Acknowledged.CONSTANTS, "U": 0, "F": 0}

    checkpoint: Checkpoint = machines(EagerCheckpoint)


class HastySender(Sender):
    """A coordinator that acknowledges events past its outbox."""

    def acknowledge(self) -> None:
        self.system.subtask[self.subtask].wire.push(self.system.E)


class PastTheMarker(Acknowledged):
    """An acknowledgement overtakes the marker, and the event is in no checkpoint of the coordinator."""

    CONSTANTS: ClassVar[dict[str, int]] = {**Acknowledged.CONSTANTS, "E": 1, "F": 0}

    sender: list[Sender] = machines(HastySender)
