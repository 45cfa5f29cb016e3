"""The shell around concurrent attempts: finds the place of each process, and notes which attempts
others have outlived.

Decides nothing: `ExecutionVertex` says which process becomes an attempt, and at which of its
subtask's places; place p belongs to subtask p // concurrent_attempts_max, which is all that the
other shells need to know. Everything on the queue's thread but the transport's inbox.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from epochgate.errors import UsageError
from epochgate.fsm import Handles
from epochgate.fsm.inside import shown
from epochgate.models.attempt import RUNNING
from epochgate.runtime.api.job_events import AttemptOutlived
from epochgate.runtime.api.reports import shortened
from epochgate.runtime.api.transport import Message, Transport
from epochgate.runtime.shell.tasks import Tasks

if TYPE_CHECKING:
    from epochgate.models.concurrent_job import ConcurrentJob
    from epochgate.runtime.shell.job_master import JobMaster


class NoCheckpointAmongAttempts(UsageError):
    """A job with concurrent attempts takes no checkpoint but the one that ends it."""

    def __init__(self, wanted: str) -> None:
        super().__init__(
            f"{wanted} was asked for, and the job's subtasks may have several attempts at once "
            "(concurrent_attempts_max), whose states are not one; its only checkpoint is the one "
            "that ends it. Wait for the end, cancel the job, or run it with "
            "concurrent_attempts_max=1"
        )


class ByPlace:
    """The transport, told the places of attempts where it is to know their subtasks."""

    def __init__(self, transport: Transport, concurrent: int) -> None:
        self._transport, self._concurrent = transport, concurrent

    def deploy(self, place: int, attempt: int) -> None:
        """Want a process for the subtask."""
        self._transport.deploy(place // self._concurrent, attempt)

    def send(self, place: int, identity: int, message: Message) -> None:
        """Send to the process."""
        self._transport.send(place // self._concurrent, identity, message)

    def end(self, place: int, identity: int, reason: str) -> None:
        """End the process."""
        self._transport.end(place // self._concurrent, identity, reason)


class ConcurrentTasks(Tasks):
    """All processes as the driver sees them, several of a subtask at once."""

    def __init__(self, master: JobMaster) -> None:
        super().__init__(master)
        job = cast("Handles[ConcurrentJob]", master.job)
        self._concurrent = master.configuration.concurrent_attempts_max
        self._vertices = job.vertex
        self._place_of: dict[int, int] = {}
        """Where each process was restored, by its identity."""
        job.bind("vertex", "record", self)

    def places(self) -> list[int]:
        """Those of the attempts that run, and the one that leads each subtask."""
        leading = [shown(vertex)["leading"] for vertex in self._vertices]
        return [
            place
            for place, attempt in enumerate(self._attempts)
            if shown(attempt)["state"] == RUNNING
            or leading[self._master.subtask_of[place]] == place % self._concurrent
        ]

    def restore(self, subtask: int, identity: int, attempt: int, checkpoint: int) -> None:
        self._place_of[identity] = subtask
        super().restore(subtask, identity, attempt, checkpoint)

    # the transport's inbox; any thread

    def connected(self, subtask: int, identity: int) -> None:
        """Let the subtask decide at which place it wants this process."""
        self._post(self._vertices[subtask].connect, identity)

    def received(self, subtask: int, identity: int, messages: list[Message]) -> None:
        """Enqueue the messages for the place at which the process was restored."""
        place = self._place_of.get(identity)
        if place is not None:
            super().received(place, identity, messages)

    def lost(self, subtask: int, identity: int, reason: str) -> None:
        """Let the subtask decide what that means."""
        self._place_of.pop(identity, None)
        self._post(self._vertices[subtask].lost, identity, shortened(reason))

    # port `record`

    def outlived(self, vertex: int, place: int, attempt: int, reason: str) -> None:
        self._master.note_failure(vertex, attempt, reason)
        self._master.observers.tell(
            AttemptOutlived, subtask=vertex, attempt=attempt, reason=shortened(reason)
        )
