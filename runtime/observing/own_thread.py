"""A thread on which listeners hear of a job, so that a slow one does not hold the job up.

Decides what happens when a listener does not keep up: at most `WAITING_MAX` events wait; later ones
are left out, and a line of the log counts them. It has `PATIENCE_S` seconds to begin, and as many
at the job's end for what waits; one that hangs is left behind.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import Final

from epochgate.runtime.api.job_events import JobEvent, JobListener
from epochgate.runtime.api.reports import JobReport
from epochgate.runtime.shell.observers import Guarded

WAITING_MAX: Final = 10_000
PATIENCE_S: Final = 10.0
_log = logging.getLogger(__name__)


class OnOwnThread(JobListener):
    """Hands everything over to another listener, on a daemon thread "epochgate-listener", which the
    first call starts.
    """

    def __init__(
        self,
        listener: JobListener,
        *,
        waiting_max: int = WAITING_MAX,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._listener, self._patience_s = Guarded(listener), patience_s
        self._waiting: queue.Queue[Callable[[], None] | None] = queue.Queue(waiting_max)
        self._left_out = 0
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="epochgate-listener", daemon=True)
        self._is_started = False

    def begin(self, report: JobReport) -> None:
        """Pass it on, and wait for that, for `patience_s` seconds."""
        has_begun = threading.Event()

        def begin() -> None:
            self._listener.begin(report)
            has_begun.set()

        self._put(begin)
        if not has_begun.wait(self._patience_s):
            _log.warning(
                "the listener %s has not begun within %g s; the job does not wait for it",
                *(self._listener.name, self._patience_s),
            )

    def on_event(self, event: JobEvent) -> None:
        """Let it be heard soon; never waits."""
        try:
            self._put(partial(self._listener.on_event, event))
        except queue.Full:
            self._left_out += 1

    def close(self) -> None:
        """Wait until everything was heard, for `patience_s` seconds."""
        if self._is_closing.is_set():
            return
        self._is_closing.set()
        with contextlib.suppress(queue.Full):  # then the thread has something to wake up for
            self._put(None)
        self._thread.join(self._patience_s)
        if self._thread.is_alive():
            _log.warning(
                "the listener %s is not done %g s after the job's end; it is left behind",
                self._listener.name,
                self._patience_s,
            )
        if self._left_out:
            _log.warning(
                "the listener %s was too slow for %d events", self._listener.name, self._left_out
            )

    def _put(self, call: Callable[[], None] | None) -> None:
        if not self._is_started:
            self._is_started = True
            self._thread.start()
        self._waiting.put_nowait(call)

    def _run(self) -> None:
        while not (self._is_closing.is_set() and self._waiting.empty()):
            if (call := self._waiting.get()) is not None:
                call()
        self._listener.close()
