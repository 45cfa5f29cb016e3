"""The lanes of blocking work: storing, committing, and what coordinators hand over; and how long
the shell waits for it.

Results return to the queue. Decides nothing: `Wait` warns while work lasts, and fires a trigger
once the limit of an option has passed; the row of that trigger says what follows.
"""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from epochgate.errors import EpochgateError
from epochgate.fsm import EventQueue, Timer
from epochgate.runtime.api.raised import let_pass
from epochgate.runtime.limited import stack_of
from epochgate.runtime.shell.asyncio_loop import CoroutineRunner, LoopThread

if TYPE_CHECKING:
    from epochgate.runtime.shell.job_master import JobMaster

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
    """The outcome of a piece of work: a result, or the error it raised."""

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


def in_lane(
    master: JobMaster,
    lane: str,
    work: Callable[[], Any],
    done: Callable[..., None],
    *of: Any,
    what: str,
    option: str | None = None,
    expired: Callable[..., object] | None = None,
) -> float:
    """Run work in a lane of a job, and call `done` in its turn, with `of`, the result and the
    error; a `Wait` watches it meanwhile. Return when that began. Queue thread only.
    """
    wait = Wait(master, lane, what, option, expired, *of)

    def then(result: Any, error: BaseException | None) -> None:
        wait.end()
        done(*of, result, error)

    master.blocking.submit(lane, work, then)
    return wait.since_s


class Wait(Timer):
    """The wait for one piece of work of a lane, and its own timer; `expired` is called with `of`
    and the reason once `option` seconds have passed, and `what` is the work in words, with places
    for `of`. Without an option it warns alone.
    """

    __slots__ = (
        *("_expired", "_is_over", "_master", "_of", "_option", "_warn_s", "_what"),
        *("lane", "since_s"),
    )
    arguments = ()

    def __init__(
        self,
        master: JobMaster,
        lane: str,
        what: str,
        option: str | None,
        expired: Callable[..., object] | None,
        *of: Any,
    ) -> None:
        self._master, self.lane = master, lane
        self._what, self._option, self._expired, self._of = what, option, expired, of
        configuration, queue = master.configuration, master.queue
        limit_s = math.inf if option is None else getattr(configuration, option)
        self._warn_s = warn_s = configuration.work_warn_s or math.inf
        self.since_s = since_s = queue.now_s
        # As `_set` does; each checkpoint waits twice, and pays for a call.
        self.due_s = since_s + (warn_s if warn_s < limit_s else limit_s)
        self.is_cancelled = self._is_over = False
        if self.due_s < math.inf:
            queue.set_timer(self)

    def end(self) -> None:
        """The answer has come, or is waited for no longer; what `of` holds may be large, and the
        queue forgets a timer late.
        """
        self._is_over = self.is_cancelled = True
        self._of = ()

    def expire(self) -> None:
        """The limit has passed: fire the trigger that says so, unless the answer has come."""
        if self._is_over:
            return
        reason = (
            f"{self._in_words()} has not ended within {self._limit_s():g} s; {self._option} is the "
            f"limit{self._place()}"
        )
        of = self._of
        self.end()
        assert self._expired is not None, "what has an option has a limit"
        self._expired(*of, reason)

    def _in_words(self) -> str:
        return self._what.format(*self._of)

    def _limit_s(self) -> float:
        if self._option is None:
            return math.inf
        limit_s: float = getattr(self._master.configuration, self._option)
        return limit_s

    def _place(self) -> str:
        """Return the place of the lane, for the end of a sentence."""
        place = self._master.blocking.place(self.lane)
        return f". It is at:\n{place}".rstrip() if place else ""

    def _set(self) -> None:
        self.due_s = self.since_s + min(self._warn_s, self._limit_s())
        self.is_cancelled = False
        if self.due_s < math.inf:
            self._master.queue.set_timer(self)

    def trigger(self) -> None:
        """Warn, or fire the trigger if the limit has passed."""
        if self._is_over:
            return
        now_s = self._master.queue.now_s
        if now_s >= self.since_s + self._limit_s():
            self.expire()
            return
        # As `_set` adds them: their difference may be less than the sum of these was.
        if now_s >= self.since_s + self._warn_s:
            waited_s = now_s - self.since_s
            ends = f"after {self._limit_s():g} s ({self._option}) it is waited for no longer"
            self._master.warn(
                f"{self._in_words()} has been under way for {waited_s:.3g} s; "
                f"{'it has no limit' if self._option is None else ends}{self._place()}"
            )
            self._warn_s *= 2
        self._set()
