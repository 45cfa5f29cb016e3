"""The operators of a subtask, and what they do with what their process is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochgate.fsm.closed import Environment
from epochgate.models.closed.surroundings.process import (
    ENDED,
    FAILED,
    FATAL,
    FINISHED,
    HERE,
    INITIALIZE,
    RUN,
)

if TYPE_CHECKING:
    from epochgate.models.closed.job import ClosedJob


class Operators(Environment):
    """The subtask's operators: port `operators` of the task."""

    INDEX = ("subtask",)

    system: ClosedJob
    subtask: int

    def restore(self, attempt: int, checkpoint: int, state: int) -> None:
        assert attempt == self.system.attempt[self.subtask].number or self.system.renumbered > 0, (
            "the attempt that is restored is the subtask's present one"
        )
        assert checkpoint == self.system.checkpoint.completed, (
            "what is restored is the last completed checkpoint"
        )
        assert state == self.system.process[self.subtask].part(checkpoint), (
            "the state that is restored is the subtask's in that checkpoint"
        )
        if self.system.process[self.subtask].state == HERE:
            self.begin_to_work()

    def begin_to_work(self) -> None:
        """The driver may have ended the process in the event in which it told it to restore."""
        for c in range(self.system.coordinators):
            self.system.process[self.subtask].handled[c] = self.system.process[
                self.subtask
            ].completed_handled[c]
            receipts = self.system.process[self.subtask].completed_receipts[c]
            self.system.process[self.subtask].spoken[c] = receipts
            self.system.process[self.subtask].receipts[c] = receipts
        self.system.process[self.subtask].up.push(INITIALIZE)
        self.system.process[self.subtask].up.push(RUN)

    def event(self, coordinator: int, number: int, event: int) -> None:
        if event > self.system.events:
            self.receipt(coordinator, event - self.system.events)
        else:
            self.own_event(coordinator, event)
        self.system.attempt[self.subtask].confirm(
            self.system.process[self.subtask].identity, coordinator, number
        )

    def receipt(self, coordinator: int, said: int) -> None:
        if said > self.system.process[self.subtask].receipts[coordinator]:
            self.system.process[self.subtask].receipts[coordinator] = said

    def own_event(self, coordinator: int, event: int) -> None:
        assert event == self.system.process[self.subtask].handled[coordinator] + 1, (
            "I3: each event is handled once, in its order"
        )
        self.system.process[self.subtask].handled[coordinator] = event

    def snapshot(self, checkpoint: int, is_final: bool) -> None:
        self.system.process[self.subtask].is_owed_an_end = (
            checkpoint == self.system.checkpoint.number and not self.system.checkpoint.is_over()
        )
        for c in range(self.system.coordinators):
            self.system.process[self.subtask].snapshot_handled[c] = self.system.process[
                self.subtask
            ].handled[c]
            self.system.process[self.subtask].snapshot_receipts[c] = self.system.process[
                self.subtask
            ].receipts[c]
        if is_final:
            self.system.process[self.subtask].up.push(FATAL + self.system.checkpoints + checkpoint)
        else:
            self.system.process[self.subtask].up.push(FATAL + checkpoint)

    def commit(self, checkpoint: int, tries: int, part: int) -> None:
        assert checkpoint == 0, "a job without committers in its tasks has these commit nothing"

    def complete(self, checkpoint: int) -> None:
        assert checkpoint == self.system.checkpoint.completed, (
            "a checkpoint that is told to be completed is"
        )
        self.system.process[self.subtask].is_owed_an_end = False

    def aborted(self, checkpoint: int) -> None:
        assert self.system.checkpoint.completed < checkpoint <= self.system.checkpoint.number, (
            "a checkpoint that is told to be aborted is, and was not completed"
        )
        self.system.process[self.subtask].is_owed_an_end = False

    def ended(self) -> None:
        self.system.process[self.subtask].up.push(ENDED)

    def failed(self, reason: int, is_fatal: bool) -> None:
        if is_fatal:
            self.system.process[self.subtask].up.push(FATAL)
        else:
            self.system.process[self.subtask].up.push(FAILED)

    def finish(self) -> None:
        self.system.process[self.subtask].up.push(FINISHED)
        self.system.process[self.subtask].ended()

    def gap(self, coordinator: int, number: int) -> None:
        assert number == 0, "I1: no event is missing before another"
