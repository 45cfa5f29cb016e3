"""Run to completion of one event, in production, in simulation and in closed systems alike.

    EventQueue.drain      takes the oldest event: a trigger of a machine, or a call of the shell
      fire                runs the row that holds, then those of the triggers that rows have fired
        Outlet.emit       puts what a row tells the outside into the outbox
      Running.settle      hands the effects in the outbox to their handlers, then runs what these
                          have fired, each as an event of its own: `fire`, `settle`

Three queues belong to one event. The inner queue holds the triggers that rows have fired, in the
order of firing, so no machine is entered again while its own actions run. The outbox holds the
effects, in the order of emission, so none is carried out before its step is over. The outer queue
holds the triggers that handlers have fired; each begins once all effects before it were handed on.
What is posted meanwhile comes after the events that wait.

Leaves to `steps` what a row does in a state, to `machine`, `ports` and `system` what is declared.
The event queue is Flink's main-thread executor made explicit: one thread drains it; `post` and
`abandon` may be called from any.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import sys
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from epochgate.fsm.errors import QueueReentered
from epochgate.fsm.ports import Effect, Emitted, Kinds
from epochgate.fsm.rows import Row
from epochgate.fsm.steps import Outcome, Steps

if TYPE_CHECKING:
    from epochgate.fsm.journal import Journal
    from epochgate.fsm.machine import Machine


TIMERS_PURGED_MIN = 64
"""With fewer timers the cancelled ones among them are kept until their time."""
Observer = Callable[["Machine", str, Row, tuple[Any, ...]], None]
"""Called after each step with the machine, the state it was in, the row taken, and the trigger's
arguments.
"""
Call = tuple[Callable[..., Outcome], tuple[Any, ...]]
"""A trigger that a handler has fired: what fires it, with the machine and the arguments."""
Waiting = tuple[Steps, tuple[Any, ...]]
"""A trigger that was fired inside a step: what it does, with the machine and the arguments."""


def fired_by(steps: Steps, trigger: str, *, is_environment: bool) -> Callable[..., Outcome]:
    """Make the method that fires a trigger.

    One of the protocol waits inside a step, and else begins a step, which ends when the inner queue
    is empty. One of the environment is taken at once, and what it fires becomes an event.
    """
    waiting = Outcome.WAITING
    empty: deque[Any] = deque()

    # Each event of a job passes here several times; a function called from here would be paid by
    # every trigger.
    def fire(*call: Any) -> Outcome:
        system = call[0].system
        queue = system.open_queue
        if is_environment:
            system.open_queue, inner = system.outer_queue, empty
        elif queue is not None:
            queue.append((steps, call) if queue is system.inner_queue else (fire, call))
            return waiting
        else:
            system.open_queue = inner = system.inner_queue
            if system.journal is not None:
                system.journal.record_event((trigger, call))
        present, observer, first = steps, system.observer, waiting
        try:
            while True:
                source = call[0].state
                outcome, row = present[source](*call)
                if observer is not None:
                    observer(call[0], source, row, call[1:])
                if first is waiting:
                    first = outcome
                if not inner:
                    return first
                present, call = inner.popleft()
        except BaseException:
            inner.clear()
            raise
        finally:
            system.open_queue = queue

    fire.__name__ = trigger
    return fire


class Outlet:
    """A port of one machine: calling a message appends its effect to the system's outbox."""

    def __init__(self, kinds: Kinds, index: tuple[int, ...], outbox: deque[Emitted]) -> None:
        self._kinds, self._index, self._outbox = kinds, index, outbox

    def __getattr__(self, message: str) -> Callable[..., None]:
        """Make the method of one message when it is first used."""
        if message.startswith("_") or message not in self._kinds:
            raise AttributeError(message)
        kind, index, append = self._kinds[message], self._index, self._outbox.append

        def emit(*arguments: Any) -> None:
            append((kind, index + arguments))

        setattr(self, message, emit)
        return emit


