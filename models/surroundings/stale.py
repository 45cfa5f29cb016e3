"""What arrives too late or a second time: timers that were set for something that is over, futures
of checkpoints that are gone, confirmations and sends of attempts that were replaced.

All of it may arrive at any moment, so it arrives here at every moment, and it has to make no
difference: the step leads from each state to itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochgate.fsm import STAY, Machine, Row, Trigger
from epochgate.models.attempt import FINISHED, RUNNING
from epochgate.models.holder import BROKEN, CLOSED
from epochgate.models.snapshot import ASKED

if TYPE_CHECKING:
    from epochgate.models.closed_job import ClosedJob


class Stale(Machine):
    """Everything that is stale now, all at once."""

    STATES = ("around",)
    INITIAL = "around"

    system: ClosedJob

    arrive: Trigger

    # fmt: off
    ROWS = (
        Row("arrive", "around", STAY, None, "fire_timers, complete_futures, repeat_calls, repeat_events", "it comes late, or again"),
    )
    # fmt: on

    def fire_timers(self) -> None:
        is_over = self.system.checkpoint.is_over() or self.system.checkpoint.is_storing()
        for before in range(self.system.checkpoints):
            number = before + 1
            if number < self.system.checkpoint.number or (
                is_over and number == self.system.checkpoint.number
            ):
                self.system.checkpoint.expire(number)
                self.system.checkpoint.coordinator_ready(number)
                self.system.checkpoint.coordinator_failed(number)
                self.cancel(number)
        if self.system.lifecycle.restarts > 0:
            has_backed_off = self.system.lifecycle.has_backed_off
            self.system.lifecycle.backed_off(self.system.lifecycle.restarts - 1)
            assert self.system.lifecycle.has_backed_off == has_backed_off, (
                "the back-off of an earlier restart is none of the later one"
            )
        for s in range(self.system.subtasks):
            if self.system.attempt[s].number > 0:
                self.system.attempt[s].restart(self.system.attempt[s].number - 1)
                self.system.attempt[s].expire_start(self.system.attempt[s].number - 1)
            if self.system.attempt[s].state == RUNNING:
                self.system.attempt[s].expire_start(self.system.attempt[s].number)
        if self.system.request.state != "idle":
            self.system.request.submit_periodic()

    def cancel(self, checkpoint: int) -> None:
        for c in range(self.system.coordinators):
            if checkpoint < self.system.snapshot[c, 0].checkpoint:
                self.system.snapshot[c, 0].cancel(checkpoint)

    def complete_futures(self) -> None:
        for c in range(self.system.coordinators):
            for before in range(self.system.checkpoints):
                number = before + 1
                if number < self.system.snapshot[c, 0].checkpoint or (
                    number == self.system.snapshot[c, 0].checkpoint
                    and self.system.snapshot[c, 0].state != ASKED
                ):
                    self.system.snapshot[c, 0].succeed(number, 0)
                    self.system.snapshot[c, 0].fail(number)

    def repeat_calls(self) -> None:
        for c in range(self.system.coordinators):
            if self.system.holder[c].has_failed:
                self.system.holder[c].fail_job()
            if self.system.holder[c].state == BROKEN or self.system.holder[c].state == CLOSED:
                self.system.holder[c].started()
                self.system.holder[c].start_failed()
                self.system.holder[c].handled(0, 0, 1)
        for s in range(self.system.subtasks):
            if not self.system.attempt[s].is_connected():
                for c in range(self.system.coordinators):
                    self.system.gateway[c, s].lose(self.system.attempt[s].number, 1)
            if self.system.attempt[s].has_ended:
                self.system.attempt[s].end_of_input(self.system.attempt[s].identity)
            if self.system.attempt[s].state == FINISHED:
                self.system.process[s].is_unwanted = True
                self.system.attempt[s].connect(self.system.process[s].identity + 1)
                self.system.process[s].expect_sent_away()

    def repeat_events(self) -> None:
        for c in range(self.system.coordinators):
            for s in range(self.system.subtasks):
                number = self.system.attempt[s].number
                if self.system.gateway[c, s].confirmed > 0:
                    self.system.gateway[c, s].confirm(number, self.system.gateway[c, s].confirmed)
                if number > 0:
                    self.system.gateway[c, s].confirm(number - 1, 1)
                    self.system.gateway[c, s].lose(number - 1, 1)
                    self.system.sender[c, s].undecided += 1
                    self.system.gateway[c, s].send(number - 1, 1)
                    self.system.holder[c].event(s, number - 1, 1)
                if self.system.task[s].received[c] > 0:
                    self.system.task[s].event(c, self.system.task[s].received[c], 1)
