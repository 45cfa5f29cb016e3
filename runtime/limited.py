"""Calls that are waited for up to a limit: a step in a store or a target, or user code.

Decides that a call which exceeds its limit is left behind, together with its thread, since a thread
cannot be stopped: the caller gets `CallLate`, and the next call has another thread. Decides too
that a call which takes long is named, with its stack, while it still runs. Leaves to rows what
follows.

Runs where Spark asks for a batch or runs one, where a control is updated, in commands, and where a
job is ended beside its queue's thread; on that thread jobs wait by `shell.blocking_work`.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar

WARN_S: Final = 60.0
"""A call is named after this time, and whenever the time has doubled."""
STACK_FRAMES: Final = 8
_log = logging.getLogger(__name__)
T = TypeVar("T")


class CallLate(TimeoutError):
    """A call has not ended within its limit; it may still take effect."""


@dataclass(frozen=True)
class Limit:
    """An option by its name, and its value in seconds."""

    option: str
    seconds: float


class _Call:
    """One call, and its end."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        # Held until the call ends: an event would take twice as long to be waited for.
        self._running = threading.Lock()
        self._running.acquire()
        self._result: Any = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """On the other thread."""
        try:
            self._result = self._function()
        except BaseException as error:  # noqa: BLE001  it is raised where the call is waited for
            self._error = error
        self._running.release()

    def has_ended(self, timeout_s: float) -> bool:
        """Wait; true once."""
        return self._running.acquire(timeout=timeout_s)

    def outcome(self) -> Any:
        """The result. Raises what the call has raised."""
        if self._error is not None:
            raise self._error
        return self._result


class LimitedCalls:
    """Calls one after the other, on one thread as long as none of them is late.

    `name`: of the thread. The thread ends with this object.
    """

    def __init__(self, name: str, warn_s: float = WARN_S) -> None:
        self._name, self._warn_s = name, warn_s
        self._calls: queue.SimpleQueue[_Call | None] | None = None
        self._thread: threading.Thread | None = None
        self.is_left_behind = False
        """Whether a call was left behind, and may be under way."""

    def call(self, what: str, limit: Limit, function: Callable[[], T]) -> T:
        """Call `function`, which is named as `what`. Raises CallLate, and what it raises."""
        if self._calls is None:
            self._start()
        assert self._calls is not None, "it was started"
        assert self._thread is not None, "it was started"
        call = _Call(function)
        self._calls.put(call)
        try:
            has_ended = _has_ended(call.has_ended, what, limit, self._thread, self._warn_s)
        except BaseException:  # the caller is interrupted
            self._leave_behind()
            raise
        if has_ended:
            result: T = call.outcome()
            return result
        place = stack_of(self._thread)
        self._leave_behind()
        raise CallLate(
            f"{what} has not ended within {limit.seconds:g} s; {limit.option} is the limit. Its "
            f"thread is left behind. It is at:\n{place}".rstrip()
        )

    def _start(self) -> None:
        self._calls = queue.SimpleQueue()
        self._thread = threading.Thread(
            target=_run, args=(self._calls,), name=self._name, daemon=True
        )
        self._thread.start()
        weakref.finalize(self, self._calls.put, None)

    def _leave_behind(self) -> None:
        assert self._calls is not None, "a call was waited for"
        self._calls.put(None)  # should the call ever end
        self._calls = self._thread = None
        self.is_left_behind = True


def limited(what: str, limit: Limit, function: Callable[[], T]) -> T:
    """Call `function` on a thread of its own. Raises CallLate, and what it raises."""
    return LimitedCalls("epochgate-limited-call").call(what, limit, function)


@contextlib.contextmanager
def watched(what: str, warn_s: float = WARN_S) -> Iterator[None]:
    """Name what runs on this thread if it takes long; for what has no limit, since its amount of
    work has none.
    """
    ended, thread = threading.Event(), threading.current_thread()
    watch = threading.Thread(
        target=_has_ended,
        args=(ended.wait, what, Limit("", threading.TIMEOUT_MAX), thread, warn_s),
        name="epochgate-watched-call",
        daemon=True,
    )
    watch.start()
    try:
        yield
    finally:
        ended.set()


def stack_of(thread: threading.Thread) -> str:
    """Return the stack of a thread as it is now; empty if it has ended."""
    frame = None if thread.ident is None else sys._current_frames().get(thread.ident)
    return "" if frame is None else "".join(traceback.format_stack(frame, limit=STACK_FRAMES))


def _run(calls: queue.SimpleQueue[_Call | None]) -> None:
    while (call := calls.get()) is not None:
        call.run()
        del call  # its result is not kept until the next one


def _has_ended(
    wait: Callable[[float], bool], what: str, limit: Limit, thread: threading.Thread, warn_s: float
) -> bool:
    """Wait up to the limit, and warn meanwhile."""
    begun_s = time.monotonic()
    while True:
        waited_s = time.monotonic() - begun_s
        if wait(max(0.0, min(limit.seconds, warn_s) - waited_s)):
            return True
        if warn_s >= limit.seconds:
            return False
        _log.warning(
            "%s has been under way for %.3g s%s. It is at:\n%s",
            *(what, warn_s, f"; {limit.option} is {limit.seconds:g}" if limit.option else ""),
            stack_of(thread).rstrip(),
        )
        warn_s *= 2
