"""Numbers that a closed job counts from 1 again, while the production job counts checkpoints on.

Where nothing is under way, and the checkpoints that are wanted have been taken, a closed job that
goes on for ever forgets how many there were, and the events that are in the completed one. On the
production job the bounds rise by as much instead, and the events of a gateway and of its task,
which have numbers for each other alone, are counted again.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import msgpack

from epochgate.fsm.inside import machine_behind
from epochgate.models.request import IDLE
from epochgate.runtime.testing.fuzzing.record import operator_id

if TYPE_CHECKING:
    from epochgate.runtime.testing.playing.scripted import ScriptedJob

OF_SNAPSHOTS: Final = "snapshot"
"""The machine that forgets the last checkpoint; others call it the first."""


class Renaming:
    """The numbers of a production job that are others than those of its closed one."""

    def __init__(self, job: ScriptedJob) -> None:
        self._job = job
        self._newest = self._called = 0
        """The last checkpoint when the count began again, and what it is called since."""
        self._forgotten = Counter[tuple[int, int]]()

    def events(self, coordinator: int, subtask: int) -> int:
        """Return how many events the closed job lets a coordinator send to a subtask."""
        return int(self._job.constants["events"]) + self._forgotten[coordinator, subtask]

    def checkpoint(self, machine: str, number: int) -> int:
        """Return what the closed job calls a checkpoint in a machine's field."""
        if number > self._newest:
            return number - self._newest + self._called
        return 0 if machine == OF_SNAPSHOTS else self._called

    def has_forgotten_all(self) -> bool:
        """Return whether there was a checkpoint, and none that the closed job knows of."""
        number = self._job.job.checkpoint.number
        return number > 0 and self.checkpoint("checkpoint", number) == 0

    def is_used_up(self) -> bool:
        """Return whether the checkpoints that are wanted have been taken."""
        return bool(self._job.job.checkpoint.number == self._job.constants["wanted"])

    def is_calm(self) -> bool:
        """Return whether neither a checkpoint nor a message is under way."""
        job, machines = self._job, self._job.job
        return (
            machines.checkpoint.is_over()
            and machines.request.state == IDLE
            and not any(job.words(s) or job.next_message(s) for s in range(job.subtasks))
            and not any(
                job.coordinator(c).is_asked() or machines.snapshot[c].state != IDLE
                for c in range(job.coordinators)
            )
        )

    def wrap(self) -> None:
        """Count again."""
        job, checkpoint = self._job, self._job.job.checkpoint
        is_completed = checkpoint.completed > 0
        if is_completed:
            stored = job.simulated.store.load(checkpoint.completed)
            for c in range(job.coordinators):
                sent, _ = msgpack.unpackb(stored.coordinators[operator_id(c)])
                for s in range(job.subtasks):
                    if len(sent[s]) == self.events(c, s) and job.restored(s):
                        self._forget_events(c, s)
        known = self._newest - self._called
        self._newest, self._called = checkpoint.number, int(is_completed)
        for bound in ("wanted", "checkpoints"):
            job.constants[bound] += self._newest - self._called - known

    def _forget_events(self, coordinator: int, subtask: int) -> None:
        job = self._job
        self._forgotten[coordinator, subtask] += job.constants["events"]
        gateway = job.job.gateway[coordinator, subtask]
        gateway.sent = gateway.confirmed = 0
        process = job.restored(subtask)
        assert process is not None, "it has handled the events"
        machine_behind(process.worker.task).received[coordinator] = 0
