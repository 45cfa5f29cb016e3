"""Fault points: every call and every write of a sink under test, counted, and one of them struck.

A driver's committer and a task's writer are actors, each with a thread of its own as in production.
What an actor does passes through `Stage.reach`, which counts it and, at the point of the schedule's
fault, lets the actor die there, fail, lose the answer, or stop for a while as a process does that
the operating system has put aside. One actor moves at a time, so a schedule repeats exactly.
"""

from __future__ import annotations

import contextlib
import queue
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from epochgate.runtime.api.raised import RaisedByTest

HANGS_AFTER_S: Final = 60.0
STEP: Final = re.compile(r"commit\(|.*\.process\(")
"""The calls of a task's committer, and of the operators around it."""
PATIENCE_S: Final = 0.5
"""After that time an actor that does not move is taken to wait for one that is paused."""


class SimulatedDeath(RaisedByTest):
    """An actor's process is gone; a `BaseException`, so that no handler of a sink revives it."""

    def __init__(self, actor: Actor) -> None:
        super().__init__(f"{actor.name} has died")
        self.actor = actor


class Paused(RaisedByTest):
    """An actor has stopped in the middle of a call, and may go on later."""

    def __init__(self, actor: Actor) -> None:
        super().__init__(f"{actor.name} is paused")
        self.actor = actor


class CallHangs(RaisedByTest):
    """A call of the sink does not return."""


class Kind(Enum):
    """The kinds of strikes at a fault point."""

    DIE = "dies before"
    TEAR = "dies in the middle of"
    FAIL = "gets an error instead of"
    LOSE = "does not get the answer of"
    PAUSE = "stops for a while before"


class Wake(Enum):
    """The moment at which a paused actor goes on."""

    BEGUN = "as soon as its successor has begun"
    MOVED = "once its successor has prepared or committed a checkpoint"
    ENDED = "when the job has ended"


@dataclass(frozen=True)
class Fault:
    """Strikes at the `at`-th point, counted from 0.

    wake: of a pause. takes_driver: the driver dies at the same time, and its task lives on.
    """

    at: int
    kind: Kind
    wake: Wake | None = None
    takes_driver: bool = False


@dataclass(frozen=True)
class Point:
    """One call or write that was reached. is_call: of the sink API, and not of its store."""

    actor: str
    is_driver: bool
    call: str
    operation: str
    is_call: bool
    can_tear: bool

    @property
    def is_of_step(self) -> bool:
        """True if it is in a task, in the step between its writer and the driver's committer."""
        return not self.is_driver and bool(STEP.match(self.call))

    def __str__(self) -> str:
        return self.operation if self.is_call else f"`{self.operation}` in {self.call}"


class Actor:
    """The committer of one start, or the writer of one attempt.

    subtask: of a writer. owner: the sink that it was made by.
    """

    def __init__(
        self, stage: Stage, name: str, *, subtask: int | None = None, owner: object = None
    ) -> None:
        self.name, self.subtask, self.owner = name, subtask, owner
        self.is_dead = self.is_paused = self.is_watched = False
        self.at_death: list[Callable[[], None]] = []
        self.call_name = ""
        self.close: Callable[[], None] = lambda: None
        self._stage = stage
        stage.actors.append(self)
        self._requests: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self._outcomes: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._resumed = threading.Event()
        self._lane: threading.Thread | None = None

    @property
    def is_driver(self) -> bool:
        """True if this is a committer."""
        return self.subtask is None

    @property
    def is_gone(self) -> bool:
        """True if the job has nothing more to do with it."""
        return self.is_dead or self.is_paused

    def call(self, name: str, function: Callable[[], Any], *, in_lane: bool = True) -> Any:
        """Call the sink as this actor; raises what it raises, SimulatedDeath or Paused.

        In a schedule with a pause each actor has threads: one, `in_lane`, for all calls but the
        first. Elsewhere there is nothing to be done at the same time, and no thread is changed.
        """
        self.call_name = name
        if not self._stage.has_pause:
            with self._stage.acting(self):
                result = function()
            if self.is_dead:  # on a thread of the sink's own
                raise SimulatedDeath(self)
            return result
        if in_lane:
            if self._lane is None:
                self._lane = threading.Thread(target=self._work, name=self.name, daemon=True)
                self._lane.start()
            self._requests.put(function)
        else:
            threading.Thread(target=self._once, args=(function,), daemon=True).start()
        return self._await()

    def _work(self) -> None:
        while (function := self._requests.get()) is not None:
            self._once(function)

    def _once(self, function: Callable[[], Any]) -> None:
        with self._stage.acting(self):
            try:
                outcome: tuple[str, Any] = ("returned", function())
            except BaseException as error:  # noqa: BLE001  # it is raised again where it was asked for
                outcome = ("raised", error)
        self._outcomes.put(outcome)

    def _await(self) -> Any:
        waited_s = 0.0
        while True:
            try:
                how, value = self._outcomes.get(timeout=PATIENCE_S)
                break
            except queue.Empty:
                waited_s += PATIENCE_S
            if not self._stage.wake_one(self) and waited_s >= HANGS_AFTER_S:
                raise CallHangs(f"{self.call_name} of {self.name} does not return")
        if how == "paused":
            raise Paused(self)
        if self.is_dead:
            raise SimulatedDeath(self)
        if how == "raised":
            raise value
        return value

    def pause(self) -> None:
        """Stop here until `resume`; on the actor's own thread."""
        self.is_paused = True
        self._outcomes.put(("paused", None))
        self._resumed.wait()

    def resume(self) -> str:
        """Let a paused actor finish its call; returns how that ended, in words."""
        self.is_paused, self.is_watched = False, True
        self._resumed.set()
        try:
            how, value = self._outcomes.get(timeout=HANGS_AFTER_S)
        except queue.Empty:
            raise CallHangs(f"{self.call_name} of {self.name} does not return") from None
        if how == "raised":
            return f"raises {type(value).__name__}: {value}"
        if hasattr(value, "close"):  # it was being made
            self.close = value.close
        return "returns"

    def die(self) -> None:
        """Drop all it holds, as the operating system does; on the actor's own thread."""
        self.is_dead = True
        for release in reversed(self.at_death):
            release()
        self.at_death.clear()

    def kill(self) -> None:
        """Die between two calls."""
        if self.is_gone:
            return
        self.is_dead = True
        if self.at_death:
            with contextlib.suppress(SimulatedDeath):
                self.call("its end", self.die)

    def leave(self) -> None:
        """Release what it holds, and end its thread."""
        self.kill()
        self._requests.put(None)


