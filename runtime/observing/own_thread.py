"""A thread on which listeners hear of a job, so that a slow one does not hold the job up.

Decides what happens when a listener does not keep up: at most `WAITING_MAX` events wait; later ones
are left out, and a line of the log counts them. At the job's end it has `PATIENCE_S` seconds for
what waits.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from typing import Final

from epochgate.runtime.api.job_events import JobEvent, JobListener
from epochgate.runtime.api.reports import JobReport
from epochgate.runtime.shell.observers import Guarded

WAITING_MAX: Final = 10_000
PATIENCE_S: Final = 10.0
_log = logging.getLogger(__name__)


class OnOwnThread(JobListener):
    """Hands events over to another listener, on a daemon thread "epochgate-listener", which the
    first event starts.
    """

    def __init__(
        self,
        listener: JobListener,
        *,
        waiting_max: int = WAITING_MAX,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._listener, self._patience_s = Guarded(listener), patience_s
        self._waiting: queue.Queue[JobEvent | None] = queue.Queue(waiting_max)
        self._left_out = 0
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="epochgate-listener", daemon=True)
        self._is_started = False

    def begin(self, report: JobReport) -> None:
        """Pass it on at once."""
        self._listener.begin(report)

    def on_event(self, event: JobEvent) -> None:
        """Let it be heard soon; never waits."""
        if not self._is_started:
            self._is_started = True
            self._thread.start()
        try:
            self._waiting.put_nowait(event)
        except queue.Full:
            self._left_out += 1

    def close(self) -> None:
        """Wait until everything was heard, for `patience_s` seconds."""
        if self._is_closing.is_set():
            return
        self._is_closing.set()
        if not self._is_started:
            self._listener.close()
            return
        with contextlib.suppress(queue.Full):  # then the thread has something to wake up for
            self._waiting.put_nowait(None)
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

    def _run(self) -> None:
        while not (self._is_closing.is_set() and self._waiting.empty()):
            if (event := self._waiting.get()) is not None:
                self._listener.on_event(event)
        self._listener.close()
