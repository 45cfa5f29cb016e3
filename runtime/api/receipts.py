"""Receipts: how an operator learns that its coordinator has an event, and in which checkpoint.

An event sent with a receipt carries a number; once the coordinator has made it part of its state,
the receipt for that number takes the way of all events to the subtask, through the gateway. Between
the coordinator's snapshot and the subtask's barrier the gateway is closed, so what an operator has
a receipt for when it takes its own snapshot is in the coordinator's snapshot of that checkpoint
(rule H16 in docs/protocol.md). What it has none for it keeps in its state, and sends again after a
restore; the coordinator may then hear of it twice.

Source: the acknowledged operator events proposed with FLINK-16986, which Apache Flink never built.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from epochgate.runtime.api.send_future import SendFuture


@dataclass(frozen=True, slots=True)
class RegisteredEvent:
    """An operator's event that wants a receipt; numbers count from 1 in each attempt."""

    number: int
    value: Any


@dataclass(frozen=True, slots=True)
class Receipt:
    """The coordinator has the event of this number."""

    number: int


class AwaitedReceipts:
    """The events of one operator's attempt that have no receipt yet; the task's thread."""

    def __init__(self) -> None:
        self._count = 0
        self._awaited: dict[int, SendFuture] = {}

    def register(self, value: Any) -> tuple[int, SendFuture]:
        """Number an event; its future completes with its receipt."""
        self._count += 1
        self._awaited[self._count] = future = SendFuture(value)
        return self._count, future

    def arrived(self, receipt: Receipt) -> None:
        """Complete the future of the event."""
        self._awaited.pop(receipt.number).complete()
