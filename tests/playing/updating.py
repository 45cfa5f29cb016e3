"""The updates of a control: each process of `UpdatedControl` is an `Updating`, over one store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar
from unittest import mock

from epochgate.fsm.machine import Machine
from epochgate.models.closed.updating import DONE, DOUBTED, FAILED, PENDING, UpdatedControl
from epochgate.runtime.entries.encoding import opened
from epochgate.runtime.steering import versions
from epochgate.runtime.steering.errors import UpdateFailed, UpdateInDoubt
from epochgate.runtime.steering.versions import Updating
from tests.playing.gates import Lie, Process, gated, the_truth
from tests.playing.stage import Act
from tests.playing.store import STORE_ACTS, Clients, Connection, Kept

OBJECT = "object"
"""The outcome of a check whose user's code raises."""


class Objection(Exception):
    """The error of a user's check."""


class Updater(Process):
    """A process that updates: its update has its number as name and value."""

    def __init__(self, world: Updates) -> None:
        super().__init__()
        self.connection = Connection(world.kept, self)
        bounds = {n: world.system.constants[n] for n in ("retained", "update_retries")}
        with mock.patch.object(versions, "Handles", gated(self, world.lie, **bounds)):
            self._shell = Updating(
                self.connection, "store", "prices", "a process", lambda: 0.0, self._accept
            )
        self.update = 0

    def begin(self, update: int) -> None:
        """Let an update begin."""
        self.update = update
        self.call(lambda: self._shell.update({str(update): update}))

    def _accept(self, newest: Mapping[str, Any], changes: Mapping[str, Any]) -> None:
        if self.outcome == OBJECT or {"1", "2"} <= {*newest, *changes}:
            raise Objection


class Updates(Clients):
    """The world of `UpdatedControl`."""

    never_denied: ClassVar[tuple[str, ...]] = ("check",)

    def __init__(self, system: UpdatedControl, lie: Lie = the_truth) -> None:
        self.system, self.lie, self.kept = system, lie, Kept()
        self.processes = [Updater(self) for _ in range(system.updaters)]
        self.begun = self.failures = 0
        self.outcomes = [PENDING] * system.slots
        self.counted = [0] * system.slots

    def machines(self) -> Iterator[tuple[str, tuple[int, ...], Machine]]:
        for number, process in enumerate(self.processes):
            yield "control_update", (number,), process.system.control_update[0]

    def facts(self) -> Iterator[tuple[str, Any, Any]]:
        log = self.system.log
        there = {int(key[-20:-5]): opened(data) for key, data in self.kept.entries.items()}
        for version in range(1, self.system.slots):
            entry = there.get(version, {"changes": {}, "value": {}})
            author, holds = log.author[version], log.holds[version]
            changes = {str(author): author} if author else {}
            yield f"the update in version {version}", changes, entry["changes"]
            held = {str(number) for number in (1, 2) if holds & number}
            yield f"what version {version} holds", held, {"1", "2"} & entry["value"].keys()
        for update in range(1, self.system.slots):
            yield f"the end of update {update}", log.outcome[update], self.outcomes[update]
            if self.outcomes[update] == DONE:
                yield f"the version of update {update}", log.counted[update], self.counted[update]

    def begin(self, number: int) -> None:
        self.begun += 1
        self.processes[number].begin(self.begun)
        self.look(number)

    def die(self, number: int) -> None:
        self.failures += 1
        self.outcomes[self.processes[number].update] = DOUBTED
        self.replace(number, Updater(self))

    def look(self, number: int) -> None:
        process = self.processes[number]
        if process.is_busy:
            return
        if process.error is None:
            self.outcomes[process.update], self.counted[process.update] = DONE, process.result
        elif isinstance(process.error, UpdateInDoubt):
            self.outcomes[process.update] = DOUBTED
        elif isinstance(process.error, (UpdateFailed, Objection)):
            self.outcomes[process.update] = FAILED
        else:
            raise process.error

    acts: ClassVar[Mapping[str, Act]] = {
        **STORE_ACTS,
        "client.begin": Act(
            begin,
            lambda world, n: not world.processes[n].is_busy and world.begun < world.system.updates,
            "the process updates, or no update is left",
        ),
        "client.object_to": Act(
            lambda world, n: world.answer(n, OBJECT),
            lambda world, n: world.processes[n].asked == "check" and world.system.objections,
            "nothing is being checked",
        ),
        "client.die": Act(
            die,
            lambda world, n: world.processes[n].asked is not None and world.may_fail(),
            "the process does nothing",
        ),
    }
