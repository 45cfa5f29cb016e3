"""Where blocking work runs: storing, committing, and what coordinators hand over. Its results
return to the queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

Then = Callable[[Any, BaseException | None], None]
Post = Callable[..., None]


class BlockingWork(Protocol):
    """Runs work off the queue's thread and posts `then(result, error)` back to it."""

    def submit(self, lane: str, work: Callable[[], Any], then: Then) -> None:
        """Work of one lane runs in order, one at a time; queue thread only."""
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
        except Exception as error:  # noqa: BLE001  # it is handed to the one who asked
            self.error = error


class ThreadedWork:
    """One thread for each lane."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._lanes: dict[str, ThreadPoolExecutor] = {}

    def submit(self, lane: str, work: Callable[[], Any], then: Then) -> None:
        if lane not in self._lanes:
            self._lanes[lane] = ThreadPoolExecutor(1, thread_name_prefix=f"epochgate-{lane}")

        def run() -> None:
            outcome = Outcome(work)
            self._post(then, outcome.result, outcome.error)

        self._lanes[lane].submit(run)

    def close(self) -> None:
        for executor in self._lanes.values():
            executor.shutdown(wait=True, cancel_futures=True)


class SimulatedWork:
    """Work that runs when a scheduler says so, which makes every moment of its ending reachable."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self.waiting: deque[tuple[str, Callable[[], Any], Then]] = deque()

    def submit(self, lane: str, work: Callable[[], Any], then: Then) -> None:
        self.waiting.append((lane, work, then))

    def run_next(self) -> bool:
        """Run the oldest piece of work and post its outcome; False when none waits."""
        if not self.waiting:
            return False
        _, work, then = self.waiting.popleft()
        outcome = Outcome(work)
        self._post(then, outcome.result, outcome.error)
        return True

    def close(self) -> None:
        self.waiting.clear()
