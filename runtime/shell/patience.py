"""How long the shell waits for what goes on outside: a save, a commit, the work after one.

Decides nothing: it warns while a wait lasts, and fires a trigger once the limit of an option has
passed; the row of that trigger says what follows. Queue thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from epochgate.fsm import Timer
    from epochgate.runtime.shell.job_master import JobMaster


class Wait:
    """The wait for one piece of work of a lane; `expired` is called with the reason once `option`
    seconds have passed.
    """

    def __init__(
        self,
        master: JobMaster,
        lane: str,
        what: str,
        option: str,
        expired: Callable[[str], object],
    ) -> None:
        self.lane = lane
        self._master, self._what, self._option, self._expired = master, what, option, expired
        self._limit_s: float = getattr(master.configuration, option)
        self._warn_s = master.configuration.work_warn_s
        self._since_s = master.queue.now_s
        self._timer: Timer | None = None
        self._set_timer(0.0)

    def end(self) -> None:
        """The answer has come, or is waited for no longer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def expire(self) -> None:
        """The limit has passed: fire the trigger that says so."""
        self.end()
        self._expired(
            f"{self._what} has not ended within {self._limit_s:g} s; {self._option} is the limit"
        )

    def _set_timer(self, waited_s: float) -> None:
        due_s = self._limit_s if self._warn_s is None else min(self._warn_s, self._limit_s)
        self._timer = self._master.queue.post_later(due_s - waited_s, self._look)

    def _look(self) -> None:
        if self._timer is None:
            return
        waited_s = self._master.queue.now_s - self._since_s
        if waited_s >= self._limit_s:
            self.expire()
            return
        if self._warn_s is not None and waited_s >= self._warn_s:
            self._master.warn(
                f"{self._what} has been under way for {waited_s:.3g} s; after "
                f"{self._limit_s:g} s ({self._option}) it is waited for no longer"
            )
            self._warn_s = 2 * self._warn_s
        self._set_timer(waited_s)
