"""Renames numbers that only tell one thing from another, so that states that differ in them alone
are one.

Attempts are compared for being the same, processes for which is newer; what they are called makes
no difference. With `renumbered` the current attempt is called 0 again once its process restores,
and its process 1, or 2 when it has replaced another. Without, numbers are those of production.

Checkpoints and events are counted, so what is under way has to be over before the count can
restart: `wrap` does that, and lets a job of bounded numbers go on for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochgate.fsm import STAY, Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.gateway import OPEN
from epochgate.models.request import IDLE

if TYPE_CHECKING:
    from epochgate.models.closed.job import ClosedJob


class Names(Environment):
    """Gives numbers that are in use the smallest values that tell them apart."""

    WRITES_OTHERS = True
    STATES = ("naming",)
    INITIAL = "naming"

    system: ClosedJob

    wrap: Trigger

    # fmt: off
    ROWS = (
        Row("wrap", "naming", STAY, "is_used_up and is_calm",
            "wrap_checkpoints, wrap_events", "the numbers are used up, and none is on its way"),
    )
    # fmt: on

    def is_used_up(self) -> bool:
        return self.system.checkpoint.number == self.system.wanted

    def is_calm(self) -> bool:
        return (
            self.system.checkpoint.is_over()
            and self.system.request.state == IDLE
            and all(
                self.system.process[s].up.empty() and self.system.process[s].down.empty()
                for s in range(self.system.subtasks)
            )
            and all(
                self.system.user[c].asked_for == 0 and self.system.snapshot[c].state == IDLE
                for c in range(self.system.coordinators)
            )
        )

    def wrap_checkpoints(self) -> None:
        number = 1 if self.system.checkpoint.completed > 0 else 0
        self.system.checkpoint.number = number
        self.system.checkpoint.completed = number
        self.system.committer.asked = number
        for c in range(self.system.coordinators):
            self.system.snapshot[c].checkpoint = 0
        self.rename_marks()

    def wrap_events(self) -> None:
        for c in range(self.system.coordinators):
            for s in range(self.system.subtasks):
                if (
                    self.system.sender[c, s].completed_sent == self.system.events
                    and self.system.process[s].handled[c] == self.system.events
                ):
                    self.wrap_pair(c, s)

    def wrap_pair(self, coordinator: int, subtask: int) -> None:
        self.system.sender[coordinator, subtask].sent = 0
        self.system.sender[coordinator, subtask].completed_sent = 0
        self.system.process[subtask].handled[coordinator] = 0
        self.system.process[subtask].completed_handled[coordinator] = 0
        self.system.gateway[coordinator, subtask].sent = 0
        self.system.gateway[coordinator, subtask].confirmed = 0
        self.system.task[subtask].received[coordinator] = 0

    def rename_attempt(self, subtask: int) -> None:
        self.system.attempt[subtask].number = 0
        for c in range(self.system.coordinators):
            self.system.gateway[c, subtask].attempt = 0
        if self.system.process[subtask].identity > 2:
            self.system.process[subtask].identity = 2
            self.system.attempt[subtask].identity = 2
            self.system.attempt[subtask].newest = 2

    def rename_restarts(self) -> None:
        self.system.lifecycle.restarts = 0

    def rename_marks(self) -> None:
        """The checkpoint is over: gateways that it has not marked need not remember the last."""
        for c in range(self.system.coordinators):
            for s in range(self.system.subtasks):
                if self.system.gateway[c, s].state == OPEN:
                    self.system.gateway[c, s].latest = 0