class Stage:
    """One schedule on the way: the points reached, the fault, and who acts.

    error: what a client raises where nothing else is said. look: lets a reader look before a point;
    at all of them, or only at those of actors that were paused before.
    """

    def __init__(
        self,
        fault: Fault | None,
        *,
        error: Callable[[], Exception],
        look: Callable[[Point], None],
        looks_always: bool,
    ) -> None:
        self.fault, self.points, self.struck = fault, list[Point](), False
        self.actors: list[Actor] = []
        self.zombies: list[Actor] = []
        self.story: list[str] = []
        self.has_pause = fault is not None and fault.kind is Kind.PAUSE
        self.wake: Callable[[Actor], None] = lambda zombie: None
        self.error, self._look, self._looks_always = error, look, looks_always
        self._local = threading.local()
        self._acting: list[Actor] = []

    @contextlib.contextmanager
    def acting(self, actor: Actor | None) -> Iterator[None]:
        """Make this thread's doings the actor's; none: the kit's own."""
        before = getattr(self._local, "actor", None)
        self._local.actor = actor
        if actor is not None:
            self._acting.append(actor)
        try:
            yield
        finally:
            self._local.actor = before
            if actor is not None:
                self._acting.remove(actor)

    def actor(self) -> Actor | None:
        """Return the actor on this thread: on one that a sink has started, the one that moves."""
        if hasattr(self._local, "actor") or threading.current_thread() is threading.main_thread():
            return getattr(self._local, "actor", None)
        moving = [actor for actor in self._acting if not actor.is_paused]
        return moving[-1] if moving else None

    def reach(
        self,
        actor: Actor,
        operation: str,
        do: Callable[[], Any],
        *,
        tear: Callable[[], Any] | None = None,
        error: Callable[[], Exception] | None = None,
        is_call: bool = False,
    ) -> Any:
        """Do what may fail, or what the fault says. Raises SimulatedDeath, and `error`."""
        if actor.is_dead:
            raise SimulatedDeath(actor)
        point = Point(
            actor.name, actor.is_driver, actor.call_name, operation, is_call, tear is not None
        )
        self.points.append(point)
        if self._looks_always or actor.is_watched:
            with self.acting(None):
                self._look(point)
        fault = self.fault
        if fault is None or fault.at != len(self.points) - 1:
            return do()
        self.struck = True
        self.story.append(f"* {actor.name} {fault.kind.value} {point}")
        return self._strike(actor, fault.kind, do, tear, error or self.error)

    def _strike(
        self,
        actor: Actor,
        kind: Kind,
        do: Callable[[], Any],
        tear: Callable[[], Any] | None,
        error: Callable[[], Exception],
    ) -> Any:
        if kind is Kind.PAUSE:
            actor.pause()
            return do()
        if kind is Kind.FAIL:
            raise error()
        if kind is Kind.LOSE:
            do()
            raise error()
        if kind is Kind.TEAR and tear is not None:
            tear()
        actor.die()
        raise SimulatedDeath(actor)

    def tell(self, line: str) -> None:
        """Add a step to what a person reads."""
        self.story.append(line)

    def wake_one(self, waiting: Actor) -> bool:
        """Let a paused actor go on that holds up another; False without any."""
        if not self.zombies:
            return False
        self.tell(f"{waiting.name} waits for {self.zombies[0].name}, which goes on")
        self.wake(self.zombies[0])
        return True
