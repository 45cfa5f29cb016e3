"""Runs every schedule within a bound of faults and delays, on the real runtime and the user's code.

A schedule is the default one with deviations, so that the search goes by their number: the default
one, all with one deviation, all with two. Each run notes at every step what could deviate there,
which are the schedules to come. A run ends as soon as it comes to a state from which as much was
explored before (delay-bounded scheduling after Emmi, Qadeer and Rakamarić, 2011). The first failure
has the fewest deviations that any has. A step in which the test goes on, or a mover waits, is a
delay.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from epochgate.runtime.testing.worlds.data import Draws, NoOutcome
from epochgate.runtime.testing.worlds.escapes import Escapes, guarded
from epochgate.runtime.testing.worlds.fingerprint import Opaque, fingerprint
from epochgate.runtime.testing.worlds.schedule import ORDERS, Deviation, Moment
from epochgate.runtime.testing.worlds.searching import Found, Search, insist_on_a_job, silent
from epochgate.runtime.testing.worlds.world import World

Schedule = tuple[Deviation, ...]
Budget = tuple[int, int]
"""Faults and delays that are left."""
_now_s = time.monotonic


@dataclass
class Explored(Found):
    """The outcome of an exploration."""

    faults_max: int = 0
    delays_max: int = 0
    states: int = 0
    cut: int = 0
    """Runs that ended in a state that was seen before."""
    waiting: int = 0
    """Schedules that were not run; 0 when it is complete."""
    complete_to: int = -1
    """Every schedule within the bound with up to this number of deviations was run."""
    opaque: str = ""
    """The type without a fingerprint, for which no state was recognised."""

    @property
    def is_complete(self) -> bool:
        """True if all schedules within the bound were run, and no claim was broken."""
        return self.failure is None and self.waiting == 0

    def told(self) -> str:
        """The outcome in one line."""
        bound = f"F={self.faults_max}, delays<={self.delays_max}"
        counts = f"{self.runs:,} runs, {self.states:,} states, {self.seconds:.1f} s"
        if self.failure is not None:
            return f"a claim is broken within {bound}: {counts}"
        if self.waiting == 0:
            told = f"explored completely within {bound}: {counts}"
        else:
            told = (
                f"explored in part within {bound}: every schedule with up to {self.complete_to} "
                f"deviations, {self.waiting:,} others wait; {counts}"
            )
        if self.opaque:
            told += f"; no state was recognised, since {self.opaque} has no fingerprint"
        return told


@dataclass
class Exploration:
    """Explores the runs of one test."""

    search: Search
    faults_max: int
    delays_max: int
    found: Explored = field(init=False)

    def __post_init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.found = Explored(
            self.search.node, faults_max=self.faults_max, delays_max=self.delays_max
        )
        self._seen: dict[bytes, list[Budget]] = {}
        self._waiting: deque[Schedule] = deque([()])

    def explore(
        self, seconds: float | None = None, progress: Callable[[], None] | None = None
    ) -> Explored:
        """Run all schedules, or those for which there is time."""
        began_s = _now_s()
        with guarded() as escapes, silent():
            while self._waiting and self.found.failure is None:
                if seconds is not None and _now_s() - began_s > seconds:
                    break
                self._run(self._waiting.popleft(), escapes)
                if progress is not None:
                    progress()
        found = self.found
        insist_on_a_job(found)
        found.seconds, found.waiting = _now_s() - began_s, len(self._waiting)
        found.states = len(self._seen)
        found.complete_to = len(self._waiting[0]) - 1 if self._waiting else self._most
        if found.failure is not None:
            found.waiting = 0
            self.search.show(found)
        return found

    @property
    def _most(self) -> int:
        return self.faults_max + self.delays_max

    def _run(self, schedule: Schedule, escapes: Escapes) -> None:
        did_draw, one = self.search.draws_values, None
        with contextlib.suppress(NoOutcome):
            one = self.search.once(lambda: _Exploring(self, schedule), Draws(0), escapes)
        if self.search.draws_values and not did_draw:
            self._begin()  # the run up to the first draw has left states behind
            return
        if one is None:
            self.found.cut += 1
            self.found.runs += 1
            return
        self.found.add(one)
        if one.broken is not None:
            self.found.failure = self.found.first = one

    def is_seen(self, world: World, budget: Budget) -> bool:
        """Return whether as much was explored from this state; from now on it is."""
        if self.found.opaque:
            return False
        try:
            state = fingerprint(world, world.the_job)
        except Opaque as opaque:
            self.found.opaque = str(opaque)
            return False
        known = self._seen.setdefault(state, [])
        if any(faults >= budget[0] and delays >= budget[1] for faults, delays in known):
            return True
        known.append(budget)
        return False

    def note(self, schedule: Schedule) -> None:
        """Let a schedule be run later."""
        self._waiting.append(schedule)


class _Exploring:
    """Follows one schedule, and notes behind its end what could deviate."""

    def __init__(self, exploration: Exploration, schedule: Schedule) -> None:
        self._exploration, self._schedule = exploration, schedule
        self._next = 0
        faults = sum(one.is_fault for one in schedule)
        self._left = (
            exploration.faults_max - faults,
            exploration.delays_max - (len(schedule) - faults),
        )

    def at(self, moment: Moment) -> Sequence[Deviation]:
        """Return what the schedule has; behind its end, all that could be is noted for later."""
        assert isinstance(moment, World)
        if self._next < len(self._schedule):
            due = self._schedule[self._next]
            if due.at != moment.at:
                return ()
            self._next += 1
            return (due,)
        if self._exploration.is_seen(moment, self._left):
            raise NoOutcome
        faults, delays = self._left
        for kind in self._exploration.search.kinds:
            if (delays if kind in ORDERS else faults) > 0:
                for which in range(moment.options(kind)):
                    deviation = Deviation(moment.at, kind, which)
                    self._exploration.note((*self._schedule, deviation))
        return ()
