"""Where blocking work runs: storing, committing, and what coordinators hand over. Its results
return to the queue.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Protocol

from epochgate.fsm import EventQueue
from epochgate.runtime.shell.asyncio_loop import CoroutineRunner, LoopThread, SimulatedLoop

Then = Callable[[Any, BaseException | None], None]
Post = Callable[..., None]
GUEST_PATIENCE_S: Final = 5.0
_log = logging.getLogger(__name__)


class BlockingWork(Protocol):
    """Runs work off the queue's thread and posts `then(result, error)` back to it."""

    def submit(
        self, lane: str, work: Callable[[], Any], then: Then, *, is_guest: bool = False
    ) -> None:
        """Work of one lane runs in order, one at a time; queue thread only.

        `is_guest`: the lane runs code of a coordinator, and waits for it are bounded.
        """
        ...

    def run(self, lane: str, work: Callable[[], None]) -> None:
        """Run work in the lane, behind what it has, and wait for it; raises what the work raises.

        For the beginning and the end of a job, when nothing else would be waiting.
        """
        ...

    def open_loop(self, queue: EventQueue) -> CoroutineRunner:
        """Make the place where coroutines run; called at most once, closed by `close`."""
        ...

    def close(self) -> None:
        """Wait for what runs, a few seconds only for guests, and forget the rest."""
        ...


class Outcome:
    """What a piece of work came to: a result, or the error it raised."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.result: Any = None
        self.error: BaseException | None = None
        try:
            self.result = work()
        except Exception as error:  # noqa: BLE001  # it is handed to the one who asked
            self.error = error


class ThreadedWork:
    """One thread for each lane."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._lanes: dict[str, ThreadPoolExecutor] = {}
        self._guests: dict[str, GuestLane] = {}
        self.guest_patience_s = GUEST_PATIENCE_S
        self._loop: LoopThread | None = None

    def submit(
        self, lane: str, work: Callable[[], Any], then: Then, *, is_guest: bool = False
    ) -> None:
        def run() -> None:
            outcome = Outcome(work)
            self._post(then, outcome.result, outcome.error)

        if is_guest:
            if lane not in self._guests:
                self._guests[lane] = GuestLane(lane)
            self._guests[lane].submit(run)
            return
        self._lane(lane).submit(run)

    def run(self, lane: str, work: Callable[[], None]) -> None:
        self._lane(lane).submit(work).result()

    def _lane(self, lane: str) -> ThreadPoolExecutor:
        if lane not in self._lanes:
            self._lanes[lane] = ThreadPoolExecutor(1, thread_name_prefix=f"epochgate-{lane}")
        return self._lanes[lane]

    def open_loop(self, queue: EventQueue) -> CoroutineRunner:
        self._loop = LoopThread(self._post)
        return self._loop

    def close(self) -> None:
        if self._loop is not None:
            self._loop.close()
        for executor in self._lanes.values():
            executor.shutdown(wait=True, cancel_futures=True)
        deadline_s = time.monotonic() + self.guest_patience_s
        for guest in self._guests.values():
            guest.close()
        for guest in self._guests.values():
            guest.join(max(0.0, deadline_s - time.monotonic()))


class GuestLane:
    """A thread for work that may never end: a daemon, so that neither the end of the job nor that
    of the process waits for it for ever.
    """

    def __init__(self, lane: str) -> None:
        self._lane = lane
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name=f"epochgate-{lane}", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[], None]) -> None:
        """Run it after what was submitted before."""
        self._work.put(work)

    def close(self) -> None:
        """Begin nothing more."""
        self._is_closed = True
        self._work.put(None)

    def join(self, timeout_s: float) -> None:
        """Wait for what runs; a warning says when it is left behind."""
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            _log.warning(
                "the job is over, and what runs in %r does not end; it is left behind", self._lane
            )

    def _run(self) -> None:
        while (work := self._work.get()) is not None and not self._is_closed:
            work()


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

    def submit(
        self, lane: str, work: Callable[[], Any], then: Then, *, is_guest: bool = False
    ) -> None:
        self.waiting.append((lane, work, then))

    def run(self, lane: str, work: Callable[[], None]) -> None:
        work()

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

    def close(self) -> None:
        self.waiting.clear()
        if self._loop is not None:
            self._loop.close()
