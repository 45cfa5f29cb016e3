"""A thread beside the queue's that notices what the queue's thread cannot: that it is held up.

Decides that a call of a coordinator takes too long, and says so while it still runs, with the stack
of the queue's thread, in the job's warnings and the log; the call itself goes on, since a thread
cannot be stopped. A call that exceeds its limit ends the job from here: no row can, while user code
holds the thread that runs them. Passes on to the queue what may not be posted where it is found
out, the end of a snapshot future that was dropped within the garbage collector.

The queue's thread notes each call in `CallWatch`; the thread "epochgate-watchdog" looks at it a few
times within the time that a call may take, so a call is named once it has taken a quarter more. In
simulation there is no such thread, and no call takes time.
"""

from __future__ import annotations

import logging
import math
import queue
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

LOOKS_PER_LIMIT: Final = 4
LOOK_EVERY_MAX_S: Final = 1.0
"""A job that is canceled is looked at by another limit within this time."""
WARNINGS_PER_METHOD_MAX: Final = 10
RESTART_STRATEGY: Final = -1
"""Stands for the number of a coordinator where the job's restart strategy is called."""
_log = logging.getLogger(__name__)


class CallWatch:
    """The call of user code under way on the queue's thread, if any."""

    __slots__ = ("clock_s", "running")

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self.clock_s = clock_s
        self.running: tuple[float, int, Callable[..., Any]] | None = None
        """Since when, of which coordinator, which call; set around each call by its caller."""


class Watchdog:
    """Looks at a `CallWatch`; `warn` gets one sentence for each call that takes too long."""

    def __init__(
        self,
        watch: CallWatch,
        *,
        call_warn_s: float | None,
        call_limit_s: Callable[[], tuple[float, str]],
        abandon: Callable[[str], None],
        operator_ids: list[str],
        warn: Callable[[str], None],
        post: Callable[..., None],
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._watch, self._call_warn_s = watch, call_warn_s
        self._names = [*(f"coordinator {one!r}" for one in operator_ids), "the restart strategy"]
        self._warn, self._post, self._clock_s = warn, post, clock_s
        self._call_limit_s, self._abandon = call_limit_s, abandon
        self._has_abandoned = False
        self._named: tuple[float, int, Callable[..., Any]] | None = None
        self._counts: Counter[tuple[str, str]] = Counter()
        # Its `put` is the one that may be called within the garbage collector.
        self._relayed: queue.SimpleQueue[tuple[Any, ...] | None] = queue.SimpleQueue()
        self._watched: threading.Thread | None = None
        self._thread = threading.Thread(target=self._run, name="epochgate-watchdog", daemon=True)

    def start(self, watched: threading.Thread) -> None:
        """Watch over `watched`, the queue's thread."""
        self._watched = watched
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._relayed.put(None)
        self._thread.join()

    def relay(self, call: Callable[..., Any], *arguments: Any) -> None:
        """Let the watchdog post this to the queue; any thread, takes no lock."""
        self._relayed.put((call, *arguments))

    def look(self) -> None:
        """Name the call under way if it takes too long and was not named."""
        running = self._watch.running
        if running is None or self._has_abandoned:
            return
        since_s, coordinator, call = running
        seconds = self._clock_s() - since_s
        self._insist_on_limit(seconds, coordinator, call)
        if running is self._named or self._call_warn_s is None or seconds < self._call_warn_s:
            return
        self._named = running
        name, method = self._names[coordinator], _name(call)
        self._counts[name, method] += 1
        if self._counts[name, method] > WARNINGS_PER_METHOD_MAX:
            return
        text = (
            f"{name} has been in {method} for {seconds:.3g} s "
            f"(coordinator_call_warn_s is {self._call_warn_s:g}), and the whole job waits for it: "
            f"events, checkpoints and failovers too. Hand what takes so long to run_async or "
            f"run_coroutine"
        )
        if self._counts[name, method] == WARNINGS_PER_METHOD_MAX:
            text += "; further warnings about this method are left out"
        self._warn(f"{text}. It is at:\n{self._stack()}".rstrip())
        _log.warning("%s", text)

    def _insist_on_limit(self, seconds: float, coordinator: int, call: Callable[..., Any]) -> None:
        limit_s, option = self._call_limit_s()
        if seconds < limit_s:
            return
        self._has_abandoned = True
        self._abandon(
            f"{self._names[coordinator]} has been in {_name(call)} for {seconds:.3g} s, and "
            f"{option} is {limit_s:g}. Its thread is left behind. It is at:\n"
            f"{self._stack()}".rstrip()
        )

    def _stack(self) -> str:
        identity = None if self._watched is None else self._watched.ident
        frame = None if identity is None else sys._current_frames().get(identity)
        return "" if frame is None else "".join(traceback.format_stack(frame, limit=8))

    def _run(self) -> None:
        while True:
            shortest_s = min(self._call_limit_s()[0], self._call_warn_s or math.inf)
            interval_s = min(shortest_s / LOOKS_PER_LIMIT, LOOK_EVERY_MAX_S)
            try:
                relayed = self._relayed.get(timeout=interval_s)
            except queue.Empty:
                pass  # nothing to pass on, but the call under way is looked at
            else:
                if relayed is None:
                    return
                self._post(*relayed)
            self.look()


def _name(call: Callable[..., Any]) -> str:
    """Return what a person calls it: "Keeper.checkpoint"."""
    while hasattr(call, "func"):  # a functools.partial
        call = call.func
    return getattr(call, "__qualname__", repr(call))
