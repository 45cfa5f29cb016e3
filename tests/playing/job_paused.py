"""Work of user code that stands still where the schedule says so.

The shell calls user code in one piece, and in a closed system it has several steps. So the call
runs on a thread of its own, which moves only while the test waits for it: one of both runs at a
time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, ClassVar

from epochgate.runtime.shell.blocking_work import Outcome, Then

ABANDON = "abandon"


class Abandoned(Exception):
    """The schedule is over, or nothing of it needs this work any more."""


class PausedWork:
    """One piece of blocking work, from its begin to the first pause, and on by one order each."""

    _of_thread: ClassVar[dict[int, PausedWork]] = {}

    def __init__(self, work: Callable[[], Any], then: Then) -> None:
        self.work, self.then = work, then
        self.outcome: Outcome | None = None
        self.done: list[int] = []
        """The checkpoints with which the user code has had its effect."""
        self._carried = ""
        self._orders, self._stops = SimpleQueue[str](), SimpleQueue[None]()
        threading.Thread(target=self._run, daemon=True).start()
        self._stops.get()

    @classmethod
    def present(cls) -> PausedWork:
        """The work on whose thread the caller is."""
        return cls._of_thread[threading.get_ident()]

    def _run(self) -> None:
        self._of_thread[threading.get_ident()] = self
        self.outcome = Outcome(self.work)
        del self._of_thread[threading.get_ident()]
        self._stops.put(None)

    def next_order(self) -> str:
        """Stand still until the test gives an order; for the user code."""
        if self._carried:
            order, self._carried = self._carried, ""
            return order
        self._stops.put(None)
        order = self._orders.get()
        if order == ABANDON:
            raise Abandoned
        return order

    def carry(self, order: str) -> None:
        """Obey an order in the next call of the user code."""
        self._carried = order

    def tell(self, order: str) -> None:
        """Let the user code go on to its next pause, or to its end."""
        if self.outcome is None:
            self._orders.put(order)
            self._stops.get()


def inside(work: Callable[..., Any]) -> dict[str, Any]:
    """The values that a function of the shell was made around, by name."""
    cells = work.__closure__ or ()
    return {n: c.cell_contents for n, c in zip(work.__code__.co_freevars, cells, strict=True)}