class Running:
    """The needs of a system whose events run; `system.System` adds the machines."""

    def __init__(self, kinds: Iterable[type[Effect]]) -> None:
        self.observer: Observer | None = None
        self.journal: Journal | None = None
        self.emitted, self.inner_queue, self.outer_queue = self._queues()
        self.open_queue: deque[Any] | None = None
        """Where a trigger that is fired now has to wait; None between events."""
        self._handlers: dict[type[Effect], Callable[..., None]] = dict.fromkeys(kinds, _drop)

    def _queues(self) -> tuple[deque[Emitted], deque[Waiting], deque[Call]]:
        """Make the outbox, which holds the effects of the step, oldest first, until they are
        delivered; the inner queue of the triggers that machines have fired inside the step; and the
        outer queue of those that handlers have fired, each of which becomes an event.
        """
        return deque(), deque(), deque()

    @property
    def effects(self) -> tuple[Effect, ...]:
        """The effects that wait in the outbox, oldest first."""
        return tuple(kind(items) for kind, items in self.emitted)

    @property
    def is_unsettled(self) -> bool:
        """True if effects or events of handlers wait, and no step processes them."""
        return self.open_queue is None and bool(self.emitted or self.outer_queue)

    def settle(self, *, only_effects: bool = False) -> None:
        """Deliver the effects of the step, then run what their handlers have fired, each as an
        event with effects of its own, until nothing is left. Inside a step, or while effects are
        delivered, that is done already. With `only_effects` what the handlers have fired stays in
        the outer queue.

        An effect whose port was never bound is dropped. An exception of a handler passes; what
        comes after that effect stays in the outbox.
        """
        if self.open_queue is not None:
            return
        outbox, handlers, outer = self.emitted, self._handlers, self.outer_queue
        while True:
            if self.journal is not None:
                self.journal.record_effects(outbox)
            self.open_queue = outer
            try:
                while outbox:
                    kind, items = outbox.popleft()
                    handlers[kind](*items)
            finally:
                self.open_queue = None
            if only_effects or not outer:
                return
            fire, call = outer.popleft()
            fire(*call)


def _drop(*effect: Any) -> None:
    """Handle an effect of a port that was never bound."""


class Clock(Protocol):
    """The needs of a queue on a clock."""

    def now_s(self) -> float:
        """Seconds since an arbitrary start; never goes backwards."""
        ...


class VirtualClock:
    """A clock that stands still until it is told to move.

    >>> clock = VirtualClock()
    >>> clock.advance(1.5)
    >>> clock.now_s()
    1.5
    """

    def __init__(self) -> None:
        self._now_s = 0.0

    def now_s(self) -> float:
        """Return the seconds that have been let pass."""
        return self._now_s

    def advance(self, seconds: float) -> None:
        """Move forward by `seconds`; ValueError when negative."""
        if seconds < 0:
            raise ValueError(f"a clock cannot go back by {-seconds} s")
        self._now_s += seconds


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

    def __init__(self, system: Running, clock: Clock, journal: Journal | None = None) -> None:
        self.clock, self.journal = clock, journal
        self._outbox, self._settle = system.emitted, system.settle
        if journal is not None:
            system.journal = journal
            journal.clock = clock
        self.wake: Callable[[], None] | None = None
        self.processed = 0
        self._events: deque[tuple[Callable[..., Any], tuple[Any, ...]]] = deque()
        self._timers: list[tuple[float, int, Timer]] = []
        self._timer_number = itertools.count()
        self._purge_at = TIMERS_PURGED_MIN
        self._is_processing = False
        self._event_s: float | None = None

    def post(self, trigger: Callable[..., Any], *arguments: Any) -> None:
        """Enqueue a trigger, or any callable of the shell that must run in turn; any thread."""
        self._events.append((trigger, arguments))
        if self.wake is not None:
            self.wake()

    def post_first(self, trigger: Callable[..., Any], *arguments: Any) -> None:
        """Enqueue a trigger in front of what waits; any thread."""
        self._events.appendleft((trigger, arguments))
        if self.wake is not None:
            self.wake()

    def post_later(self, delay_s: float, trigger: Callable[..., Any], *arguments: Any) -> Timer:
        """Enqueue a trigger once `delay_s` seconds have passed; queue thread only."""
        timer = Timer(self.clock.now_s() + delay_s, trigger, arguments)
        self.set_timer(timer)
        return timer

    def set_timer(self, timer: Timer) -> None:
        """Enqueue a timer's event at its time; queue thread only."""
        heapq.heappush(self._timers, (timer.due_s, next(self._timer_number), timer))
        if len(self._timers) >= self._purge_at:
            self._timers = [entry for entry in self._timers if not entry[2].is_cancelled]
            heapq.heapify(self._timers)
            self._purge_at = max(TIMERS_PURGED_MIN, 2 * len(self._timers))

    @property
    def now_s(self) -> float:
        """The time of the event under way: the clock's when the event first asked, so all that it
        notes agrees. Between events the clock's own; queue thread only.
        """
        if not self._is_processing:
            return self.clock.now_s()
        if self._event_s is None:
            self._event_s = self.clock.now_s()
        return self._event_s

    @property
    def is_empty(self) -> bool:
        """True if nothing waits to be processed now; timers do not count."""
        return not self._events

    @property
    def waiting(self) -> int:
        """The number of events that wait to be processed now; timers do not count."""
        return len(self._events)

    def next_due_s(self) -> float | None:
        """Return the time at which the earliest timer is due, None when there is none."""
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
        outbox, settle = self._outbox, self._settle
        if self.journal is not None:
            self.journal.between_events()
        self._is_processing = True
        try:
            while events and done < left:
                trigger, arguments = events.popleft()
                done += 1
                trigger(*arguments)
                if outbox:
                    settle()
                self._event_s = None
        finally:
            self._is_processing, self._event_s = False, None
            self.processed += done
        return done
