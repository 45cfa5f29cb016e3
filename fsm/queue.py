"""The deterministic event queue: every call from outside is an event, processed one at a time, to
completion, in order.

It is Flink's main-thread executor made explicit. An event is a trigger of a machine with its
arguments; a timer is an event that is due at a time of the clock. Processing one event runs its
trigger to completion and then delivers the effects in the outbox, whose handlers may post further
events. One thread drains the queue; `post` may be called from any thread.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import sys
from collections import deque
from collections.abc import Callable
from typing import Any

from epochgate.fsm.clock import Clock
from epochgate.fsm.errors import QueueReentered
from epochgate.fsm.journal import Journal
from epochgate.fsm.system import System


class Timer:
    """An event that waits for its time; `cancel` makes it void."""

    __slots__ = ("arguments", "due_s", "is_cancelled", "trigger")

    def __init__(
        self, due_s: float, trigger: Callable[..., Any], arguments: tuple[Any, ...]
    ) -> None:
        self.due_s, self.trigger, self.arguments = due_s, trigger, arguments
        self.is_cancelled = False

    def cancel(self) -> None:
        """Keep its event from being enqueued; harmless once it was."""
        self.is_cancelled = True


class EventQueue:
    """Drives one system; `wake`, if set, is called after each post (a sleeping thread's alarm)."""

    def __init__(self, system: System, clock: Clock, journal: Journal | None = None) -> None:
        self.system, self.clock = system, clock
        self._journal = journal
        if journal is not None:
            system.journal = journal
            journal.clock = clock
        self.wake: Callable[[], None] | None = None
        self.processed = 0
        self._events: deque[tuple[Callable[..., Any], tuple[Any, ...]]] = deque()
        self._timers: list[tuple[float, int, Timer]] = []
        self._timer_number = itertools.count()
        self._is_processing = False

    def post(self, trigger: Callable[..., Any], *arguments: Any) -> None:
        """Enqueue a trigger, or any callable of the shell that must run in turn; any thread."""
        self._events.append((trigger, arguments))
        if self.wake is not None:
            self.wake()

    def post_later(self, delay_s: float, trigger: Callable[..., Any], *arguments: Any) -> Timer:
        """Enqueue a trigger once `delay_s` seconds have passed; queue thread only."""
        timer = Timer(self.clock.now_s() + delay_s, trigger, arguments)
        heapq.heappush(self._timers, (timer.due_s, next(self._timer_number), timer))
        return timer

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits to be processed now; timers do not count."""
        return not self._events

    @property
    def waiting(self) -> int:
        """How many events wait to be processed now; timers do not count."""
        return len(self._events)

    def next_due_s(self) -> float | None:
        """When the earliest timer is due, None when there is none."""
        while self._timers and self._timers[0][2].is_cancelled:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def timers(self) -> list[Timer]:
        """The timers that wait, in the order in which they are due."""
        return [timer for _, _, timer in sorted(self._timers) if not timer.is_cancelled]

    def hasten(self, timer: Timer) -> None:
        """Enqueue a timer's event now instead of at its time, to try every order."""
        timer.cancel()
        self.post(timer.trigger, *timer.arguments)

    def post_due(self) -> int:
        """Enqueue the timers whose time has come, in order of their times; their number."""
        posted, now_s, timers = 0, self.clock.now_s(), self._timers
        while timers and timers[0][0] <= now_s:
            timer = heapq.heappop(timers)[2]
            if not timer.is_cancelled:
                self._events.append((timer.trigger, timer.arguments))
                posted += 1
        return posted

    def step(self) -> bool:
        """Process one event and its effects; False when there was none."""
        return self.drain(1) == 1

    def abandon(self) -> list[tuple[Callable[..., Any], tuple[Any, ...]]]:
        """Take out what waits without processing it: each event once, whichever thread asks."""
        taken = []
        with contextlib.suppress(IndexError):
            while True:
                taken.append(self._events.popleft())
        return taken

    def drain(self, events_max: int | None = None) -> int:
        """Process events until none waits, or `events_max` were; how many were.

        An exception of an event or of its effects passes, and the queue stands behind that event.
        Raises QueueReentered when called while it processes an event.
        """
        if self._is_processing:
            raise QueueReentered(
                "the queue is processing an event, which must end before the next one begins; "
                "post from here what should happen afterwards"
            )
        left, done, events = sys.maxsize if events_max is None else events_max, 0, self._events
        outbox, settle = self.system.emitted, self.system.settle
        if self._journal is not None:
            self._journal.between_events()
        self._is_processing = True
        try:
            while events and done < left:
                trigger, arguments = events.popleft()
                done += 1
                trigger(*arguments)
                if outbox:
                    settle()
        finally:
            self._is_processing = False
            self.processed += done
        return done
