"""The plans of a query's batches: each driver of `PlannedQuery` has a `Planning`, with a source's
enumerator, over one store. Spark is played: its two logs, and what it asks when.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final
from unittest import mock

from epochgate.fsm.machine import Machine
from epochgate.models.closed.planning import PlannedQuery
from epochgate.models.closed.surroundings.planning import (
    ASKING,
    GONE,
    READING,
    RUNNING,
    TOLD,
    UP,
)
from epochgate.runtime.entries.encoding import opened
from epochgate.runtime.limited import CallLate
from epochgate.runtime.source.batches import planning
from epochgate.runtime.source.batches.enumerating import BatchEnumerator
from epochgate.runtime.source.batches.errors import PlanForgotten, PlanNotMade, PlanOvertaken
from epochgate.runtime.source.batches.planned import PlannedBatch, SplitFilter
from epochgate.runtime.source.batches.planning import Planning, Taken
from tests.playing.gates import Lie, Process, gated, the_truth
from tests.playing.stage import Act
from tests.playing.store import DENY, HANG, STORE_ACTS, Clients, Connection, Kept
from tests.runtime.steering.numbered import Numbers, are_at_least

PLACE = "the place of the plans"
REFUSED = RuntimeError("the schedule lets the user's code raise")
ERASE: Final = "erase"
"""The outcome of a removal that has removed something, and goes on later or fails."""


class Struck(BatchEnumerator):
    """An enumerator of numbers that fails where the schedule says so."""

    process: Process

    def take(self, by: SplitFilter | None) -> Taken:
        taken = super().take(by)
        if self.process.outcome == DENY:
            raise REFUSED
        return taken


class Plan(Connection):
    """A connection that stands still behind the removal of a plan."""

    _process: Driver

    def delete(self, key: str) -> None:
        was_there = key in self._kept.entries
        super().delete(key)
        if was_there and self._process.outcome == ERASE:
            self._process.stand_again()


class Driver(Process):
    """A process that drives the query."""

    connection: Plan

    def __init__(self, world: Plans) -> None:
        super().__init__()
        self.connection, self._world = Plan(world.kept, self), world
        self.stood: tuple[str, tuple[Any, ...]] = "", ()
        """The last question."""
        self.has_swept = False
        """All that was to be removed is, and the removal has not ended."""
        bounds = {n: world.system.constants[n] for n in ("retained", "entry_retries")}
        with mock.patch.object(planning, "Handles", gated(self, world.lie, **bounds)):
            self.shell = Planning(
                *(self.connection, PLACE, "stream", self._made),
                *(self._remove_left, self._newest_filter),
            )
        self.state, self.batch = GONE, 0
        self.found: PlannedBatch | None = None
        """The plan by which the tasks read."""

    def stand(self, message: str, arguments: tuple[Any, ...]) -> None:
        self.stood = message, arguments
        self.has_swept = self.has_swept and message == "forget"
        super().stand(message, arguments)

    def stand_again(self) -> None:
        """Stand in the midst of what was asked last."""
        self.stand(*self.stood)

    def _made(self, behind: tuple[int, Any] | None) -> Struck:
        if self.outcome == DENY:
            raise REFUSED
        enumerator = Struck(self._world.source, behind, lambda taken: False, are_at_least)
        enumerator.process = self
        return enumerator

    def _remove_left(self, states: Iterator[tuple[int, Any]]) -> None:
        self._strike()
        list(states)
        if self.outcome == ERASE:
            self.has_swept = True
            self.stand_again()
            self._strike()

    def _strike(self) -> None:
        if self.outcome == DENY:
            raise REFUSED
        if self.outcome == HANG:
            raise CallLate("the removal does not end")

    def _newest_filter(self) -> SplitFilter:
        if self.outcome == DENY:
            raise REFUSED
        return SplitFilter(self._world.version, "", {"least": min(self._world.version, 1)})


class Plans(Clients):
    """The world of `PlannedQuery`."""

    never_denied: ClassVar[tuple[str, ...]] = ()

    def __init__(self, system: PlannedQuery, lie: Lie = the_truth) -> None:
        self.system, self.lie, self.kept, self.source = system, lie, Kept(), Numbers(0)
        self.processes = [Driver(self) for _ in range(system.drivers)]
        self.version = self.logged = self.committed = self.starts = self.failures = 0

    def machines(self) -> Iterator[tuple[str, tuple[int, ...], Machine]]:
        for number, process in enumerate(self.processes):
            yield "batch_plan", (number,), process.system.batch_plan[0]

    def facts(self) -> Iterator[tuple[str, Any, Any]]:
        stream = self.system.stream
        there = {batch_of(key): opened(data) for key, data in self.kept.entries.items()}
        for batch in range(1, self.system.slots):
            yield f"a plan of batch {batch}", stream.is_there[batch], batch in there
            if batch in there:
                told = stream.first[batch], stream.last[batch], stream.filtered[batch]
                plan = PlannedBatch.from_entry(there[batch])
                yield f"the plan of batch {batch}", split_between(*told), split_by(plan)
        for number, process in enumerate(self.processes):
            driver = self.system.driver[number]
            yield f"driver {number}", (driver.state, driver.batch), (process.state, process.batch)
            if process.found is not None:
                batch = process.batch
                seen = stream.seen_first, stream.seen_last, stream.seen_version
                read = split_between(*(each[batch] for each in seen))
                yield f"what driver {number} reads", read, split_by(process.found)

    def look(self, number: int) -> None:
        """Let Spark go on where its question has an answer."""
        process = self.processes[number]
        if process.is_busy:
            return
        error, asked = process.error, process.state
        if error is None and asked == ASKING:
            process.state = TOLD if process.result else UP
        elif error is None:
            process.found = process.result[0]
        elif isinstance(error, (PlanOvertaken, PlanForgotten, PlanNotMade)):
            batch = process.batch + (asked == ASKING)
            told = [PLACE, batch, *([self._newest()] if isinstance(error, PlanOvertaken) else [])]
            assert [*error.args[: len(told)]] == told, f"{error.args} is not of {told}"
            if isinstance(error, PlanNotMade) and asked == ASKING:
                process.state = UP
            else:
                self.stop(number)
        else:
            raise error

    def _newest(self) -> int:
        """The newest batch with a plan."""
        return max(map(batch_of, self.kept.entries))

    def forgotten(self, number: int) -> list[int]:
        """The batches whose plans the process is to remove, and that are there."""
        process = self.processes[number]
        last = process.arguments[1] if process.asked == "forget" else 0
        return [batch for batch in map(batch_of, self.kept.entries) if batch <= last]

    def may_erase(self, number: int) -> bool:
        process = self.processes[number]
        return process.asked == "forget" and not process.has_swept

    def is_apart(self, number: int) -> bool:
        """Return whether a plan that is to go has come since the shell has listed them: it leaves
        that one, as one that comes after the removal.
        """
        listed = self.processes[number].shell._listed
        return any(batch not in listed for batch in self.forgotten(number))

    def stop(self, number: int) -> None:
        self.replace(number, Driver(self))

    def start(self, number: int) -> None:
        self.starts += 1
        process = self.processes[number]
        process.state = TOLD if self.logged > self.committed else UP
        process.batch = self.committed

    def ask(self, number: int) -> None:
        process = self.processes[number]
        process.state = ASKING
        process.call(lambda: process.shell.has_batch(process.batch + 1))
        self.look(number)

    def log(self, number: int) -> None:
        process = self.processes[number]
        is_next, is_old = self.logged == process.batch, not process.system.batch_plan[0].has_maker
        is_mine = self.logged == process.batch + 1 and self.committed == process.batch and is_old
        if is_next or is_mine:
            process.state, process.batch = RUNNING, process.batch + 1
            self.logged = max(self.logged, process.batch)
        else:
            self.stop(number)

    def work(self, number: int) -> None:
        process = self.processes[number]
        process.state = READING
        process.call(lambda: process.shell.batches(process.batch - 1, process.batch))
        self.look(number)

    def commit(self, number: int) -> None:
        process = self.processes[number]
        if self.committed < process.batch:
            self.committed, process.found, process.state = process.batch, None, UP
        else:
            self.stop(number)

    def die(self, number: int) -> None:
        self.failures += 1
        self.stop(number)

    def appear(self) -> None:
        self.source.there += 1

    def update(self) -> None:
        self.version += 1

    acts: ClassVar[Mapping[str, Act]] = {
        **STORE_ACTS,
        "client.answer": replace(STORE_ACTS["client.answer"], is_apart=is_apart),
        "client.erase": Act(
            lambda world, n: world.answer(n, ERASE),
            may_erase,
            "nothing is being removed",
            is_apart,
        ),
        "stream.appear": Act(
            appear, lambda world: world.source.there < world.system.S, "all splits are there"
        ),
        "stream.update": Act(
            update, lambda world: world.version < world.system.versions, "no change is left"
        ),
        "driver.start": Act(
            start,
            lambda world, n: world.is_(n, GONE) and world.starts < world.system.R,
            "the process runs, or no start is left",
        ),
        "driver.ask": Act(
            ask,
            lambda world, n: world.is_(n, UP) and world.processes[n].batch < world.system.batches,
            "the process does something else",
        ),
        "driver.log": Act(log, lambda world, n: world.is_(n, TOLD), "the process has no batch"),
        "driver.work": Act(work, lambda world, n: world.is_(n, RUNNING), "nothing was logged"),
        "driver.commit": Act(
            commit, lambda world, n: world.processes[n].found is not None, "nothing was read"
        ),
        "driver.die": Act(
            die, lambda world, n: not world.is_(n, GONE) and world.may_fail(), "no process runs"
        ),
    }

    def is_(self, number: int, *states: str) -> bool:
        return self.processes[number].state in states


def batch_of(key: str) -> int:
    """The batch of an entry."""
    return int(key[-20:-5])


def split_between(first: int, last: int, version: int) -> tuple[list[str], list[str], int]:
    """Return what a plan of the splits behind `first` up to `last` has and prunes, and by which
    filter.
    """
    numbers = range(first, last)
    pruned = [str(number) for number in numbers if version and number == 0]
    return [str(n) for n in numbers if str(n) not in pruned], pruned, version


def split_by(plan: PlannedBatch) -> tuple[list[str], list[str], int]:
    """Return what a plan has and prunes, and by which filter."""
    assert plan.filter is not None
    return [each.split_id for each in plan.splits], plan.pruned, plan.filter.version
