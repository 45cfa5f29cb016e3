"""Where coordinators' coroutines run: one asyncio loop for a job, beside the queue's thread.

Decides nothing: what a coroutine comes to is posted to the queue. `LoopThread` is production's, a
thread "epochgate-asyncio" that starts with the first coroutine. `SimulatedLoop` runs no thread and
waits for nothing: its time is the simulated clock's, and it moves only when a scheduler lets the
piece of blocking work run that it submits whenever something is ready.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, Final, Protocol, TypeVarTuple

from epochgate.fsm import EventQueue, Timer
from epochgate.runtime.api.coordinator import RunningCoroutine
from epochgate.runtime.api.raised import let_pass

Arguments = TypeVarTuple("Arguments")
Then = Callable[[Any, BaseException | None], None]
CLOSE_PATIENCE_S: Final = 5.0
_log = logging.getLogger(__name__)


class CoroutineRunner(Protocol):
    """Runs coroutines and posts `then(result, error)` to the queue."""

    def submit(self, coroutine: Coroutine[Any, Any, Any], then: Then) -> RunningCoroutine:
        """Take a coroutine over; queue thread only."""
        ...

    def close(self) -> None:
        """Cancel what runs; `then` is not called for it."""
        ...


class LoopThread:
    """One loop on a thread of its own."""

    def __init__(self, post: Callable[..., None]) -> None:
        self._post = post
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def submit(self, coroutine: Coroutine[Any, Any, Any], then: Then) -> RunningCoroutine:
        """Hand the coroutine to the loop's thread."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._loop.run_forever, name="epochgate-asyncio", daemon=True
            )
            self._thread.start()
        task = _Submitted(self._loop, coroutine, self._post, then)
        self._loop.call_soon_threadsafe(task.start)
        return task

    def close(self) -> None:
        """Cancel everything, wait a few seconds for it to end, and end the thread."""
        if self._loop is None or self._thread is None:
            return
        ending = asyncio.run_coroutine_threadsafe(_cancel_all(), self._loop)
        with contextlib.suppress(TimeoutError):
            ending.result(CLOSE_PATIENCE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_PATIENCE_S)
        if self._thread.is_alive():
            _log.warning(
                "a coordinator's coroutine blocks the event loop and is left behind; blocking work "
                "belongs into run_async"
            )
        else:
            self._loop.close()
        self._loop = self._thread = None


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
        task = _Submitted(self, coroutine, self._queue.post, then)
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


class _Submitted:
    """A coroutine on its way through a loop; everything but `cancel` on the loop's thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, Any],
        post: Callable[..., None],
        then: Then,
    ) -> None:
        self._loop, self._coroutine, self._post, self._then = loop, coroutine, post, then
        self._task: asyncio.Task[Any] | None = None
        self._is_cancelled = False

    def start(self) -> None:
        self._task = self._loop.create_task(self._run())
        self._task.add_done_callback(self._ended)
        if self._is_cancelled:
            self._task.cancel()

    async def _run(self) -> tuple[Any, BaseException | None]:
        try:
            return await self._coroutine, None
        except (KeyboardInterrupt, SystemExit) as error:  # these would end the loop of all
            let_pass(error)
            return None, error

    def _ended(self, task: asyncio.Task[tuple[Any, BaseException | None]]) -> None:
        if asyncio.iscoroutine(self._coroutine):
            self._coroutine.close()  # one that was cancelled before it began
        if task.cancelled():
            self._post(self._then, None, asyncio.CancelledError())
        elif (error := task.exception()) is not None:
            self._post(self._then, None, error)
        else:
            self._post(self._then, *task.result())

    def cancel(self) -> None:
        self._is_cancelled = True
        with contextlib.suppress(RuntimeError):  # the loop is closed, and the coroutine with it
            self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def __del__(self) -> None:
        if self._task is None and asyncio.iscoroutine(self._coroutine):
            self._coroutine.close()


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
