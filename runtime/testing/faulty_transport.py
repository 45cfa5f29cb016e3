"""A transport made to lose, repeat or delay single messages; for tests, also users' own.

Stands in front of any other transport, passes everything on, counts messages by their tag, and
strikes where it is told to. Without faults it keeps the transport's contract.

    run_job(..., in_front=lambda transport: FaultyTransport(transport, [
        Fault("event", 2, "lost", to="task"),                        # each subtask's second event
        Fault("confirm", 5, "late", to="driver", until="aborted"),   # its fifth confirmation
    ]))

A connection loses no single message, it breaks, and then its attempt fails; so this is what a
faulty program could do to the protocol, not what a network does. Blind spots: what goes to a task
cannot be late, and nothing is reordered but by being late.

Threads: those of the transport behind it, which may be two at a time.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from epochgate.runtime.api.transport import Message, TaskInbox, Transport


@dataclass(frozen=True)
class Fault:
    """The fate of the `at`-th message with `tag` that goes `to` one side.

    Messages are counted from 1, for each subtask by itself, over all its processes. "repeated": it
    comes twice in a row. "late", only to the driver: it comes right after the next message of the
    subtask with the tag `until`, in whichever direction that goes. `subtask`: none means each.
    Raises ValueError for what has no meaning.
    """

    tag: str
    at: int
    fate: Literal["lost", "repeated", "late"]
    to: Literal["task", "driver"]
    subtask: int | None = None
    until: str = ""

    def __post_init__(self) -> None:
        if self.at < 1:
            raise ValueError(f"{self}: messages are counted from 1")
        if (self.fate == "late") != bool(self.until):
            raise ValueError(f"{self}: `until` says when a late message comes, and only then")
        if self.fate == "late" and self.to == "task":
            raise ValueError(f"{self}: only what goes to the driver can be late")


@dataclass(frozen=True)
class Strike:
    """A message that has met its fate; `identity` is the process that it went to or came from."""

    fault: Fault
    subtask: int
    identity: int
    message: Message


class FaultyTransport(Transport):
    """Passes everything between `inner` and the job, but for what `faults` say."""

    def __init__(self, inner: Transport, faults: Iterable[Fault] = ()) -> None:
        self.inner = inner
        self._faults = tuple(faults)
        self._lock = threading.Lock()
        self._seen: Counter[tuple[str, str, int]] = Counter()
        self._late: list[Strike] = []
        self._inbox: TaskInbox | None = None
        self._strikes: list[Strike] = []

    @property
    def strikes(self) -> list[Strike]:
        """What has met its fate so far, oldest first."""
        with self._lock:
            return list(self._strikes)

    def open(self, inbox: TaskInbox) -> None:
        """Begin; listens to the inner transport in the inbox's place."""
        self._inbox = inbox
        self.inner.open(_Listener(self, inbox))

    def deploy(self, subtask: int, attempt: int) -> None:
        """As the inner transport does it."""
        self.inner.deploy(subtask, attempt)

    def send(self, subtask: int, identity: int, message: Message) -> None:
        """Send it, unless a fault says otherwise, and what waited for it to be sent."""
        due = self._due(subtask, message)
        for outgoing in self._fated("task", subtask, identity, message):
            self.inner.send(subtask, identity, outgoing)
        self._arrive(due)

    def flush(self) -> None:
        """As the inner transport does it."""
        self.inner.flush()

    def end(self, subtask: int, identity: int, reason: str) -> None:
        """As the inner transport does it."""
        self.inner.end(subtask, identity, reason)

    def close(self) -> None:
        """Close the inner transport; what is late never comes."""
        self._inbox = None
        self.inner.close()

    def heard(self, subtask: int, identity: int, messages: list[Message]) -> None:
        """Report what a process says, unless a fault says otherwise; any thread."""
        inbox = self._inbox
        if inbox is None:
            return
        for message in messages:
            due = self._due(subtask, message)
            for arriving in self._fated("driver", subtask, identity, message):
                inbox.received(subtask, identity, [arriving])
            self._arrive(due)

    def _fated(self, to: str, subtask: int, identity: int, message: Message) -> list[Message]:
        """What takes the message's place: nothing, itself, or itself twice."""
        with self._lock:
            fault = self._fault(to, subtask, _tag(message))
            if fault is None:
                return [message]
            strike = Strike(fault, subtask, identity, message)
            self._strikes.append(strike)
            if fault.fate == "late":
                self._late.append(strike)
        return [message, message] if fault.fate == "repeated" else []

    def _fault(self, to: str, subtask: int, tag: str) -> Fault | None:
        self._seen[to, tag, subtask] += 1
        count = self._seen[to, tag, subtask]
        for fault in self._faults:
            if (fault.to, fault.tag, fault.at) == (to, tag, count) and (
                fault.subtask is None or fault.subtask == subtask
            ):
                return fault
        return None

    def _due(self, subtask: int, message: Message) -> list[Strike]:
        """The late messages that come right after this one; they are late no more."""
        with self._lock:
            due = [s for s in self._late if (s.subtask, s.fault.until) == (subtask, _tag(message))]
            self._late = [strike for strike in self._late if strike not in due]
        return due

    def _arrive(self, due: list[Strike]) -> None:
        for strike in due:
            if (inbox := self._inbox) is not None:
                inbox.received(strike.subtask, strike.identity, [strike.message])


def _tag(message: Any) -> str:
    """What a message begins with; what a task sends may have no form at all."""
    return str(message[0]) if isinstance(message, list) and message else ""


class _Listener:
    """The inbox that the inner transport reports to."""

    def __init__(self, transport: FaultyTransport, inbox: TaskInbox) -> None:
        self._transport, self._inbox = transport, inbox

    def connected(self, subtask: int, identity: int) -> None:
        self._inbox.connected(subtask, identity)

    def received(self, subtask: int, identity: int, messages: list[Message]) -> None:
        self._transport.heard(subtask, identity, messages)

    def lost(self, subtask: int, identity: int, reason: str) -> None:
        self._inbox.lost(subtask, identity, reason)
