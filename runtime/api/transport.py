"""The transport between the driver and its tasks: what it must do, and the messages that it moves.

A transport brings processes up and carries messages, in order, to and from each; it decides
nothing. Each process has an identity, greater than that of any process before it. That a process is
gone is reported exactly once, with a reason; a message that cannot be delivered is reported as
that. The in-process transport and the Spark one pass the same contract tests.

Messages are lists of plain values that begin with a tag.

====================================  ==========================================================
driver to task                        meaning
====================================  ==========================================================
restore, attempt, checkpoint, states  begin; states is none or operator id -> bytes
event, coordinator, number, value     an operator event, numbered per coordinator from 1
receipt, coordinator, number, event   the coordinator has that event; numbered like the others
barrier, checkpoint                   take a snapshot
complete, checkpoint                  the checkpoint is durable
aborted, checkpoint                   the checkpoint will never be
finish                                leave cleanly
release                               the attempt is over: begin another, or leave
====================================  ==========================================================

========================================================  ======================================
task to driver                                            meaning
========================================================  ======================================
initialize                                                it restores
run                                                       it runs
confirm, coordinator, number                              events up to this number are handled
event, coordinator, value                                 an operator event
registered_event, coordinator, number, value              one that wants a receipt
acknowledge, checkpoint, is final, states, committables   its part of a checkpoint
decline, checkpoint, reason                               it could not take the snapshot
ended                                                     the end of its input
failed, reason, is fatal                                  it cannot go on
finished                                                  it leaves, as it was told to
leaving, reason                                           it begins no other attempt
metrics, counters                                         for the display only
========================================================  ======================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

Message = list[Any]


class TaskInbox(Protocol):
    """The receiver of a transport's reports; any thread."""

    def connected(self, subtask: int, identity: int) -> None:
        """A process is there and speaks for `subtask`."""
        ...

    def received(self, subtask: int, identity: int, messages: list[Message]) -> None:
        """It has said these, in this order."""
        ...

    def when_handled(self, call: Callable[[], None]) -> None:
        """Call `call` on the queue's thread once all that was received so far is handled."""
        ...

    def lost(self, subtask: int, identity: int, reason: str) -> None:
        """It is gone; exactly once for each connected process."""
        ...


class Transport(ABC):
    """Brings processes up, and moves messages to and from them; called on the queue's thread."""

    @abstractmethod
    def open(self, inbox: TaskInbox) -> None:
        """Begin; what happens from now on is reported to `inbox`."""

    @abstractmethod
    def deploy(self, subtask: int, attempt: int) -> None:
        """A process is wanted for this attempt; it will be reported as connected."""

    @abstractmethod
    def send(self, subtask: int, identity: int, message: Message) -> None:
        """Send in order; a process that is gone already is no error, its loss is reported."""

    def process_of(self, identity: int) -> tuple[str, int] | None:
        """Host and process id of a connected process, to be told to people; None: not known."""
        return None

    @abstractmethod
    def flush(self) -> None:
        """Send now what was sent so far; called when the queue is empty or a batch of events is
        processed.
        """

    def release(self, subtask: int, identity: int, reason: str) -> None:
        """The attempt of the process is over; reported as lost. The process may connect again under
        a newer identity; where each has one attempt, it is ended.
        """
        self.end(subtask, identity, reason)

    @abstractmethod
    def end(self, subtask: int, identity: int, reason: str) -> None:
        """End the process, without asking it; reported as lost."""

    @abstractmethod
    def close(self) -> None:
        """End all processes and release everything; nothing is reported afterwards."""
