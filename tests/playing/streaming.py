"""The commits of batches: each driver of `StreamingQuery` commits by a `BatchCommit` at a
`NotedTarget`, and so does each of `RecordedAfterwards`, whose effect is a function's.

Spark and the target are played. A step that was left behind is done by the place as it was then.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final
from unittest import mock

from epochgate.fsm.machine import Machine
from epochgate.models.closed.streaming import StreamingQuery
from epochgate.models.closed.surroundings.query_table import (
    COPIED,
    DROPPED,
    MOVED_AWAY,
    SET_BACK,
    WIPED,
)
from epochgate.models.closed.surroundings.streaming import (
    CALLED,
    DOWN,
    PLANNED,
    RAISED,
    READY,
    TOLD,
)
from epochgate.models.query_batch import MOVED
from epochgate.runtime import RetryLater
from epochgate.runtime.limited import CallLate
from epochgate.spark.streaming import batch_commit
from epochgate.spark.streaming.batch_commit import PAUSE_MAX_S, PAUSE_S, BatchCommit
from epochgate.spark.streaming.errors import (
    BatchesAhead,
    BatchesMissing,
    BatchRefused,
    LocationEmptied,
    LocationMoved,
    OffsetsChanged,
)
from epochgate.spark.streaming.identity import BatchIdentity
from epochgate.spark.streaming.noted_target import NotedTarget
from tests.playing.gates import WELL, Lie, Process, gated, the_truth
from tests.playing.stage import Act
from tests.playing.store import DENY, HANG, LOSE
from tests.playing.targets import Location, Table

UNHEARD: Final = "unheard"
"""The outcome of a step that is done, and whose answer is lost."""
APPLIED: Final = "applied"
"""A batch has taken effect, and its driver is still to hear of it."""


class StruckPlace(NotedTarget):
    """The place of a batch, whose steps end as the schedule tells."""

    def __init__(self, world: Batches, driver: Driver) -> None:
        self._world, self._driver = world, driver
        self._batch, self._offsets, self._name = (
            driver.batch,
            driver.offsets,
            f"query{driver.query}",
        )
        self.is_left = False
        """A step of it was left behind."""
        where = f"place{driver.place}", f"offsets{driver.offsets}"
        identity = BatchIdentity(self._name, driver.batch, *where)
        super().__init__(world.table, world.table, identity, self._show)

    def look(self) -> tuple[int, int, int]:
        self._driver.looks += 1
        self._strike("look")
        return super().look()

    def note(self) -> None:
        self._strike("note")
        super().note()
        self._lose()

    def apply(self) -> bool:
        self._strike("apply")
        return super().apply()

    def record(self) -> None:
        self._strike("record")
        super().record()
        self._lose()

    def sweep(self) -> None:
        self._strike("sweep")
        super().sweep()
        self._lose()

    def _show(self, own: int) -> bool:
        table, carries = self._world.table, bool(self._world.system.carried)
        if carries and table.number(self._name) != own:
            raise RetryLater("others came before")
        table.numbers[self._name] = own + carries
        table.effects[self._batch] = min(2, table.effects[self._batch] + 1)
        table.offsets[self._batch] = self._offsets
        if not self.is_left:
            self._driver.stand(APPLIED, ())
            self._strike("")
        return carries

    def _lose(self) -> None:
        if not self.is_left and self._driver.outcome == UNHEARD:
            raise RetryLater("the step was done, and its answer is lost")

    def _strike(self, step: str) -> None:
        outcome = WELL if self.is_left else self._driver.outcome
        if outcome == LOSE:
            raise RetryLater("the answer is lost")
        if outcome == DENY:
            raise OSError("the step fails")
        if outcome == HANG:
            self.is_left = True
            if step != "look":
                self._driver.left = getattr(self, step)
            raise CallLate("the step does not end")


class Driver(Process):
    """A process that drives the query."""

    def __init__(self, world: Batches) -> None:
        super().__init__()
        self._world, self.state = world, DOWN
        self.place = self.query = self.batch = self.offsets = self.looks = 0
        self.pauses: list[float] = []
        self.left: Callable[[], object] | None = None
        """A step that was left behind."""
        self._made()

    def _made(self) -> BatchCommit:
        self.target = StruckPlace(self._world, self)
        carried, retries = self._world.system.carried, self._world.system.batch_retries
        handles = gated(self, self._world.lie, batch_retries=retries)
        with mock.patch.object(batch_commit, "Handles", handles):
            return BatchCommit(self.target, self.pauses.append, calls_user=not carried)

    def commit(self, accepts: int) -> None:
        """Let Spark call `commit`."""
        self.looks = 0
        self.pauses.clear()
        shell = self._made()
        self.call(lambda: shell.commit(self.batch, accepts))

    def abort(self) -> None:
        """Let Spark call `abort`."""
        self._made().abort()

    def arrive(self) -> None:
        """Let the step that was left behind be done."""
        assert self.left is not None, "a step was left behind"
        with contextlib.suppress(RetryLater):
            self.left()
        self.left = None


class Batches:
    """The world of `StreamingQuery`."""

    def __init__(self, system: StreamingQuery, lie: Lie = the_truth) -> None:
        self.system, self.lie, self.table = system, lie, Table(system.K)
        self.locations = [Location() for _ in range(system.locations)]
        self.drivers = [Driver(self) for _ in range(system.drivers)]
        self.act = self.failures = 0

    def machines(self) -> Iterator[tuple[str, tuple[int, ...], Machine]]:
        for number, driver in enumerate(self.drivers):
            yield "query_batch", (number,), driver.system.query_batch

    def facts(self) -> Iterator[tuple[str, Any, Any]]:
        told, real = self.system.table, self.table
        yield "what is there how often", list(told.effects), real.effects
        yield "with which offsets", list(told.shown), real.offsets
        yield "what is staged", {b for b in range(self.system.K) if told.is_staged[b]}, real.staged
        for query in range(self.system.queries):
            name = f"query{query}"
            yield f"the number of {name}", told.number[query], real.known(name)
            note = real.notes.get(name)
            yield f"whether {name} is noted", told.is_noted[query], note is not None
            if note is not None and note.offsets:
                yield (
                    f"what is noted of {name}",
                    (f"place{told.noted_place[query]}", f"offsets{told.noted_offsets[query]}"),
                    (note.location, note.offsets[str(max(map(int, note.offsets)))]),
                )
        for place, location in enumerate(self.locations):
            model = self.system.location[place]
            logs = model.query, model.committed, list(model.offsets)[: model.planned]
            yield f"place {place}", logs, (location.query, location.committed, location.offsets)
        for number, driver in enumerate(self.drivers):
            one = self.system.driver[number]
            yield (
                f"driver {number}",
                (one.state, one.place, one.query, one.batch, one.offsets),
                (driver.state, driver.place, driver.query, driver.batch, driver.offsets),
            )

    def close(self) -> None:
        """End what is under way."""
        for driver in self.drivers:
            driver.kill()

    def may_fail(self) -> bool:
        """Return whether the closed system allows another failure."""
        return self.failures < self.system.F

    @property
    def home(self) -> int:
        """Return where the query is started."""
        return 1 if self.act == MOVED_AWAY else 0

    def lives_at(self, place: int) -> bool:
        """Return whether a driver is there."""
        return any(one.state != DOWN and one.place == place for one in self.drivers)

    def may_start(self, number: int) -> bool:
        is_down = self.drivers[number].state == DOWN
        is_free = not self.lives_at(self.home) or self.may_fail()
        return is_down and is_free and self.locations[self.home].committed < self.system.K

    def may_start_copy(self, number: int) -> bool:
        copy, is_down = self.locations[1], self.drivers[number].state == DOWN
        is_open = copy.committed < self.system.K and not copy.is_given_up
        return is_down and self.act == COPIED and is_open and not self.lives_at(1)

    def start(self, number: int) -> None:
        self.enter(number, self.home)

    def start_copy(self, number: int) -> None:
        self.enter(number, 1)

    def enter(self, number: int, place: int) -> None:
        """A driver goes on at a location."""
        self.failures += self.lives_at(place)
        driver, location = self.drivers[number], self.locations[place]
        driver.place, driver.query, driver.batch = place, location.query, location.committed
        driver.state = READY
        if len(location.offsets) > location.committed:
            driver.state, driver.offsets = PLANNED, location.offsets[driver.batch]

    def plan(self, number: int) -> None:
        driver = self.drivers[number]
        location = self.locations[driver.place]
        if len(location.offsets) != driver.batch:
            self.leave(number)
            return
        location.offsets.append(location.history)
        driver.state, driver.offsets = PLANNED, location.history

    def spill(self, number: int) -> None:
        self.failures += 1
        self.table.staged.add(self.drivers[number].batch)

    def run(self, number: int) -> None:
        driver = self.drivers[number]
        driver.state = CALLED
        is_moved = self.act == MOVED_AWAY and driver.place == 1
        driver.commit(MOVED if is_moved else self.system.accepts)
        self.look(number)

    def answer(self, number: int, outcome: str = WELL) -> None:
        """Let a step end."""
        self.drivers[number].answer(outcome)
        self.look(number)

    def fail(self, number: int, outcome: str) -> None:
        """Let a step end by a failure."""
        self.failures += 1
        self.answer(number, outcome)

    def look(self, number: int) -> None:
        """Let Spark go on where `commit` has ended."""
        driver = self.drivers[number]
        paused = [min(PAUSE_S * 2**tries, PAUSE_MAX_S) for tries in range(1, driver.looks)]
        assert driver.pauses == paused, "each look pauses longer than the one before"
        if driver.is_busy:
            return
        if driver.error is None:
            driver.state = TOLD
        elif isinstance(driver.error, BatchRefused):
            assert type(driver.error) is self.refusal(driver), "it is said why"
            driver.state = RAISED
            self.locations[1].is_given_up |= driver.place == 1
        elif isinstance(driver.error, (RetryLater, CallLate, OSError)):
            driver.state = RAISED
        else:
            raise driver.error

    def refusal(self, driver: Driver) -> type[BatchRefused]:
        """Return why the batch of a driver is refused."""
        name, place = f"query{driver.query}", f"place{driver.place}"
        number, notes = self.table.known(name), self.table.read()
        if notes.elsewhere(name, place) and self.home != 1:
            return LocationMoved
        if notes.before(name, place):
            return LocationEmptied
        if number < driver.batch:
            return BatchesMissing
        return BatchesAhead if number > driver.batch + 1 else OffsetsChanged

    def log(self, number: int) -> None:
        driver = self.drivers[number]
        location = self.locations[driver.place]
        if location.committed != driver.batch:
            self.leave(number)
            return
        location.committed += 1
        driver.state, driver.batch, driver.offsets = READY, driver.batch + 1, 0

    def abort(self, number: int) -> None:
        self.drivers[number].abort()
        self.leave(number)

    def leave(self, number: int) -> None:
        """The process ends; a step that it has left behind stays."""
        ended = self.drivers[number]
        ended.kill()
        self.drivers[number] = Driver(self)
        self.drivers[number].left = ended.left

    def die(self, number: int) -> None:
        self.failures += 1
        self.leave(number)

    def may_act(self) -> bool:
        is_used = bool(self.locations[0].offsets) or "query0" in self.table.notes
        return self.system.acts > 0 and self.act == 0 and is_used

    def is_quiet(self) -> bool:
        is_left = any(driver.left is not None for driver in self.drivers)
        return self.may_act() and not self.lives_at(0) and not is_left

    def copy(self, act: int = COPIED) -> None:
        self.act, (old, new) = act, self.locations
        new.offsets, new.committed, new.history = [*old.offsets], old.committed, 1

    def wipe(self) -> None:
        self.act, location = WIPED, self.locations[0]
        location.query, location.history = 1, 2
        location.committed, location.offsets = 0, []

    def set_back(self) -> None:
        self.act, location = SET_BACK, self.locations[0]
        location.history, location.committed, location.offsets = 3, 0, []

    def drop(self) -> None:
        self.act = DROPPED
        self.table.drop()

    def asks(self, number: int) -> str | None:
        return self.drivers[number].asked

    def may_hang(self, number: int) -> bool:
        asked, driver = self.asks(number), self.drivers[number]
        has_limit = asked != "apply" or self.system.carried > 0
        is_asked = asked not in (None, APPLIED) and has_limit
        return is_asked and driver.left is None and self.may_fail()

    acts: ClassVar[Mapping[str, Act]] = {
        "driver.start": Act(start, may_start, "the driver runs, or another one does"),
        "driver.start_copy": Act(start_copy, may_start_copy, "there is no copy to go on with"),
        "driver.plan": Act(
            plan,
            lambda world, n: (
                world.drivers[n].state == READY and world.drivers[n].batch < world.system.K
            ),
            "a batch is under way, or none is left",
        ),
        "driver.spill": Act(
            spill,
            lambda world, n: world.drivers[n].state == PLANNED and world.may_fail(),
            "no task runs",
        ),
        "driver.run": Act(run, lambda world, n: world.drivers[n].state == PLANNED, "no task runs"),
        "driver.step": Act(
            answer,
            lambda world, n: world.asks(n) not in (None, APPLIED),
            "the commit asks for nothing",
        ),
        "driver.answer": Act(
            answer, lambda world, n: world.asks(n) == APPLIED, "nothing has taken effect"
        ),
        "driver.lose": Act(
            lambda world, n: world.fail(n, LOSE),
            lambda world, n: world.asks(n) and world.may_fail(),
            "the commit asks for nothing",
        ),
        "driver.unheard": Act(
            lambda world, n: world.fail(n, UNHEARD),
            lambda world, n: world.asks(n) in ("note", "record", "sweep") and world.may_fail(),
            "nothing is being written",
        ),
        "driver.fail": Act(
            lambda world, n: world.fail(n, DENY),
            lambda world, n: world.asks(n) and world.may_fail(),
            "the commit asks for nothing",
        ),
        "driver.hang": Act(
            lambda world, n: world.fail(n, HANG), may_hang, "no step is under way that has a limit"
        ),
        "driver.arrive": Act(
            lambda world, n: world.drivers[n].arrive(),
            lambda world, n: world.drivers[n].left is not None,
            "no step was left behind",
        ),
        "driver.log": Act(
            log, lambda world, n: world.drivers[n].state == TOLD, "commit has not returned"
        ),
        "driver.abort": Act(
            abort, lambda world, n: world.drivers[n].state == RAISED, "commit has not raised"
        ),
        "driver.die": Act(
            die,
            lambda world, n: world.drivers[n].state != DOWN and world.may_fail(),
            "no process runs",
        ),
        "user.copy": Act(copy, may_act, "nothing is there, or something was done"),
        "user.move": Act(
            lambda world: world.copy(MOVED_AWAY), is_quiet, "a driver is there, or was"
        ),
        "user.wipe": Act(wipe, is_quiet, "a driver is there, or was"),
        "user.set_back": Act(set_back, is_quiet, "a driver is there, or was"),
        "user.drop": Act(drop, may_act, "nothing is there, or something was done"),
    }
