"""A transport made to lose, repeat, delay or spoil single messages; for tests, also users' own.

Stands in front of any other transport, passes everything on, counts messages by their tag, and
strikes where it is told to: at a message that is counted beforehand, or at the next one.

    run_job(..., in_front=lambda transport: FaultyTransport(transport, [
        Fault("event", 2, "lost", to="task"),                        # each subtask's second event
        Fault("confirm", 5, "late", to="driver", until="aborted"),   # its fifth confirmation
    ]))

    simulated.faults.doom("acknowledge", "declined")                 # the next acknowledgement

A connection loses no single message, it breaks, and then its attempt fails; so this is what a
faulty program could do to the protocol, not what a network does. Without faults it keeps the
transport's contract. Blind spots: what goes to a task cannot be late, and nothing is reordered but
by being late.

Threads: those of the transport behind it, which may be two at a time.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from epochgate.runtime.api.transport import Message, TaskInbox, Transport

Fate = Literal["lost", "repeated", "late", "declined", "garbled"]
Side = Literal["task", "driver"]

FATES: dict[str, tuple[Fate, ...]] = {
    "acknowledge": ("late", "repeated", "lost", "declined", "garbled"),
    "confirm": ("late", "repeated", "lost", "garbled"),
    "event": ("lost",),
}
"""What `doom` can make of the next message with this tag: `event` on the way to a task, the others
on the way to the driver."""

RELEASE = "release"
"""As `until` of a fault: the message comes when `let_arrive` is called."""

HEARD_MAX = 16


@dataclass(frozen=True)
class Fault:
    """The fate of the `at`-th message with `tag` that goes `to` one side.

    Messages are counted from 1, for each subtask by itself, over all its processes. "repeated": it
    comes twice, in a row or the second time at `until`. "late": it comes at `until`, which is right
    after the next message of the subtask with that tag, in whichever direction that goes, or
    RELEASE. "declined": an acknowledgement becomes its opposite. "garbled": it loses everything
    but its tag. To a task it is lost or repeated in a row. `subtask`: none means each. Raises
    ValueError for what has no meaning.
    """

    tag: str
    at: int
    fate: Fate
    to: Side
    subtask: int | None = None
    until: str = ""

    def __post_init__(self) -> None:
        if self.at < 1:
            raise ValueError(f"{self}: messages are counted from 1")
        if self.fate != "repeated" and (self.fate == "late") != bool(self.until):
            raise ValueError(f"{self}: `until` says when a late message comes, and only then")
        if self.to == "task" and (self.until or self.fate in ("declined", "garbled")):
            raise ValueError(f"{self}: only what goes to the driver can be {self.fate} like that")
        if self.fate == "declined" and self.tag != "acknowledge":
            raise ValueError(f"{self}: only an acknowledgement can be declined")

    def replace(self, message: Message) -> list[Message]:
        """Return what takes the place of `message` at once."""
        if self.fate == "declined":
            return [["decline", message[1], "by order of the test"]]
        if self.fate == "garbled":
            return [[self.tag]]
        if self.fate == "repeated":
            return [message] if self.until else [message, message]
        return []


@dataclass(frozen=True)
class Strike:
    """A message that has met its fate; `identity` is the process that it went to or came from."""

    fault: Fault
    subtask: int
    identity: int
    message: Message


class FaultyTransport(Transport):
    """Passes everything between `inner` and the job, but for what `faults` and `doom` say."""

    def __init__(self, inner: Transport, faults: Iterable[Fault] = ()) -> None:
        self.inner = inner
        self._faults = tuple(faults)
        self._lock = threading.Lock()
        self._seen: Counter[tuple[str, str, int]] = Counter()
        self._waiting: list[Strike] = []
        self._strikes: list[Strike] = []
        self._inbox: TaskInbox
        self.late: list[Strike] = []
        """What waits for `let_arrive`, oldest first."""
        self.doomed: dict[str, deque[Fate]] = {tag: deque() for tag in FATES}
        """The fates that no message has met, by tag."""
        self.heard: deque[tuple[int, int, Message]] = deque(maxlen=HEARD_MAX)
        """Subtask, process and text of the last acknowledgements and confirmations, for `repeat`;
        with those that are lost or late."""

    @property
    def strikes(self) -> list[Strike]:
        """The messages that have met their fate so far, oldest first."""
        with self._lock:
            return list(self._strikes)

    def doom(self, tag: str, fate: Fate) -> None:
        """Decide on the next message with `tag`, whatever its subtask; what is late or comes once
        more waits for `let_arrive`. Raises ValueError for what is not in `FATES`.
        """
        if fate not in FATES.get(tag, ()):
            raise ValueError(f"{tag!r} cannot be {fate!r}; possible are {FATES}")
        self.doomed[tag].append(fate)

    def calm(self) -> None:
        """Forget the fates that no message has met."""
        for fates in self.doomed.values():
            fates.clear()

    def let_arrive(self, position: int) -> None:
        """Let a message of `late` arrive."""
        self._arrive([self.late.pop(position)])

    def repeat(self, position: int) -> None:
        """Let a message of `heard` arrive once more, even if its process is gone."""
        subtask, identity, message = self.heard[position]
        self._inbox.received(subtask, identity, [list(message)])

    def open(self, inbox: TaskInbox) -> None:
        """Begin; listens to the inner transport in the inbox's place."""
        self._inbox = inbox
        self.inner.open(self)

    def deploy(self, subtask: int, attempt: int) -> None:
        """As the inner transport does it."""
        self.inner.deploy(subtask, attempt)

    def send(self, subtask: int, identity: int, message: Message) -> None:
        """Send it, unless a fault says otherwise, and what waited for it to be sent."""
        tag = _tag(message)
        due = self._due(subtask, tag)
        for outgoing in self._fated("task", tag, subtask, identity, message):
            self.inner.send(subtask, identity, outgoing)
        self._arrive(due)

    def flush(self) -> None:
        """As the inner transport does it."""
        self.inner.flush()

    def release(self, subtask: int, identity: int, reason: str) -> None:
        """As the inner transport does it."""
        self.inner.release(subtask, identity, reason)

    def end(self, subtask: int, identity: int, reason: str) -> None:
        """As the inner transport does it."""
        self.inner.end(subtask, identity, reason)

    def close(self) -> None:
        """Close the inner transport; what is late never comes."""
        with self._lock:
            self._waiting.clear()
            self.late.clear()
        self.inner.close()

    def connected(self, subtask: int, identity: int) -> None:
        """Pass it on."""
        self._inbox.connected(subtask, identity)

    def lost(self, subtask: int, identity: int, reason: str) -> None:
        """Pass it on."""
        self._inbox.lost(subtask, identity, reason)

    def when_handled(self, call: Callable[[], None]) -> None:
        """Pass it on."""
        self._inbox.when_handled(call)

    def received(self, subtask: int, identity: int, messages: list[Message]) -> None:
        """Report what a process says, unless a fault says otherwise; any thread."""
        for message in messages:
            tag = _tag(message)
            due = self._due(subtask, tag)
            for arriving in self._fated("driver", tag, subtask, identity, message):
                self._inbox.received(subtask, identity, [arriving])
            if tag in ("acknowledge", "confirm"):
                self.heard.append((subtask, identity, list(message)))
            self._arrive(due)

    def _fated(
        self, to: Side, tag: str, subtask: int, identity: int, message: Message
    ) -> list[Message]:
        """Return what takes the message's place: nothing, itself, itself twice, or another."""
        with self._lock:
            fault = self._fault(to, tag, subtask)
            if fault is None:
                return [message]
            strike = Strike(fault, subtask, identity, message)
            self._strikes.append(strike)
            if fault.until:
                (self.late if fault.until == RELEASE else self._waiting).append(strike)
        return fault.replace(message)

    def _fault(self, to: Side, tag: str, subtask: int) -> Fault | None:
        self._seen[to, tag, subtask] += 1
        count = self._seen[to, tag, subtask]
        for fault in self._faults:
            if (fault.to, fault.tag, fault.at) == (to, tag, count) and (
                fault.subtask is None or fault.subtask == subtask
            ):
                return fault
        if to == ("task" if tag == "event" else "driver") and self.doomed.get(tag):
            fate = self.doomed[tag].popleft()
            until = RELEASE if fate in ("late", "repeated") else ""
            return Fault(tag, count, fate, to, subtask, until)
        return None

    def _due(self, subtask: int, tag: str) -> list[Strike]:
        """The late messages that come right after one with this tag; they are late no more."""
        if not self._waiting:
            return []
        met = (subtask, tag)
        with self._lock:
            due = [
                strike for strike in self._waiting if (strike.subtask, strike.fault.until) == met
            ]
            for strike in due:
                self._waiting.remove(strike)
        return due

    def _arrive(self, due: list[Strike]) -> None:
        for strike in due:
            self._inbox.received(strike.subtask, strike.identity, [list(strike.message)])


def _tag(message: Any) -> str:
    """Return what a message begins with; what a task sends may have no form at all. Events that are
    sent as one are struck as one event is.
    """
    tag = str(message[0]) if isinstance(message, list) and message else ""
    return "event" if tag == "events" else tag
