"""Operators that speak to their coordinators, and coordinators that are slow to start."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm.closed import Step, always, leads_to, sometimes
from epochgate.models.closed import untaken
from epochgate.models.closed.job import ClosedJob
from epochgate.models.holder import BROKEN, STARTED, STARTING
from epochgate.models.request import IDLE


class TalkingJob(ClosedJob):
    """The job and its messages: operators' events, receipts, failure reports, slow starts.

    Operators send events to their coordinators and get receipts; subtasks decline checkpoints;
    processes report failures; a coordinator may be slow to start or fail to start; checkpoints are
    also taken on request.
    """

    CONSTANTS: ClassVar[dict[str, int]] = {
        **ClosedJob.CONSTANTS,
        "subtasks": 1,
        "said": 1,
        "slow_starts": 1,
    }
    UNTAKEN: ClassVar[dict[str, str]] = {
        **untaken.LEFT_TO_ENDINGS,
        **untaken.EXCUSED,
    }
    STEPS = (
        *ClosedJob.STEPS,
        Step("process", "speak"),
        Step("process", "decline", is_fair=False),
        Step("process", "fail", is_fair=False),
        Step("process", "fail_to_restore", is_fair=False),
        Step("process", "lose_event", is_fair=False),
        Step("process", "expire_start", is_fair=False),
        Step("sender", "refuse_event", is_fair=False),
        Step("user", "get_ready"),
        Step("user", "fail_to_start", is_fair=False),
        Step("requester", "ask", is_fair=False),
    )

    @sometimes("a receipt is held by a closed gateway")
    def holds_a_receipt(self) -> bool:
        return any(
            self.gateway[c, s].held.size() > 0 and self.gateway[c, s].held.head() > self.events
            for c in range(self.coordinators)
            for s in range(self.subtasks)
        )

    @sometimes("a checkpoint completes that holds a receipt")
    def completes_with_a_receipt(self) -> bool:
        return any(
            self.process[s].completed_receipts[c] > 0
            for c in range(self.coordinators)
            for s in range(self.subtasks)
        )

    @always("a coordinator that is taken for starting was told to start")
    def starts_coordinators(self) -> bool:
        return all(
            self.holder[c].state != STARTING or self.user[c].starting > 0
            for c in range(self.coordinators)
        )

    def is_running(self) -> bool:
        return self.lifecycle.running == self.subtasks

    def is_served(self) -> bool:
        return self.request.state == IDLE

    @leads_to("whatever fails, all subtasks run again", then="is_running")
    def is_not_running(self) -> bool:
        return not self.is_running()

    @leads_to("a client that waits for a checkpoint learns its outcome", then="is_served")
    def is_requested(self) -> bool:
        return not self.is_served()

    def is_answered(self) -> bool:
        return not self.requester.is_waiting

    @leads_to("a client that asks for a checkpoint gets one that begins later", then="is_answered")
    def is_asked_for_another(self) -> bool:
        return self.requester.is_waiting

    def has_built_coordinators(self) -> bool:
        return all(self.holder[c].state != BROKEN for c in range(self.coordinators))

    @leads_to("a coordinator that could not start is rebuilt", then="has_built_coordinators")
    def has_broken_coordinator(self) -> bool:
        return not self.has_built_coordinators()

    @sometimes("a coordinator that could not start runs after all")
    def starts_after_all(self) -> bool:
        return self.lifecycle.restarts > 0 and self.holder[0].state == STARTED
