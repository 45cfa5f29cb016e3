"""How long the shell waits for what goes on outside: a save, a commit, the work after one, and what
a coordinator has handed over.

Decides nothing: it warns while a wait lasts, and fires a trigger once the limit of an option has
passed; the row of that trigger says what follows. Queue thread only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from epochgate.fsm import Timer

if TYPE_CHECKING:
    from epochgate.runtime.shell.job_master import JobMaster


class Wait(Timer):
    """The wait for one piece of work of a lane, and its own timer; `expired` is called with `of`
    and the reason once `option` seconds have passed, and `what` is the work in words, with places
    for `of`. Without an option it warns alone.
    """

    __slots__ = (
        *("_expired", "_is_over", "_master", "_of", "_option", "_since_s", "_warn_s", "_what"),
        "lane",
    )
    arguments = ()

    def __init__(
        self,
        master: JobMaster,
        lane: str,
        what: str,
        option: str | None,
        expired: Callable[..., object] | None,
        *of: Any,
    ) -> None:
        self._master, self.lane = master, lane
        self._what, self._option, self._expired, self._of = what, option, expired, of
        configuration, queue = master.configuration, master.queue
        limit_s = math.inf if option is None else getattr(configuration, option)
        self._warn_s = warn_s = configuration.work_warn_s or math.inf
        self._since_s = since_s = queue.now_s
        # As `_set` does; each checkpoint waits twice, and pays for a call.
        self.due_s = since_s + (warn_s if warn_s < limit_s else limit_s)
        self.is_cancelled = self._is_over = False
        if self.due_s < math.inf:
            queue.set_timer(self)

    def end(self) -> None:
        """The answer has come, or is waited for no longer."""
        self._is_over = True
        self._master.queue.withdraw(self)

    def expire(self) -> None:
        """The limit has passed: fire the trigger that says so."""
        self.end()
        assert self._expired is not None, "what has an option has a limit"
        self._expired(
            *self._of,
            f"{self._in_words()} has not ended within {self._limit_s():g} s; {self._option} is the "
            f"limit{self._place()}",
        )

    def _in_words(self) -> str:
        return self._what.format(*self._of)

    def _limit_s(self) -> float:
        if self._option is None:
            return math.inf
        limit_s: float = getattr(self._master.configuration, self._option)
        return limit_s

    def _place(self) -> str:
        """Where the lane is, for the end of a sentence."""
        place = self._master.blocking.place(self.lane)
        return f". It is at:\n{place}".rstrip() if place else ""

    def _set(self) -> None:
        self.due_s = self._since_s + min(self._warn_s, self._limit_s())
        self.is_cancelled = False
        if self.due_s < math.inf:
            self._master.queue.set_timer(self)

    def trigger(self) -> None:
        """Warn, or fire the trigger if the limit has passed."""
        if self._is_over:
            return
        waited_s = self._master.queue.now_s - self._since_s
        if waited_s >= self._limit_s():
            self.expire()
            return
        if waited_s >= self._warn_s:
            ends = f"after {self._limit_s():g} s ({self._option}) it is waited for no longer"
            self._master.warn(
                f"{self._in_words()} has been under way for {waited_s:.3g} s; "
                f"{'it has no limit' if self._option is None else ends}{self._place()}"
            )
            self._warn_s *= 2
        self._set()
