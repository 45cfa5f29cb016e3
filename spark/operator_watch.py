"""A thread beside the task's that names a call of user code which takes long, while it still runs.

Decides nothing: the driver warns its user. The call goes on, since a thread cannot be stopped, and
work may take as long as its data takes; what ends it is the end of its job, or of the process.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Final, Self

from epochgate.runtime.limited import stack_of

OPERATOR_WARN_S: Final = 60.0
"""A call is named after this time, and whenever the time has doubled."""
LOOKS_PER_LIMIT: Final = 4
_JOIN_S: Final = 1.0


class OperatorWatch:
    """Watches the thread that makes it; `tell` gets one text for each call, on another thread."""

    def __init__(self, tell: Callable[[str], None], warn_s: float) -> None:
        self._tell, self._warn_s = tell, warn_s
        self._watched, self._ended = threading.current_thread(), threading.Event()
        self._running: tuple[float, str] | None = None
        self._thread = threading.Thread(target=self._run, name="epochgate-operators", daemon=True)

    def enter(self, what: str) -> None:
        """A call begins."""
        self._running = time.monotonic(), what

    def leave(self) -> None:
        """It has ended."""
        self._running = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(_JOIN_S)

    def _run(self) -> None:
        named: tuple[float, str] | None = None
        next_s = self._warn_s
        while not self._ended.wait(self._warn_s / LOOKS_PER_LIMIT):
            running = self._running
            if running is None:
                continue
            if running is not named:
                next_s = self._warn_s
            since_s, what = running
            waited_s = time.monotonic() - since_s
            if waited_s >= next_s:
                named, next_s = running, 2 * next_s
                place = stack_of(self._watched).rstrip()
                with contextlib.suppress(Exception):  # without its driver the task ends anyhow
                    self._tell(
                        f"{what} has been under way for {waited_s:.3g} s. It is at:\n{place}"
                    )
