"""The progress of a job that goes on for ever, as long as failures are few."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm.closed import Step, leads_to
from epochgate.models.checkpoint import COMPLETED
from epochgate.models.closed import untaken
from epochgate.models.closed.job import ClosedJob
from epochgate.models.gateway import CLOSED


class LiveJob(ClosedJob):
    """The job for ever: with few failures, checkpoints complete and gateways open again.

    Numbers that are used up are counted from 1 again. A timeout counts as a failure: with a timeout
    that is too short no checkpoint completes.
    """

    CONSTANTS: ClassVar[dict[str, int]] = {
        **ClosedJob.CONSTANTS,
        "renumbered": 1,
        "timeouts_cost": 1,
    }
    UNTAKEN: ClassVar[dict[str, str]] = {
        **ClosedJob.UNTAKEN,
        **untaken.left_to("epochgate", "lifecycle.fail_globally", "process.ended"),
    }
    STEPS = (*ClosedJob.STEPS, Step("names", "wrap"))

    def is_deciding(self) -> bool:
        return all(
            self.sender[c, s].undecided == 0
            for c in range(self.coordinators)
            for s in range(self.subtasks)
        )

    def is_open(self) -> bool:
        return all(
            self.gateway[c, s].state != CLOSED
            for c in range(self.coordinators)
            for s in range(self.subtasks)
        )

    @leads_to("I4: each send is decided", then="is_deciding")
    def has_sent(self) -> bool:
        return not self.is_deciding()

    @leads_to("I5: each closed gateway reopens", then="is_open")
    def has_closed(self) -> bool:
        return not self.is_open()

    @leads_to("I6: another checkpoint completes", then="is_complete")
    def is_incomplete(self) -> bool:
        return self.checkpoint.state != COMPLETED

    @leads_to("I6: another checkpoint begins", then="is_incomplete")
    def is_complete(self) -> bool:
        return self.checkpoint.state == COMPLETED
