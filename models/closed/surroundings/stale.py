"""Stale messages, which arrive too late or a second time: timers that were set for something that
is over, futures of checkpoints that are gone, confirmations and sends of attempts that were
replaced.

All of it may arrive at any moment, so it arrives here at every moment, and it has to make no
difference: the step leads from each state to itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochgate.fsm import STAY, Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.attempt import FINISHED, RUNNING
from epochgate.models.checkpoint import UNKNOWN
from epochgate.models.holder import BROKEN, CLOSED
from epochgate.models.snapshot import ASKED
from epochgate.models.task import (
    CREATED as TASK_CREATED,
    ENDED as TASK_ENDED,
    FAILED as TASK_FAILED,
)

if TYPE_CHECKING:
    from epochgate.models.closed.job import ClosedJob


class Stale(Environment):
    """Everything that is stale now, all at once."""

    STATES = ("around",)
    INITIAL = "around"

    system: ClosedJob

    arrive: Trigger

    # fmt: off
    ROWS = (
        Row("arrive", "around", STAY, None,
            "fire_timers, expire_saves, complete_futures, repeat_calls, repeat_events, tell_the_dead",
            "it comes late, or again"),
    )
    # fmt: on

    def fire_timers(self) -> None:
        is_over = (
            self.system.checkpoint.is_over()
            or self.system.checkpoint.is_storing()
            or self.system.checkpoint.is_in_doubt()
        )
        for before in range(self.system.checkpoints):
            number = before + 1
            if number < self.system.checkpoint.number or (
                is_over and number == self.system.checkpoint.number
            ):
                self.system.checkpoint.expire(number, "late")
                self.system.checkpoint.coordinator_ready(number)
                self.system.checkpoint.coordinator_failed(number, "late")
                self.cancel(number)
        if self.system.lifecycle.restarts > 0:
            self.system.lifecycle.backed_off(self.system.lifecycle.restarts - 1)
        for s in range(self.system.subtasks):
            if self.system.attempt[s].number > 0:
                self.system.attempt[s].restart(self.system.attempt[s].number - 1)
                self.system.attempt[s].expire_start(self.system.attempt[s].number - 1, "late")
            if self.system.attempt[s].state == RUNNING:
                self.system.attempt[s].expire_start(self.system.attempt[s].number, "late")
        if self.system.request.state != "idle" or self.system.lifecycle.has_ended():
            self.system.request.submit_periodic()
        if self.system.lifecycle.has_ended() and not self.system.requester.is_waiting:
            self.system.request.submit()

    def expire_saves(self) -> None:
        if self.system.checkpoint.state == UNKNOWN:
            self.system.checkpoint.store_failed(self.system.checkpoint.number, "late")
            self.system.checkpoint.store_unknown(self.system.checkpoint.number, "late")
            self.system.checkpoint.refused(self.system.checkpoint.number, "late")
        if self.system.checkpoint.number > 0:
            self.system.checkpoint.expire_save(self.system.checkpoint.number - 1, "late")
        if self.system.lifecycle.has_ended():
            self.system.lifecycle.expire_end("late")

    def cancel(self, checkpoint: int) -> None:
        for c in range(self.system.coordinators):
            if checkpoint < self.system.snapshot[c].checkpoint:
                self.system.snapshot[c].cancel(checkpoint)

    def complete_futures(self) -> None:
        for c in range(self.system.coordinators):
            for before in range(self.system.checkpoints):
                number = before + 1
                if number < self.system.snapshot[c].checkpoint or (
                    number == self.system.snapshot[c].checkpoint
                    and self.system.snapshot[c].state != ASKED
                ):
                    self.system.snapshot[c].succeed(number, 0)
                    self.system.snapshot[c].fail(number, "late")

    def repeat_calls(self) -> None:
        for c in range(self.system.coordinators):
            if self.system.holder[c].has_failed:
                self.system.holder[c].fail_job("again", False)
            if self.system.holder[c].state == BROKEN or self.system.holder[c].state == CLOSED:
                self.system.holder[c].started()
                self.system.holder[c].start_failed("late", False)
                self.system.holder[c].restored()
                self.system.holder[c].restore_failed("late", False)
                self.system.holder[c].handled(0, 0, 1)
        for s in range(self.system.subtasks):
            if not self.system.attempt[s].is_connected():
                for c in range(self.system.coordinators):
                    self.system.gateway[c, s].lose(self.system.attempt[s].number, 1, "late")
            if self.system.attempt[s].has_ended:
                self.system.attempt[s].end_of_input(self.system.attempt[s].identity)
            if self.system.attempt[s].state == FINISHED:
                self.system.process[s].is_unwanted = True
                self.system.attempt[s].connect(self.system.process[s].identity + 1)

    def repeat_events(self) -> None:
        for c in range(self.system.coordinators):
            for s in range(self.system.subtasks):
                number = self.system.attempt[s].number
                if self.system.gateway[c, s].confirmed > 0:
                    self.system.gateway[c, s].confirm(number, self.system.gateway[c, s].confirmed)
                if number > 0:
                    self.system.gateway[c, s].confirm(number - 1, 1)
                    self.system.gateway[c, s].lose(number - 1, 1, "late")
                    self.system.sender[c, s].undecided += 1
                    self.system.gateway[c, s].send(number - 1, 1)
                    self.system.holder[c].event(s, number - 1, 1)
                    self.system.holder[c].event_malformed(s, number - 1, "late")
                if self.system.task[s].received[c] > 0:
                    self.system.task[s].event(c, self.system.task[s].received[c], 1)

    def tell_the_dead(self) -> None:
        for s in range(self.system.subtasks):
            if self.system.task[s].state == TASK_ENDED:
                self.system.task[s].end_input()
            if self.system.task[s].state == TASK_FAILED:
                self.system.task[s].restore(0, 0, 0)
                self.system.task[s].event(0, 1, 1)
                self.system.task[s].barrier(1)
                self.system.task[s].end_input()
                self.system.task[s].fail("again", False)
                self.system.task[s].finish()
            if (
                self.system.task[s].state == TASK_CREATED
                or self.system.task[s].state == TASK_FAILED
            ):
                self.system.task[s].complete(1)
                self.system.task[s].aborted(1)
