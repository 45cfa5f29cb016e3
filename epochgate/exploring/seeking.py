"""Searches from an exploration, bounded in time and memory, one at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from epochgate.errors import UsageError
from epochgate.exploring.links import View
from epochgate.fsm.checker.exploring import Explorer
from epochgate.fsm.checker.result import Result
from epochgate.fsm.checker.seeking import FOUND, counterexample_of, state_where
from epochgate.fsm.closed import ClosedSystem

MEMORY_BYTES = 2 << 30


class Busy(UsageError):
    """Another search is under way."""


@dataclass
class Seeker:
    """Searches the system that is explored, and says what came of it."""

    explorer: Explorer
    max_seconds: float
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def condition(self, text: str) -> View:
        """The shortest way from an initial state to one in which the condition holds; of none, the
        beginning, with a note. Raises ConditionRefused, Busy.
        """
        result = self._run(state_where, text)
        found = result.counterexample
        if found is not None and found.property == FOUND:
            return self._view(result, f"a state in which {text}")
        return self._view(result, "", f"{text}: no reachable state")

    def claim(self, name: str) -> View:
        """The counterexample of a claim, or the witness of a `sometimes`; of none, the beginning,
        with a note. Raises ConditionRefused, Busy.
        """
        kind = next((c.kind for c in self.explorer.system.claims() if c.name == name), "")
        result = self._run(counterexample_of, name)
        if kind == "sometimes":
            return self._view(result, f"a state in which {name} holds", f"{name} holds nowhere")
        return self._view(result, "", f"{name}: no counterexample")

    def _run(self, search: Callable[..., Result], what: str) -> Result:
        if not self._lock.acquire(blocking=False):
            raise Busy("another search is under way; ask once more when it is done")
        try:
            system = self.explorer.system
            given = {n: v for n, v in system.constants.items() if n not in system.DERIVED}
            apart: ClosedSystem = type(system)(**given)
            options: dict[str, Any] = {"max_memory": MEMORY_BYTES}
            return search(apart, what, max_seconds=self.max_seconds, **options)
        finally:
            self._lock.release()

    def _view(self, result: Result, is_found: str, is_not: str = "") -> View:
        found = result.counterexample
        told = f"{result.states:,} states were looked at"
        if found is None:
            stopped = f"; stopped early: {result.stopped}" if result.stopped else ", which are all"
            return View(note=f"{is_not}: {told}{stopped}")
        run = self.explorer.run_of(found)
        about = is_found if is_found and found.property == FOUND else found.message
        note = f"{about}: {len(run.steps)} steps from an initial state; {told}"
        return View(run, len(run.steps), found.cycle, note)
