"""The closed job whose coordinators send faster than their tasks take: each gateway has its window.

All claims of the job are held to while senders are refused and told: events that a closed gateway
holds are counted, and so are those of an attempt that fails, until they are over. How the window
and the threads around it get on is checked in `flooding`.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import machines
from epochgate.fsm.closed import always, leads_to, sometimes
from epochgate.models.closed import untaken
from epochgate.models.closed.endings import EndingJob
from epochgate.models.closed.surroundings.pressing import GatewaysWindow, PressingSender
from epochgate.models.gateway import CLOSED


class PressedJob(EndingJob):
    """The job with windows at its gateways: what is refused is sent later."""

    CONSTANTS: ClassVar[dict[str, int]] = {
        **EndingJob.CONSTANTS,
        "events": 3,
        "unconfirmed_bytes_max": 1,
    }
    DERIVED: ClassVar[dict[str, str]] = {
        **EndingJob.DERIVED,
        "event_bytes": "1",
        "posted_bytes": "events + 0",
        "granted": "events + unconfirmed_bytes_max",
    }
    UNTAKEN: ClassVar[dict[str, str]] = {
        **{
            f"{name}.{row.trigger}": "explored by the other systems made of these machines"
            for name, machine in EndingJob.MACHINES.items()
            if name not in ("gateway", "sender")
            for row in machine.ROWS
        },
        **untaken.NOWHERE,
        **untaken.LEFT_TO_TALKING,
        **{
            f"send_window.{row}": "explored by the system `flooding`"
            for row in (
                "send: an event by itself may be larger than the bound",
                "want: half of the bound is free, and the largest refused event fits",
                "freed: others have sent meanwhile",
                "freed: those who waited were told",
            )
        },
    }
    WIRING: ClassVar[dict[str, str]] = {**EndingJob.WIRING, "send_window.room": "sender"}

    unconfirmed_bytes_max: int

    send_window: dict[tuple[int, int], GatewaysWindow] = machines(GatewaysWindow)
    sender: dict[tuple[int, int], PressingSender] = machines(PressingSender)  # type: ignore[assignment]  # a subclass

    @always("no more than the bound is on the wire, or held by a closed gateway")
    def bounds_what_is_sent(self) -> bool:
        return all(
            self.sender[c, s].undecided <= self.unconfirmed_bytes_max
            for c in range(self.coordinators)
            for s in range(self.subtasks)
        )

    @sometimes("a sender is refused while its gateway is closed")
    def is_refused_when_closed(self) -> bool:
        return any(
            self.sender[c, s].is_refused and self.gateway[c, s].state == CLOSED
            for c in range(self.coordinators)
            for s in range(self.subtasks)
        )

    def is_told(self) -> bool:
        return all(
            not self.sender[c, s].is_refused
            for c in range(self.coordinators)
            for s in range(self.subtasks)
        )

    @leads_to("a sender that was refused is told", then="is_told")
    def is_refused(self) -> bool:
        return not self.is_told()
