"""The wire to one attempt of a subtask: events, calls that carry them, and answers to the calls.

Decides nothing: it knows which calls were made, in which order, and how far all are answered.
"""

from __future__ import annotations

from collections.abc import Callable

from epochgate.models.gateway import WirePort


class Send:
    """One event on its way; `number` is its place on the wire, `is_ok` the answer to its call."""

    __slots__ = ("attempt", "is_ok", "name", "number", "subtask")

    def __init__(self, subtask: int, attempt: int, name: str) -> None:
        self.subtask, self.attempt, self.name = subtask, attempt, name
        self.number = 0
        self.is_ok: bool | None = None


class Answer:
    """The step in which the holder hears the outcome of a call."""

    __slots__ = ("has_fault", "lines", "send")

    def __init__(self, send: Send) -> None:
        self.send = send
        self.lines: list[str] | None = None
        """What its effect made visible, once it has had it."""
        self.has_fault = False


class Wire(WirePort):
    """The calls to one attempt, in order; `call` makes each of them."""

    def __init__(self, call: Callable[[Send], None]) -> None:
        self.calls: list[Send] = []
        self._call = call
        self._is_settled: list[bool] = []
        self._confirmed = 0

    def event(self, identity: int, number: int, event: Send) -> None:
        """An event that leaves its gateway with its number; events count from 1."""
        event.number = number
        self.calls.append(event)
        self._is_settled.append(False)
        self._call(event)

    def number_confirmed_with(self, send: Send) -> int:
        """Settle one call; the number up to which all are settled now, 0 if it did not grow."""
        self._is_settled[send.number - 1] = True
        before = self._confirmed
        while self._confirmed < len(self.calls) and self._is_settled[self._confirmed]:
            self._confirmed += 1
        return self._confirmed if self._confirmed > before else 0
