"""The shell around the tasks: carries what attempts say to the transport, and what processes say to
the queue.

Handler of the attempts' ports `task` and `scheduler`, and the transport's inbox. It decides
nothing; a message that it cannot read fails the attempt that sent it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from epochgate.runtime.api.receipts import Receipt
from epochgate.runtime.api.reports import shortened
from epochgate.runtime.api.send_future import SendFuture, Together
from epochgate.runtime.api.transport import Message
from epochgate.runtime.shell.task_messages import MessageMalformed, MessageReader, TaskWarning

if TYPE_CHECKING:
    from epochgate.runtime.shell.job_master import JobMaster


class Places(Protocol):
    """The requests to a transport here; it may be told places instead of subtasks."""

    def deploy(self, subtask: int, attempt: int, /) -> None: ...
    def send(self, subtask: int, identity: int, message: Message, /) -> None: ...
    def end(self, subtask: int, identity: int, reason: str, /) -> None: ...


class Tasks:
    """All subtasks' processes as the driver sees them. Where subtasks have concurrent attempts,
    what the machines call a subtask is the place of one of them.
    """

    def __init__(self, master: JobMaster) -> None:
        self._master = master
        self._attempts = master.job.attempt
        self._post, self._post_later = master.queue.post, master.queue.post_later
        self._start_timeout_s = master.configuration.attempt_start_timeout_s
        self._start_reason = f"it did not run within {self._start_timeout_s:g} s of its start"
        self._transport = master.places
        self._read = MessageReader(
            len(master.configuration.providers),
            has_commits=not master.configuration.topology.is_direct,
        ).read
        self._on_wire = master.coordinators.on_wire
        self._waiting, self._release = master.coordinators.waiting, master.coordinators.release
        master.job.bind("attempt", "task", self)
        master.job.bind("attempt", "scheduler", self)
        master.job.bind("gateway", "wire", self)

    def places(self) -> list[int]:
        """The numbers of the attempts that are to be shown; at least one for each subtask."""
        return list(range(len(self._attempts)))

    # what reaches processes: port `task` of the attempts, `wire` of the gateways

    def restore(self, subtask: int, identity: int, attempt: int, checkpoint: int) -> None:
        states = self._master.checkpoints.subtask_states(subtask, checkpoint)
        self._transport.send(subtask, identity, ["restore", attempt, checkpoint, states])
        self._master.restarts.note_restored(subtask, identity, attempt, checkpoint)

    def event(
        self, coordinator: int, subtask: int, identity: int, number: int, future: SendFuture
    ) -> None:
        if self._waiting:
            self._release(coordinator, subtask, future)
        self._on_wire[coordinator, subtask].append(future)
        event = future.event
        if type(event) is Receipt:
            message = ["receipt", coordinator, number, event.number]
        else:
            kind = "events" if type(event) is Together else "event"
            message = [kind, coordinator, number, event]
        self._transport.send(subtask, identity, message)

    def finish(self, subtask: int, identity: int) -> None:
        """Tell the process that the job has what it needs."""
        self._transport.send(subtask, identity, ["finish"])

    # port `scheduler`

    def deploy(self, subtask: int, attempt: int) -> None:
        self._transport.deploy(subtask, attempt)

    def starting(self, subtask: int, attempt: int) -> None:
        expire = self._attempts[subtask].expire_start
        self._post_later(self._start_timeout_s, expire, attempt, self._start_reason)

    def release(self, subtask: int, identity: int) -> None:
        self._master.transport.release(subtask, identity, "its attempt is over")

    def end(self, subtask: int, identity: int) -> None:
        self._transport.end(subtask, identity, "its attempt is over")

    def refuse(self, subtask: int, identity: int) -> None:
        self._master.report.zombies_refused += 1
        self._transport.end(subtask, identity, "a newer process speaks for this subtask")

    def dismiss(self, subtask: int, identity: int) -> None:
        self.finish(subtask, identity)

    def metrics(self, subtask: int, counters: dict[str, Any] | TaskWarning) -> None:
        if isinstance(counters, TaskWarning):
            self._master.warn(counters.text)
            return
        self._master.report.metrics[self._master.subtask_of[subtask]] = counters

    # the transport's inbox; any thread

    def connected(self, subtask: int, identity: int) -> None:
        """Let the attempt decide whether it wants this process."""
        self._post(self._attempts[subtask].connect, identity)

    def lost(self, subtask: int, identity: int, reason: str) -> None:
        """Let the attempt decide what that means."""
        self._post(self._attempts[subtask].lost, identity, shortened(reason))

    def received(self, subtask: int, identity: int, messages: list[Message]) -> None:
        """Enqueue what each message means."""
        post, attempt, read = self._post, self._attempts[subtask], self._read
        sender = self._master.subtask_of[subtask]
        for message in messages:
            try:
                trigger, arguments = read(sender, message)
            except MessageMalformed as error:
                post(attempt.fail, identity, f"it sent a malformed message: {error}", False)
            else:
                post(getattr(attempt, trigger), identity, *arguments)

    def when_handled(self, call: Callable[[], None]) -> None:
        """Enqueue the call behind what was received."""
        self._post(call)
