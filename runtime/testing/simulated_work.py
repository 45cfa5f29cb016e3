"""Blocking work and coroutines of a simulated job: nothing runs before a scheduler says so.

The loop has no thread and waits for nothing: its time is the simulated clock's, and it moves only
when the piece of blocking work runs that it submits whenever something is ready.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from functools import partial
from typing import Any, Final, TypeVarTuple

from epochgate.fsm import EventQueue, Timer
from epochgate.runtime.api.coordinator import RunningCoroutine
from epochgate.runtime.shell.asyncio_loop import CoroutineRunner, Submitted
from epochgate.runtime.shell.blocking_work import Outcome, Post, Then, WorkHangs

Arguments = TypeVarTuple("Arguments")


class SimulatedWork:
    """Work that runs when a scheduler says so, which makes every moment of its ending reachable:
    the lanes do not wait for each other, as on threads.
    """

    def __init__(self, post: Post) -> None:
        self._post = post
        self.waiting: deque[tuple[str, Callable[[], Any], Then]] = deque()
        self.hanging: set[str] = set()
        """Lanes of which nothing runs unless it is asked for: a store or sink without answer."""
        self._loop: SimulatedLoop | None = None

    def submit(self, lane: str, work: Callable[[], Any], then: Then) -> None:
        self.waiting.append((lane, work, then))

    def run(self, lane: str, work: Callable[[], None], timeout_s: float) -> None:
        if lane in self.hanging:
            raise WorkHangs(f"what runs in {lane!r} has not ended within {timeout_s:g} s")
        work()

    def place(self, lane: str) -> str:
        return ""

    def open_loop(self, queue: EventQueue) -> CoroutineRunner:
        self._loop = SimulatedLoop(
            queue, lambda work: self.submit("coroutines", work, lambda result, error: None)
        )
        return self._loop

    def lanes(self) -> list[str]:
        """The lanes in which work waits, the one with the oldest first."""
        return list(dict.fromkeys(lane for lane, *_ in self.waiting))

    def run_next(self, lane: str | None = None) -> bool:
        """Run the oldest piece of work of a lane, or of all that do not hang, and post its outcome;
        False when none waits.
        """
        for position, (waiting, work, then) in enumerate(self.waiting):
            if waiting == lane or (lane is None and waiting not in self.hanging):
                del self.waiting[position]
                outcome = Outcome(work)
                self._post(then, outcome.result, outcome.error)
                return True
        return False

    def take(self, lane: str) -> Callable[[], None]:
        """Take out the oldest piece of work of a lane, which hangs; call what is returned to let it
        run, and answer, after all. ValueError if none waits.
        """
        for position, (waiting, work, then) in enumerate(self.waiting):
            if waiting == lane:
                del self.waiting[position]
                return partial(self._run, work, then)
        raise ValueError(f"no work waits in {lane!r}")

    def _run(self, work: Callable[[], Any], then: Then) -> None:
        outcome = Outcome(work)
        self._post(then, outcome.result, outcome.error)

    def close_by(self, seconds: float) -> None:
        """Nothing waits here."""

    def close(self) -> None:
        self.waiting.clear()
        if self._loop is not None:
            self._loop.close()


class SimulatedLoop(asyncio.BaseEventLoop):
    """A loop without selector and thread, for coroutines that await each other, sleep or time out.

    What needs the operating system (sockets, processes) is not there; use `run_async` or a fake.
    """

    def __init__(self, queue: EventQueue, submit: Callable[[Callable[[], Any]], None]) -> None:
        super().__init__()
        self._selector = _NoSelector()
        self._queue, self._submit_work = queue, submit
        self._is_due = False
        self._timers: dict[int, Timer] = {}

    def submit(self, coroutine: Coroutine[Any, Any, Any], then: Then) -> RunningCoroutine:
        """Start the coroutine in the next piece of work."""
        task = Submitted(self, coroutine, self._queue.post, then)
        self.call_soon(task.start)
        return task

    def time(self) -> float:
        """Seconds by the simulated clock."""
        return self._queue.clock.now_s()

    def call_soon(
        self,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Let a piece of work come that runs it."""
        handle = super().call_soon(callback, *args, context=context)
        self._move()
        return handle

    def call_soon_threadsafe(
        self,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Do the same: there is one thread."""
        return self.call_soon(callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Wake up by a timer of the queue."""
        handle = super().call_at(when, callback, *args, context=context)
        delay_s = max(0.0, when - self.time())
        self._timers[id(handle)] = self._queue.post_later(delay_s, self._timer_due, id(handle))
        return handle

    def _timer_due(self, handle: int) -> None:
        self._timers.pop(handle, None)
        self._move()

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        if (timer := self._timers.pop(id(handle), None)) is not None:
            timer.cancel()
        super()._timer_handle_cancelled(handle)  # type: ignore[misc]  # asyncio's own hook

    def _move(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._submit_work(self._run_ready)

    def _run_ready(self) -> None:
        """Let every callback run that is ready now; what they make ready is the next piece."""
        self._is_due = False
        super().call_soon(self.stop)
        self.run_forever()

    def _process_events(self, events: list[Any]) -> None:
        """Without a selector there are none."""

    def close(self) -> None:
        """Cancel what runs."""
        if self.is_closed():
            return
        self._submit_work = lambda work: None
        for _ in range(_CLOSING_ROUNDS):
            for task in asyncio.all_tasks(self):
                task.cancel()
            self._run_ready()
        super().close()

    def __del__(self) -> None:
        """Close without the usual warning: a simulated job may be dropped as it stands."""
        super().close()


_CLOSING_ROUNDS: Final = 4
"""One to start what was submitted, one to cancel it, two for what it does about that."""


class _NoSelector:
    """There is nothing to select from."""

    def select(self, timeout: float | None) -> list[Any]:
        return []
