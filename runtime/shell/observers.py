"""Those who watch a job: makes the values that they are told, and keeps their faults from the job.

Decides nothing. Runs on the queue's thread; `epochgate.runtime.observing.own_thread` takes a
listener off it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from epochgate.runtime.api.job_events import JobEvent, JobListener
from epochgate.runtime.api.raised import let_pass
from epochgate.runtime.api.reports import JobReport

_log = logging.getLogger(__name__)


class Guarded(JobListener):
    """A listener of which an exception is logged, once, and goes no further."""

    def __init__(self, listener: JobListener) -> None:
        self._listener = listener
        self.name = type(listener).__qualname__
        self._has_raised = False

    def begin(self, report: JobReport) -> None:
        """Pass it on."""
        self._call(partial(self._listener.begin, report))

    def on_event(self, event: JobEvent) -> None:
        """Pass it on."""
        self._call(partial(self._listener.on_event, event))

    def close(self) -> None:
        """Pass it on."""
        self._call(self._listener.close)

    def _call(self, call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001  # it may be the user's code
            let_pass(error)
            # Once, so that a listener that always raises does not fill the log.
            if not self._has_raised:
                self._has_raised = True
                _log.exception("the listener %s has raised; this is said once", self.name)


class Observers:
    """The listeners of one job, told in their order."""

    def __init__(self, listeners: Sequence[JobListener], wall_clock: Callable[[], float]) -> None:
        self._listeners, self._wall_clock = tuple(map(Guarded, listeners)), wall_clock
        self.are_there = bool(self._listeners)
        """Whether anything is heard; what is dear to find out is left out otherwise."""

    def begin(self, report: JobReport) -> None:
        """The job is about to start."""
        for listener in self._listeners:
            listener.begin(report)

    def tell(self, kind: type[JobEvent], **values: Any) -> None:
        """Let each listener hear of an event that has happened now."""
        if not self._listeners:
            return
        event = kind(at=self._wall_clock(), **values)
        for listener in self._listeners:
            listener.on_event(event)

    def close(self) -> None:
        """Nothing will happen any more."""
        for listener in self._listeners:
            listener.close()
