"""An interrupt (Ctrl-C, or a notebook's button) of the thread that waits for a job.

Decides what it comes to: the first has the job take a last checkpoint and stop, a second cancels
it, a third leaves it as it is. Each is told in words. Runs on the thread that waits.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
from collections.abc import Iterator
from typing import Final, Protocol

from epochgate.runtime.api.notebooks import is_notebook
from epochgate.runtime.api.reports import JobResult, one_line
from epochgate.runtime.shell.concurrent_attempts import NoCheckpointAmongAttempts

STOPPING: Final = (
    "interrupted: the job takes a last checkpoint and stops; another interrupt leaves at once"
)
TWICE: Final = "it was interrupted twice"
_log = logging.getLogger(__name__)


class Interruptible(Protocol):
    """The part of a job's handle that ends it."""

    def stop(self) -> None:
        """Take a last checkpoint, then end. Raises NoCheckpointAmongAttempts."""

    def cancel(self, reason: str = ...) -> None:
        """End at once."""

    def joined(self, timeout_s: float | None = None) -> JobResult:
        """Wait for the end; TimeoutError after `timeout_s`."""


@contextlib.contextmanager
def interruptible(job: Interruptible) -> Iterator[None]:
    """End the job by an interrupt of the block, and say so."""
    with _cancelling_nothing():
        try:
            yield
        except KeyboardInterrupt:
            raise end_interrupted(job) from None


def end_interrupted(job: Interruptible) -> KeyboardInterrupt:
    """End the job, and return what to raise: of no class of its own, since Python ends a program by
    the signal for that one alone.
    """
    with contextlib.suppress(KeyboardInterrupt):
        return _told(_stopped(job))
    try:
        job.cancel(TWICE)
        return _told(job.joined())
    except KeyboardInterrupt:
        return KeyboardInterrupt(
            "interrupted three times: the job was canceled, and may still hold its checkpoints; "
            "its handle's wait() returns when it has let go of them"
        )


def _stopped(job: Interruptible) -> JobResult:
    _log.warning(STOPPING)
    try:
        job.stop()
    except NoCheckpointAmongAttempts:
        job.cancel("it was interrupted, and takes no checkpoints")
    return job.joined()


def _told(result: JobResult) -> KeyboardInterrupt:
    checkpoint = result.last_checkpoint_id
    where = f"checkpoint {checkpoint}" if checkpoint else "the beginning"
    how = "run the cell again" if is_notebook() else "start it again"
    if result.state == "finished":
        said = f"the job has stopped after {where}"
    else:
        verb = "has" if result.state == "failed" else "was"
        why = "" if result.reason is None else f": {one_line(result.reason)}"
        said = f"the job {verb} {result.state}{why}; its last checkpoint is {checkpoint or 'none'}"
    return KeyboardInterrupt(f"{said}; {how} to go on from {'there' if checkpoint else where}")


@contextlib.contextmanager
def _cancelling_nothing() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt alone: the handler that pyspark has installed would cancel
    all Spark jobs, before the last checkpoint of this one.
    """
    handler = None
    if threading.current_thread() is threading.main_thread():
        handler = signal.getsignal(signal.SIGINT)
    if not getattr(handler, "__module__", "").startswith("pyspark"):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
