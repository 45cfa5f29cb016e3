"""The budget of a search, and what it tells about itself while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from epochgate.fsm.checker.engines.search import Search, Stopped
from epochgate.fsm.checker.memory_limit import LEAST_FREE_BYTES, free_bytes

REPORT_EVERY_S = 0.5
LOOK_EVERY_S = 0.1
"""How often the memory that is left is looked at."""
FORESIGHT_MAX = 200
"""A forecast beyond this multiple of the states found is not shown."""


@dataclass(frozen=True)
class Report:
    """A search under way.

    `estimate` is a guess at the number of all states, None while the levels still widen, and
    `room_for` one at how many there is room for, in the memory or on the disk as `room` says.
    `growth` is how many times as many states the newest level has as the one before.
    """

    states: int
    transitions: int
    states_per_s: float
    frontier: int
    depth: int
    memory_bytes: int
    elapsed_s: float
    estimate: int | None
    room_for: int
    growth: float
    room: str = "memory"
    disk_bytes: int = 0

    @property
    def bytes_per_state(self) -> float:
        return (self.disk_bytes or self.memory_bytes) / max(1, self.states)

    @property
    def full_in_s(self) -> float:
        """A guess at the seconds until there is no room."""
        return (self.room_for - self.states) / max(self.states_per_s, 1e-9)


Progress = Callable[[Report], None]


class Budget:
    """Watches one search; `pause` raises Stopped when a budget is used up."""

    def __init__(
        self,
        search: Search,
        *,
        max_states: int | None,
        max_memory: int,
        max_seconds: float | None,
        progress: Progress | None,
    ) -> None:
        self._search, self._progress = search, progress
        self._max_states, self._max_memory = max_states, max_memory
        self._max_seconds = max_seconds
        self._begun_s = self._reported_s = self._looked_s = time.monotonic()
        self._states_before = search.states
        self._frontiers: list[int] = []

    def level(self, frontier: int) -> None:
        """A new level of `frontier` states begins."""
        self._frontiers.append(frontier)

    @property
    def depth(self) -> int:
        return len(self._frontiers)

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._begun_s

    def pause(self) -> None:
        search = self._search
        if self._max_states is not None and search.states > self._max_states:
            raise Stopped(f"the budget of {self._max_states:,} states is used up")
        if search.memory_bytes > self._max_memory:
            raise Stopped(f"the memory budget of {self._max_memory >> 20} MiB is used up")
        self._look_at_memory()
        if self._max_seconds is not None and self.elapsed_s > self._max_seconds:
            raise Stopped(f"the budget of {self._max_seconds:g} seconds is used up")
        if self._progress is not None:
            self._report(self._progress)

    def _look_at_memory(self) -> None:
        """Stop before the kernel ends this process, whatever it is that takes the memory."""
        now_s = time.monotonic()
        if now_s - self._looked_s < LOOK_EVERY_S:
            return
        self._looked_s = now_s
        if (free := free_bytes()) < LEAST_FREE_BYTES:
            raise Stopped(
                f"only {free >> 20} MiB of memory are left on this machine or in its control group "
                f"(container); the search takes {self._search.memory_bytes >> 20} MiB of it: give "
                f"more, or set a smaller --max-memory"
            )

    def _report(self, progress: Progress) -> None:
        now_s = time.monotonic()
        if now_s - self._reported_s < REPORT_EVERY_S:
            return
        self._reported_s = now_s
        search, elapsed_s = self._search, self.elapsed_s
        room_for, room = search.room_for(self._max_memory)
        progress(
            Report(
                states=search.states,
                transitions=search.transitions,
                states_per_s=(search.states - self._states_before) / elapsed_s,
                frontier=self._frontiers[-1] if self._frontiers else 0,
                depth=self.depth,
                memory_bytes=search.memory_bytes,
                elapsed_s=elapsed_s,
                estimate=estimate(search.states, self._frontiers),
                room_for=room_for,
                room=room,
                disk_bytes=search.disk_bytes,
                growth=self._frontiers[-1] / self._frontiers[-2] if self.depth > 1 else 0.0,
            )
        )


def estimate(states: int, frontiers: list[int]) -> int | None:
    """Guess the number of all states once the levels grow more slowly than before.

    The widths of levels rise and fall much like a bell: while the growth factor shrinks steadily,
    the widths to come follow from it. None as well while that would be far more than is there.

    >>> estimate(31, [1, 2, 4, 8, 16]) is None
    True
    >>> estimate(57, [1, 4, 10, 18, 24])
    108
    """
    if len(frontiers) < 5 or frontiers[-4] == 0 or frontiers[-3] == 0:
        return None
    before, now = frontiers[-3] / frontiers[-4], frontiers[-1] / frontiers[-2]
    if not now < before or now <= 0:
        return None
    shrinking = max(0.5, min(0.995, (now / before) ** 0.5))
    width, factor, total = float(frontiers[-1]), now, float(states)
    for _ in range(1000):
        factor *= shrinking
        width *= factor
        if width < 1:
            break
        total += width
    return int(total) if total < FORESIGHT_MAX * states else None
