"""The asyncio loop in which coordinators' coroutines run: one for a job, beside the queue's thread.

Decides nothing: what a coroutine comes to is posted to the queue. The thread "epochgate-asyncio"
starts with the first coroutine.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol

from epochgate.runtime.api.coordinator import RunningCoroutine
from epochgate.runtime.api.raised import let_pass

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
        task = Submitted(self._loop, coroutine, self._post, then)
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


class Submitted:
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
