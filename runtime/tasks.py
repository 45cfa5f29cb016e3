"""The shell around the tasks: carries what attempts say to the transport, and what processes say to
the queue.

Handler of the attempts' ports `task` and `scheduler`, and the transport's inbox. It decides
nothing; a message that it cannot read fails the attempt that sent it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from epochgate.runtime.receipts import Receipt, RegisteredEvent
from epochgate.runtime.reports import shortened
from epochgate.runtime.send_future import SendFuture
from epochgate.runtime.transport import Message

if TYPE_CHECKING:
    from epochgate.runtime.job_master import JobMaster

ARGUMENT_COUNTS = {
    "initialize": 0,
    "run": 0,
    "confirm": 2,
    "event": 2,
    "registered_event": 3,
    "acknowledge": 4,
    "decline": 2,
    "ended": 0,
    "failed": 2,
    "finished": 0,
    "metrics": 1,
}
NUMBERED = ("confirm", "event", "registered_event", "acknowledge", "decline")


class Places(Protocol):
    """What is asked of a transport here; it may be told places instead of subtasks."""

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
        self._post = master.queue.post
        self._transport: Places = master.transport
        self._on_wire = master.coordinators.on_wire
        self._reasons: dict[int, tuple[int, str]] = {}
        master.job.bind("attempt", "task", self)
        master.job.bind("attempt", "scheduler", self)

    def places(self) -> list[int]:
        """The numbers of the attempts that are to be shown; at least one for each subtask."""
        return list(range(len(self._attempts)))

    def reason(self, subtask: int) -> str:
        """Why the process that spoke last for the subtask has ended, if anybody said."""
        identity, reason = self._reasons.get(subtask, (0, ""))
        if identity == self._attempts[subtask].identity:
            return reason
        return "a newer process took its place, or all attempts were canceled"

    def note_reason(self, subtask: int, reason: str) -> None:
        """Why the process that speaks for the subtask is about to end."""
        self._reasons[subtask] = (self._attempts[subtask].identity, shortened(reason))

    # port `task`; the attempt's identity is the process to which it goes

    def _send(self, subtask: int, message: Message) -> None:
        self._transport.send(subtask, self._attempts[subtask].identity, message)

    def restore(self, subtask: int, attempt: int, checkpoint: int) -> None:
        states = self._master.checkpoints.subtask_states(subtask, checkpoint)
        self._send(subtask, ["restore", attempt, checkpoint, states])

    def event(self, subtask: int, coordinator: int, number: int, future: SendFuture) -> None:
        self._on_wire[coordinator, subtask].append(future)
        message = ["event", coordinator, number, future.event]
        if isinstance(future.event, Receipt):
            message = ["receipt", coordinator, number, future.event.number]
        self._transport.send(subtask, self._attempts[subtask].identity, message)

    def barrier(self, subtask: int, checkpoint: int) -> None:
        self._send(subtask, ["barrier", checkpoint])

    def complete(self, subtask: int, checkpoint: int) -> None:
        self._send(subtask, ["complete", checkpoint])

    def aborted(self, subtask: int, checkpoint: int) -> None:
        self._send(subtask, ["aborted", checkpoint])

    def finish(self, subtask: int) -> None:
        self._send(subtask, ["finish"])

    # port `scheduler`

    def deploy(self, subtask: int, attempt: int) -> None:
        self._transport.deploy(subtask, attempt)

    def starting(self, subtask: int, attempt: int) -> None:
        timeout_s = self._master.configuration.attempt_start_timeout_s
        self._master.queue.post_later(timeout_s, self._expire_start, subtask, attempt)

    def _expire_start(self, subtask: int, number: int) -> None:
        attempt = self._attempts[subtask]
        if attempt.number == number:
            timeout_s = self._master.configuration.attempt_start_timeout_s
            self.note_reason(subtask, f"it did not run within {timeout_s:g} s of its start")
        attempt.expire_start(number)

    def end(self, subtask: int, identity: int) -> None:
        self._transport.end(subtask, identity, "its attempt is over")

    def refuse(self, subtask: int, identity: int) -> None:
        self._master.report.zombies_refused += 1
        self._transport.end(subtask, identity, "a newer process speaks for this subtask")

    # the transport's inbox; any thread

    def connected(self, subtask: int, identity: int) -> None:
        """Let the attempt decide whether it wants this process."""
        self._post(self._attempts[subtask].connect, identity)

    def lost(self, subtask: int, identity: int, reason: str) -> None:
        """Let the attempt decide what that means."""
        self._post(self._lost, subtask, identity, reason)

    def _lost(self, subtask: int, identity: int, reason: str) -> None:
        attempt = self._attempts[subtask]
        if attempt.speaks(identity):
            self.note_reason(subtask, reason)
        attempt.lost(identity)

    def received(self, subtask: int, identity: int, messages: list[Message]) -> None:
        """Enqueue what each message means."""
        self._take(self._post, subtask, identity, messages)

    def _take(
        self, post: Callable[..., None], subtask: int, identity: int, messages: list[Message]
    ) -> None:
        attempt = self._attempts[subtask]
        for message in messages:
            problem = _problem(message)
            if problem is not None:
                post(
                    self._failed,
                    subtask,
                    identity,
                    f"it sent what nobody can read: {problem}",
                    False,
                )
                continue
            tag = message[0]
            if tag == "confirm":
                post(attempt.confirm, identity, message[1], message[2])
            elif tag == "event":
                post(attempt.operator_event, identity, message[1], message[2])
            elif tag == "registered_event":
                registered = RegisteredEvent(message[2], message[3])
                post(attempt.operator_event, identity, message[1], registered)
            elif tag == "acknowledge":
                parts = (message[3], message[4])
                post(attempt.acknowledge, identity, message[1], message[2], parts)
            elif tag == "decline":
                post(self._decline, subtask, identity, message[1], message[2])
            elif tag == "failed":
                post(self._failed, subtask, identity, message[1], message[2])
            elif tag == "metrics":
                post(self._metrics, subtask, identity, message[1])
            else:
                post(getattr(attempt, SIMPLE_TRIGGERS[tag]), identity)

    def _decline(self, subtask: int, identity: int, checkpoint: int, reason: str) -> None:
        cause = f"subtask {self._master.subtask_of(subtask)} declined it: {shortened(reason)}"
        self._master.checkpoints.note_reason(checkpoint, cause)
        self._attempts[subtask].decline(identity, checkpoint)

    def _failed(self, subtask: int, identity: int, reason: str, is_fatal: bool) -> None:
        attempt = self._attempts[subtask]
        if not attempt.speaks(identity):
            return
        self.note_reason(subtask, reason)
        if is_fatal:
            # The job gives up first, so that nobody asks for a restart of the subtask.
            self._master.fail(f"subtask {self._master.subtask_of(subtask)}: {shortened(reason)}")
            self._post(attempt.fail, identity)
        else:
            attempt.fail(identity)

    def _metrics(self, subtask: int, identity: int, counters: dict[str, Any]) -> None:
        if self._attempts[subtask].speaks(identity):
            self._master.report.metrics[self._master.subtask_of(subtask)] = counters


SIMPLE_TRIGGERS = {
    "initialize": "initialize",
    "run": "run",
    "ended": "end_of_input",
    "finished": "finish",
}


def _problem(message: Any) -> str | None:
    """What is wrong with the form of a message from a task; its sender is authenticated, its code
    may be broken.
    """
    if not isinstance(message, list) or not message:
        return f"a {type(message).__name__} instead of a list that begins with a tag"
    tag, arguments = message[0], message[1:]
    if tag not in ARGUMENT_COUNTS:
        return f"the unknown tag {tag!r}"
    if len(arguments) != ARGUMENT_COUNTS[tag]:
        return f"{tag!r} with {len(arguments)} arguments instead of {ARGUMENT_COUNTS[tag]}"
    if tag in NUMBERED and not isinstance(arguments[0], int):
        return f"{tag!r} with {arguments[0]!r} where a number belongs"
    return None
