"""The wires to the worker processes: what the driver tells each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochgate.fsm.closed import Environment
from epochgate.models.closed.surroundings.process import HERE

if TYPE_CHECKING:
    from epochgate.models.closed.job import ClosedJob


class Wire(Environment):
    """Takes what the driver tells a process; port `task` of the attempt, port `operators` of the
    task.
    """

    INDEX = ("subtask",)

    system: ClosedJob
    subtask: int

    def put(self, identity: int, message: int) -> None:
        if self.reaches(identity):
            self.system.process[self.subtask].down.push(message)

    def reaches(self, identity: int) -> bool:
        return (
            self.system.process[self.subtask].state == HERE
            and self.system.process[self.subtask].identity == identity
        )

    # port `task` of the attempt

    def restore(self, identity: int, attempt: int, checkpoint: int) -> None:
        assert attempt >= self.system.restarter.next_numbers[self.subtask], (
            "an attempt after a restart of all has a number of its own"
        )
        self.system.restarter.next_numbers[self.subtask] = 0
        assert checkpoint == self.system.checkpoint.completed, (
            "an attempt goes back to the last completed checkpoint"
        )
        if self.reaches(identity):
            state = self.system.process[self.subtask].part(checkpoint)
            self.system.task[self.subtask].restore(attempt, checkpoint, state)
        if self.system.renumbered > 0:
            self.system.names.rename_attempt(self.subtask)

    # what reaches the process through other machines' ports

    def event(self, identity: int, coordinator: int, number: int, event: int) -> None:
        place = (coordinator * self.system.numbers + number - 1) * self.system.event + event - 1
        self.put(identity, self.system.checkpoints + 1 + place)

    def barrier(self, identity: int, checkpoint: int) -> None:
        self.put(identity, checkpoint)

    def complete(self, identity: int, checkpoint: int) -> None:
        if self.reaches(identity):
            self.system.task[self.subtask].complete(checkpoint)

    def aborted(self, identity: int, checkpoint: int) -> None:
        if self.reaches(identity):
            self.system.task[self.subtask].aborted(checkpoint)

    def finish(self, identity: int) -> None:
        self.put(identity, 0)


class Notices(Environment):
    """Takes what a checkpoint tells the processes to the wire of each; port `tasks`."""

    system: ClosedJob

    def barrier(self, subtask: int, identity: int, checkpoint: int) -> None:
        self.system.wire[subtask].barrier(identity, checkpoint)

    def complete(self, subtask: int, identity: int, checkpoint: int) -> None:
        self.system.wire[subtask].complete(identity, checkpoint)

    def aborted(self, subtask: int, identity: int, checkpoint: int) -> None:
        self.system.wire[subtask].aborted(identity, checkpoint)
