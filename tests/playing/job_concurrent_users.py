"""The processes of a job with concurrent attempts, the transport that speaks to them, and a
coordinator that keeps its gateways by place, as they are played.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from epochgate.models.closed.surroundings.starter import AWAY, CONNECTED, HERE, RESTORING
from epochgate.models.concurrent_job import ConcurrentJob
from epochgate.runtime.api.coordinator import SubtaskGateway
from epochgate.runtime.api.send_future import SendFuture
from epochgate.runtime.api.transport import Message, TaskInbox, Transport
from epochgate.runtime.testing.scripted import ScriptedCoordinator


@dataclass
class Played:
    """A process, by what the driver has told it and the schedule lets it say; the fields are those
    of the closed system's `Starter`.
    """

    state: str = AWAY
    attempt: int = 0
    phase: int = CONNECTED
    has_spoken: bool = False
    received: int = 0
    confirmed: int = 0
    barrier: int = 0
    """The checkpoint for which it is to hand over its part; 0 for none."""
    is_dismissed: bool = False
    is_doomed: bool = False


class PlayedTransport(Transport):
    """Keeps what the driver tells each process; `wrong` is what no process can be told."""

    inbox: TaskInbox
    completed: Callable[[], int]
    """The checkpoint from which attempts begin."""

    def __init__(self, vertices: int, starts: int) -> None:
        self.processes = [Played() for _ in range(vertices * starts)]
        self._starts = starts
        self.calls: list[tuple[Any, ...]] = []
        """What it was asked for in the step under way."""
        self.wrong: list[str] = []

    def open(self, inbox: TaskInbox) -> None:
        self.inbox = inbox

    def deploy(self, subtask: int, attempt: int) -> None:
        self.calls.append(("deploy", subtask, attempt))

    def vertex(self, number: int) -> int:
        return number // self._starts

    def send(self, subtask: int, identity: int, message: Message) -> None:
        self.calls.append((message[0], subtask, identity, *message[1:2]))
        process, (tag, *told) = self.processes[identity - 1], message
        if self.vertex(identity - 1) != subtask:
            self.wrong.append(f"{message} for subtask {subtask} goes to process {identity}")
        elif process.state != HERE:
            return
        elif tag == "restore":
            if process.phase != CONNECTED or told[1] != self.completed():
                self.wrong.append(f"process {identity} is told {message}")
            process.attempt, process.phase = told[0] + 1, RESTORING
        elif tag == "event":
            if told[0] != 0 or told[1] != process.received + 1 or told[2] + 1 != process.attempt:
                self.wrong.append(f"attempt {process.attempt - 1} is told {message}")
            process.received = told[1]
        elif tag == "barrier":
            process.barrier = told[0]
        elif tag == "aborted":
            process.barrier = 0
        elif tag == "finish":
            process.is_dismissed = True

    def flush(self) -> None:
        """Nothing is buffered here."""

    def end(self, subtask: int, identity: int, reason: str) -> None:
        if self.vertex(identity - 1) != subtask:
            self.wrong.append(f"the end of process {identity} is asked of subtask {subtask}")
        if self.processes[identity - 1].state == HERE:
            self.processes[identity - 1].is_doomed = True

    def close(self) -> None:
        """Nothing is held here."""


class PlayedListener(ScriptedCoordinator):
    """A coordinator that keeps its gateways by place."""

    job: ConcurrentJob
    wrong: list[str]
    asked_for = sends = 0

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.at: dict[int, SubtaskGateway] = {}
        """The last gateway that it was given for each place."""
        self.futures: list[SendFuture] = []
        self.ready: dict[tuple[int, int], int] = {}
        """Subtask and attempt -> place, of the attempts that are ready."""

    def losses(self) -> list[str]:
        """Return why events were lost."""
        done = [future for future in self.futures if future.done()]
        return [str(error) for future in done if (error := future.exception()) is not None]

    def place(self, subtask: int, attempt: int) -> int:
        """The place of an attempt."""
        first = subtask * self.job.concurrent
        places = range(first, first + self.job.concurrent)
        return next((p for p in places if self.job.attempt[p].number == attempt), -1)

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        super().execution_attempt_ready(subtask, attempt, gateway)
        place = self.place(subtask, attempt)
        self.at[place] = gateway
        self.ready[subtask, attempt] = place
        if (gateway.subtask, gateway.attempt) != (subtask, attempt):
            self.wrong.append(f"the gateway of {subtask}, {attempt} is of {gateway}")

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        super().execution_attempt_failed(subtask, attempt, reason)
        self.ready.pop((subtask, attempt), None)

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        super().handle_event_from_operator(subtask, attempt, event)
        if event != attempt + 1 or (subtask, attempt) not in self.ready:
            self.wrong.append(f"attempt {attempt} of {subtask} is taken to say {event}")

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        super().checkpoint(checkpoint_id, result)
        self.asked_for = checkpoint_id

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        super().notify_checkpoint_aborted(checkpoint_id)
        if checkpoint_id == self.asked_for:
            self.asked_for = 0
