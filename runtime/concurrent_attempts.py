"""The shell around concurrent attempts: finds the place of each process, and notes which attempts
others have outlived.

Decides nothing: `ExecutionVertex` says which process becomes an attempt, and at which of its
subtask's places; place p belongs to subtask p // concurrent_attempts_max, which is all that the
other shells need to know. Everything on the queue's thread but the transport's inbox.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from epochgate.errors import UsageError
from epochgate.models.concurrent_job import ConcurrentJob
from epochgate.models.execution_vertex import ENDED
from epochgate.runtime.tasks import Tasks
from epochgate.runtime.transport import Message, Transport

if TYPE_CHECKING:
    from epochgate.runtime.job_master import JobMaster


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

    def __init__(self, master: JobMaster, job: ConcurrentJob) -> None:
        super().__init__(master)
        self._transport = ByPlace(master.transport, job.concurrent)
        self._vertices = job.vertex
        job.bind("vertex", "record", self)

    def places(self) -> list[int]:
        """Those of the attempts that run, and the one that leads each subtask."""
        return [
            place
            for place, attempt in enumerate(self._attempts)
            if attempt.is_running()
            or self._vertices[self._master.subtask_of(place)].is_leading(place)
        ]

    def reason(self, subtask: int) -> str:
        """Why the process that spoke last at this place has ended."""
        vertex = self._vertices[self._master.subtask_of(subtask)]
        if vertex.state == ENDED and not vertex.is_leading(subtask):
            return "another attempt of its subtask has reached the end of the input"
        return super().reason(subtask)

    # the transport's inbox; any thread

    def connected(self, subtask: int, identity: int) -> None:
        """Let the subtask decide at which place it wants this process."""
        self._post(self._vertices[subtask].connect, identity)

    def received(self, subtask: int, identity: int, messages: list[Message]) -> None:
        """Enqueue the messages; where they belong is known in their turn."""
        for message in messages:
            self._post(self._arrived, subtask, identity, message)

    def _arrived(self, subtask: int, identity: int, message: Message) -> None:
        place = self._vertices[subtask].place_of(identity)
        if place >= 0:
            self._take(_now, place, identity, [message])

    def _lost(self, subtask: int, identity: int, reason: str) -> None:
        place = self._vertices[subtask].place_of(identity)
        if place >= 0:
            super()._lost(place, identity, reason)

    # port `record`

    def outlived(self, vertex: int, place: int, attempt: int) -> None:
        self._master.note_failure(vertex, attempt, self.reason(place))


def _now(call: Callable[..., Any], *arguments: Any) -> None:
    call(*arguments)
