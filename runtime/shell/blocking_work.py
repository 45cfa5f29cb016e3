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
from functools import partial
from typing import Any, Final, Protocol

from epochgate.errors import EpochgateError
from epochgate.fsm import EventQueue
from epochgate.runtime.api.raised import let_pass
from epochgate.runtime.limited import stack_of
from epochgate.runtime.shell.asyncio_loop import CoroutineRunner, LoopThread, SimulatedLoop

Then = Callable[[Any, BaseException | None], None]
Post = Callable[..., None]
CLOSE_PATIENCE_S: Final = 5.0
_log = logging.getLogger(__name__)


class WorkHangs(EpochgateError):
    """A piece of work has not ended within the time that its caller waits for it."""


class BlockingWork(Protocol):
    """Runs work off the queue's thread and posts `then(result, error)` back to it."""

    def submit(self, lane: str, work: Callable[[], Any], then: Then) -> None:
        """Work of one lane runs in order, one at a time; queue thread only."""
        ...

    def run(self, lane: str, work: Callable[[], None], timeout_s: float) -> None:
        """Run work in the lane, behind what it has, and wait for it; raises what the work raises,
        and WorkHangs after `timeout_s` seconds, or when `close_by` says so.

        For the beginning and the end of a job, when nothing else would be waiting.
        """
        ...

    def place(self, lane: str) -> str:
        """The stack of what runs in the lane; empty where that is not known. Queue thread only."""
        ...

    def open_loop(self, queue: EventQueue) -> CoroutineRunner:
        """Make the place where coroutines run; called at most once, closed by `close`."""
        ...

    def close_by(self, seconds: float) -> None:
        """Wait for nothing longer than `seconds` from now on: the job is over."""
        ...

    def close(self) -> None:
        """Wait for what runs, and forget the rest."""
        ...


class Outcome:
    """What a piece of work came to: a result, or the error it raised."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.result: Any = None
        self.error: BaseException | None = None
        try:
            self.result = work()
        except BaseException as error:  # noqa: BLE001  # it is handed to the one who asked
            let_pass(error)
            self.error = error


class ThreadedWork:
    """One thread for each lane."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._lanes: dict[str, Lane] = {}
        self._deadline_s: float | None = None
        self._loop: LoopThread | None = None

    def submit(self, lane: str, work: Callable[[], Any], then: Then) -> None:
        def run() -> None:
            outcome = Outcome(work)
            self._post(then, outcome.result, outcome.error)

        self._lane(lane).submit(run)

    def run(self, lane: str, work: Callable[[], None], timeout_s: float) -> None:
        done, outcomes = threading.Event(), list[Outcome]()

        def run() -> None:
            outcomes.append(Outcome(work))
            done.set()

        self._lane(lane).submit(run)
        patience_s = min(timeout_s, self._left_s(timeout_s))
        if not done.wait(patience_s):
            raise WorkHangs(
                f"what runs in {lane!r} has not ended within {patience_s:.3g} s. It is at:\n"
                f"{self.place(lane)}".rstrip()
            )
        if (error := outcomes[0].error) is not None:
            raise error

    def place(self, lane: str) -> str:
        return self._lane(lane).place()

    def _left_s(self, otherwise_s: float) -> float:
        if self._deadline_s is None:
            return otherwise_s
        return max(0.0, self._deadline_s - time.monotonic())

    def _lane(self, lane: str) -> Lane:
        if lane not in self._lanes:
            self._lanes[lane] = Lane(lane)
        return self._lanes[lane]

    def open_loop(self, queue: EventQueue) -> CoroutineRunner:
        self._loop = LoopThread(self._post)
        return self._loop

    def close_by(self, seconds: float) -> None:
        self._deadline_s = time.monotonic() + seconds

    def close(self) -> None:
        if self._loop is not None:
            self._loop.close()
        if self._deadline_s is None:
            self.close_by(CLOSE_PATIENCE_S)
        for lane in self._lanes.values():
            lane.close()
        for lane in self._lanes.values():
            lane.join(self._left_s(0.0))


class Lane:
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
        """Wait for what runs; a line of the log when it is left behind."""
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            _log.warning(
                "the job is over, and what runs in %r does not end; it is left behind", self._lane
            )

    def place(self) -> str:
        """The stack of what runs, the innermost frame last; empty if nothing does."""
        return stack_of(self._thread)

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
