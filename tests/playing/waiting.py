"""The stage on which steps begin while the events of earlier ones wait in the queue of a driver.

A step of the surroundings acts at once, in the closed system and beside the shells, and what it
tells the driver waits on both sides. A step that is an event of the driver itself waits as a whole:
it is taken in its turn, or left out on both sides where it is not possible any more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from epochgate.fsm.checker.engines.interpreted import FAULTS
from epochgate.fsm.checker.schedule import ClaimBroken, told
from epochgate.fsm.closed import ClosedSystem
from epochgate.fsm.run_to_completion import Call
from epochgate.runtime.testing.playing import Diverged
from tests.playing.stage import GatedStage
from tests.playing.swarm import kind


class QueuedWorld:
    """A world whose shells hear in turns what happens to them."""

    OUTSIDE: ClassVar[Collection[str]] = ()
    """Steps that act outside of the driver, such as `reader.hear`; the others are its events."""
    LATER: ClassVar[Collection[str]] = ()
    """Triggers by which an effect is answered in an event of its own."""

    def __init__(self) -> None:
        self.queue: deque[Callable[[], None]] = deque()

    def tell(self, call: Callable[..., None], *arguments: Any) -> None:
        """Let the driver hear something in its turn."""
        self.queue.append(partial(self.hear, call, *arguments))

    def hear(self, call: Callable[..., None], *arguments: Any) -> None:
        """Process an event of the driver."""
        call(*arguments)

    def demand(self, event: Call | None) -> None:
        """Let the model demand what the event in its turn has to lead to; nothing while it waits,
        since another event may come first.
        """

    def close(self) -> None:
        """Nothing is under way between two events."""


@dataclass(frozen=True)
class Event:
    """An event that waits: a trigger in the model, and a call of the shells."""

    name: str
    here: Call
    there: Callable[[], None]


class WaitingStage(GatedStage):
    """Plays step by step with `take`, and event by event with `begin` and `process`."""

    def __init__(self, system: ClosedSystem, world: Any) -> None:
        super().__init__(system, world)
        self._queued: QueuedWorld = world
        self.waiting: deque[str | Event] = deque()
        self._instances = dict(zip(self.steps, system.step_instances(), strict=True))

    def take(self, step: str) -> None:
        self.machines.take(step)
        self._act(step)
        while self._queued.queue:
            self._queued.queue.popleft()()
        self._compare(step)

    def begin(self, step: str) -> None:
        """Let the surroundings act. Raises Diverged."""
        if kind(step) not in self._queued.OUTSIDE:
            self.waiting.append(step)
            return
        self._fire(step)
        self._queued.demand(None)
        here = [*self._system.outer_queue]
        self._system.outer_queue.clear()
        self._act(step)
        self._wait(step, here)
        self._compare(step)

    def process(self) -> None:
        """Process the oldest of what waits. Raises ClaimBroken and Diverged."""
        waiting = self.waiting.popleft()
        if isinstance(waiting, Event):
            fire, call = waiting.here
            self._queued.demand(waiting.here)
            later = self._run(partial(fire, *call))
            waiting.there()
            self._wait(waiting.name, later)
        elif waiting in self.possible():
            later = self._run(partial(self._fire, waiting))
            self._act(waiting)
            self._wait(waiting, later)
        self._compare(f"{waiting} in its turn")
        if not self.waiting:
            self.machines.expect_claims()

    def _act(self, step: str) -> None:
        act, index = self._acts[step]
        act.do(self.world, *index)

    def _fire(self, step: str) -> None:
        known, machine = self._instances[step]
        getattr(machine, known.trigger)()

    def _run(self, event: Callable[[], Any]) -> list[Call]:
        """Run an event of the model; what its effects lead to in later events."""
        later = list[Call]()
        try:
            event()
            self._system.settle(only_effects=True)
            while self._system.outer_queue:
                fire, call = self._system.outer_queue.popleft()
                if fire.__name__ in self._queued.LATER:
                    later.append((fire, call))
                    continue
                fire(*call)
                self._system.settle(only_effects=True)
            self.machines.words()  # finds what has left its bound
        except FAULTS as fault:
            raise ClaimBroken(told(fault)) from fault
        return later

    def _wait(self, name: str, here: list[Call]) -> None:
        there = [*self._queued.queue]
        self._queued.queue.clear()
        if len(here) != len(there):
            raise Diverged(f"{name} leads to {len(here)} events in the model, really {len(there)}")
        self.waiting += [Event(name, *pair) for pair in zip(here, there, strict=True)]

    def _compare(self, what: str) -> None:
        for different in self.differences():
            raise Diverged(f"after {what}: {different}")
