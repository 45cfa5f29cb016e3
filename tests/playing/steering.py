"""The decisions for batches: each driver of `SteeredQuery` is a `Deciding`, over one store.

Spark is played: its two logs, and when it runs a batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar
from unittest import mock

from epochgate.fsm.machine import Machine
from epochgate.models.closed.steering import SteeredQuery
from epochgate.models.closed.surroundings.steering import DECIDING, GONE, RUNNING, UP
from epochgate.runtime.entries.encoding import opened
from epochgate.runtime.entries.numbered import Numbered
from epochgate.runtime.limited import CallLate
from epochgate.runtime.steering import deciding
from epochgate.runtime.steering.deciding import Deciding, Decision
from epochgate.runtime.steering.errors import (
    BatchOvertaken,
    ChoiceFailed,
    DecisionNotMade,
    VersionMissing,
)
from epochgate.runtime.steering.history import effective_from
from epochgate.runtime.steering.layout import versions_of
from tests.playing.gates import WELL, Lie, Process, gated, the_truth
from tests.playing.stage import Act
from tests.playing.store import HANG, STORE_ACTS, Clients, Connection, Kept

CONTROL, QUERY = "prices", "query"
REFUSALS = BatchOvertaken, ChoiceFailed, DecisionNotMade, VersionMissing
INITIAL = {"updates": 0}
"""What batches run with: how many updates there were."""


class HangingRemoval:
    """A removal that a shell makes does not end within its limit, where the schedule says so."""

    process: Process

    def _remove(self, batch: int) -> None:
        if self.process.outcome == HANG:
            raise CallLate("the removal does not end")
        super()._remove(batch)  # type: ignore[misc]  # it stands before a shell


class HangingDeciding(HangingRemoval, Deciding):
    """Decisions without a coordinator."""


class Driver(Process):
    """A process that drives the query."""

    at_once: ClassVar[frozenset[str]] = frozenset(("restore", "choose"))

    def __init__(self, world: Decisions) -> None:
        super().__init__()
        self.world, self.connection = world, Connection(world.kept, self)
        bounds = {n: world.system.constants[n] for n in ("retained", "entry_retries")}
        with mock.patch.object(deciding, "Handles", gated(self, world.lie, **bounds)):
            self.shell = self.made()
        self.shell.process = self
        self.state, self.batch, self.worked = GONE, 0, 0
        self.decision: Decision | None = None
        """What the function of the query was called with."""

    def made(self) -> Any:
        """The shell."""
        where = self.connection, "the store", CONTROL, QUERY
        return HangingDeciding(*where, dict(INITIAL), lambda: 0.0)


class Decisions(Clients):
    """The world of `SteeredQuery`."""

    never_denied: ClassVar[tuple[str, ...]] = ()
    driver: ClassVar[type[Driver]] = Driver

    def __init__(self, system: SteeredQuery, lie: Lie = the_truth) -> None:
        self.system, self.lie, self.kept = system, lie, Kept()
        self.outside = Connection(self.kept, Process())
        """The store as a user sees it, whom nothing fails."""
        self.processes = [self.driver(self) for _ in range(system.drivers)]
        self.planned = self.committed = self.starts = self.failures = 0
        self.seen: dict[int, dict[str, Any]] = {}
        """Batch -> the values that its first task has seen."""
        self.answered: tuple[int, int] | None = None
        """The version of which it was asked since when it is in force, and the answer."""

    def machines(self) -> Iterator[tuple[str, tuple[int, ...], Machine]]:
        for number, process in enumerate(self.processes):
            yield "batch_decision", (number,), process.system.batch_decision[0]

    def decided(self) -> dict[int, Decision]:
        """By batch as the machine counts, what lies in the store."""
        there = self.kept.entries.items()
        found = [opened(data) for key, data in there if f"/{QUERY}/" in key]
        return {entry["batch"] + 1: Decision.from_entry(entry) for entry in found}

    def facts(self) -> Iterator[tuple[str, Any, Any]]:
        query, decided = self.system.query, self.decided()
        for batch in range(1, self.system.slots):
            yield f"a decision for batch {batch}", query.is_there[batch], batch in decided
            if batch in decided:
                one = decided[batch]
                said = query.decided[batch], query.since[batch]
                yield f"the decision for batch {batch}", said, (one.version, one.since + 1)
                values = {"updates": query.decided[batch]} | self.chosen(batch)
                yield f"the values for batch {batch}", values, one.value
            if batch in self.seen:
                values = {"updates": query.seen[batch]} | self.chosen_of_seen(batch)
                yield f"what tasks of batch {batch} saw", values, self.seen[batch]
        for number, process in enumerate(self.processes):
            driver = self.system.driver[number]
            yield (
                f"driver {number}",
                (driver.state, driver.batch if driver.state != GONE else 0, driver.worked),
                (process.state, process.batch, process.worked),
            )
            if process.decision is not None and process.state == RUNNING:
                real = process.decision.version, process.decision.batch + 1
                yield f"what driver {number} runs", (driver.version, driver.batch), real
        if self.answered is not None:
            asker = self.system.asker
            yield "since when an update holds", (asker.version, asker.since), self.answered

    def chosen(self, batch: int) -> dict[str, Any]:
        """The values in the decision for a batch that a coordinator has chosen."""
        return {}

    def chosen_of_seen(self, batch: int) -> dict[str, Any]:
        """Those that the first task of a batch has seen."""
        return {}

    def look(self, number: int) -> None:
        """Let Spark go on where the batch has what it runs with."""
        process = self.processes[number]
        if process.is_busy:
            return
        if process.error is None:
            process.state, process.decision = RUNNING, process.result
        elif isinstance(process.error, REFUSALS):
            self._expect_said(process.error, process.batch - 1)
            self.refused(number)
        else:
            raise process.error

    def _expect_said(self, error: Exception, batch: int) -> None:
        """Hold what the user is told against what is there."""
        decided = self.decided()
        newest = decided.get(max(decided, default=0))
        said: tuple[Any, ...]
        true: tuple[Any, ...]
        if isinstance(error, BatchOvertaken):
            said, true = error.args[3:], (batch, max(decided) - 1)
        elif isinstance(error, VersionMissing):
            assert newest is not None, "a batch ran with the version"
            said, true = error.args[2:], (batch, self.newest(), newest.version, newest.value)
        elif isinstance(error, ChoiceFailed):
            said, true = error.args[3:4], (batch,)
        else:
            said, true = error.args[2:3], (batch,)
        assert said == true, f"the user is told {said}, and it is {true}"

    def refused(self, number: int) -> None:
        """The query fails."""
        self.stop(number)

    def stop(self, number: int) -> None:
        self.replace(number, self.driver(self))

    def start(self, number: int) -> None:
        self.starts += 1
        process = self.processes[number]
        process.state, process.batch = UP, self.committed
        if self.planned > self.committed:
            process.batch = self.planned
            self._decide(number)

    def plan(self, number: int) -> None:
        process = self.processes[number]
        if self.planned != process.batch:
            self.stop(number)
            return
        process.batch += 1
        self.planned = process.batch
        self._decide(number)

    def _decide(self, number: int) -> None:
        process = self.processes[number]
        process.state = DECIDING
        process.outcome = WELL
        process.call(lambda: process.shell.decide(process.batch - 1))
        self.look(number)

    def work(self, number: int) -> None:
        process = self.processes[number]
        assert process.decision is not None, "the function was called"
        process.worked += 1
        version, value = process.decision.version, process.decision.value
        seen = self.seen.setdefault(process.batch, value)
        assert seen == value, "two runs of one batch see one value"
        if self.answered is not None:
            asked, since = self.answered
            assert (process.batch >= since) == (version >= asked), (
                "from when on an update is in force stays as it was answered"
            )

    def commit(self, number: int) -> None:
        process = self.processes[number]
        if self.committed < process.batch:
            process.state, process.worked, process.decision = UP, 0, None
            self.committed = process.batch
        else:
            self.stop(number)

    def die(self, number: int) -> None:
        self.failures += 1
        self.stop(number)

    def ask(self) -> None:
        version = self.decided()[max(self.decided())].version
        since = effective_from(self.outside, CONTROL, QUERY, version)
        assert since is not None, "a decision has the version"
        self.answered = version, since + 1

    def versions(self) -> Numbered:
        """The updates in the store."""
        return versions_of(self.outside, CONTROL)

    def newest(self) -> int:
        """The newest update in the store; 0 for none."""
        return max(self.versions().numbers(), default=0)

    def update(self) -> None:
        # As a user whose lost file comes back: an update would leave out the number of a decision.
        version = self.newest() + 1
        value = {"updates": version}
        more = {"token": "", "at": 0.0, "by": "a user"}
        self.versions().create(
            version, {"version": version, "value": value, "changes": value, **more}
        )

    def lose(self) -> None:
        self.failures += 1
        self.versions().delete(self.newest())

    def is_(self, number: int, *states: str) -> bool:
        return self.processes[number].state in states

    def is_done(self, number: int) -> bool:
        """Return whether all tasks of the batch have run."""
        return bool(self.processes[number].worked == self.system.tasks)

    def is_apart(self, number: int) -> bool:
        """True if what the shell remembers, or has listed, is not what the model reads now."""
        process, decided = self.processes[number], self.decided()
        newest = max(decided, default=0)
        if process.asked == "forget":
            last = process.arguments[1]
            return any(b <= last and b - 1 not in process.shell._listed for b in decided)
        if process.asked == "restore":
            return bool(newest >= process.batch)
        is_set_back = newest == process.batch and self.newest() < decided[newest].version
        return process.asked == "read" and (newest > process.batch or is_set_back)

    def can_ask(self) -> bool:
        decided = self.decided()
        return self.answered is None and bool(decided) and decided[max(decided)].version > 0

    acts: ClassVar[Mapping[str, Act]] = {
        **STORE_ACTS,
        # A driver that was overtaken begins from the decision before its batch, as it has listed
        # or remembers it, and what it writes is taken, or overtaken. A decision that came late
        # after the listing is left, as one that comes after the removal.
        "client.answer": replace(STORE_ACTS["client.answer"], is_apart=is_apart),
        "user.update": Act(
            update,
            lambda world: world.newest() < world.system.versions,
            "no update is left",
        ),
        "user.lose": Act(
            lose, lambda world: world.newest() > 0 and world.may_fail(), "there is no update"
        ),
        "driver.start": Act(
            start,
            lambda world, n: world.is_(n, GONE) and world.starts < world.system.R,
            "the process runs, or no start is left",
        ),
        "driver.plan": Act(
            plan,
            lambda world, n: world.is_(n, UP) and world.processes[n].batch < world.system.batches,
            "the process does something else",
        ),
        "driver.work": Act(
            work,
            lambda world, n: world.is_(n, RUNNING) and not world.is_done(n),
            "nothing runs, or all tasks have",
        ),
        "driver.commit": Act(
            commit,
            lambda world, n: world.is_(n, RUNNING) and world.is_done(n),
            "tasks are still to run",
        ),
        "driver.die": Act(
            die, lambda world, n: not world.is_(n, GONE) and world.may_fail(), "no process runs"
        ),
        "asker.ask": Act(ask, lambda world: world.can_ask(), "no decision has an update"),
    }
