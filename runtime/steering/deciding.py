"""The decision of what a batch runs with: the machine says what to ask the store, and this asks it.

Decides nothing, as `creating` says. Without a coordinator (`coordinated`) there is nothing to
restore, and a batch runs with what was updated. Machine and store count batches from 1, Spark
counts them from 0. Runs where Spark calls the function of `foreachBatch`, one batch of a query at a
time.
"""

from __future__ import annotations

import bisect
import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from epochgate.errors import EpochgateError
from epochgate.fsm import Handle, Handles
from epochgate.models.batch_decision import BatchDecision, BatchDecisions
from epochgate.runtime.entries.creating import Creating
from epochgate.runtime.entries.stores import Entries
from epochgate.runtime.entries.waits import USUAL, Waits
from epochgate.runtime.steering.coordinator import CoordinatorState
from epochgate.runtime.steering.errors import (
    BatchOvertaken,
    ControlUnusable,
    DecisionNotMade,
    VersionMissing,
)
from epochgate.runtime.steering.layout import decisions_of
from epochgate.runtime.steering.values import Value
from epochgate.runtime.steering.versions import Versions

_COORDINATOR: Final = "coordinator"
_STATE: Final = ("operator", "version", "state")
"""What an entry has of a coordinator."""


@dataclass(frozen=True)
class Decision:
    """The decision for a batch: the number of the newest update that was there, the first batch
    with it, the value, when it was decided (seconds since 1970) and by which process; and the state
    of the coordinator behind it, if the control has one.
    """

    batch: int
    version: int
    since: int
    value: Value
    decided_at: float
    decided_by: str
    state: CoordinatorState | None = field(default=None, repr=False)

    @classmethod
    def from_entry(cls, entry: dict[str, Any]) -> Decision:
        """An entry that was read."""
        coordinator = entry.get(_COORDINATOR)
        return cls(
            *(entry["batch"], entry["version"], entry["since"], entry["value"]),
            *(entry["at"], entry["by"]),
            None if coordinator is None else CoordinatorState(*map(coordinator.get, _STATE)),
        )

    def to_entry(self) -> dict[str, Any]:
        """As it is written."""
        entry = {
            "batch": self.batch,
            "version": self.version,
            "since": self.since,
            "value": self.value,
            "at": self.decided_at,
            "by": self.decided_by,
        }
        state = self.state
        if state is not None:
            kept = state.operator_id, state.version, state.data
            entry[_COORDINATOR] = dict(zip(_STATE, kept, strict=True))
        return entry


def this_process() -> str:
    """The name of this process in what it writes."""
    return f"{socket.gethostname()}:{os.getpid()}"


class Deciding(Creating):
    """The decisions of one control for one query: the handler of the machine's port.

    `initial`: what holds before the first update, and for names that no update has named.
    """

    FIRST = 0

    _machine: Handle[BatchDecision]

    def __init__(
        self,
        entries: Entries,
        store: str,
        control: str,
        query: str,
        initial: Value,
        now: Callable[[], float] = time.time,
        waits: Waits = USUAL,
    ) -> None:
        self._store, self._control, self._query, self._now = store, control, query, now
        self._versions = Versions(entries, control)
        self._initial = initial
        system = Handles(BatchDecisions)
        system.bind("batch_decision", "store", self)
        machine, entered = system.batch_decision[0], decisions_of(entries, control, query)
        super().__init__(machine, system.settle, entered, waits)
        self._newest: Decision | None = None
        """The newest decision that was read or made here."""
        self._made: Decision | None = None
        """What was to be written for the batch."""
        self._read: Value = {}
        """What the version holds with which the batch would run."""
        self._value: Value = {}
        self._state: CoordinatorState | None = None
        """What was chosen for the batch, and the state behind that."""
        self.is_replay = False
        """Whether the batch that was decided last had been decided before."""

    def decide(self, batch: int) -> Decision:
        """Decide what the batch runs with, from now on and for ever.

        Raises BatchOvertaken, VersionMissing, EntryDamaged, DecisionNotMade, ControlUnusable, or
        ChoiceFailed.
        """
        self._error = self._made = None
        self._machine.begin(batch + 1)
        decision: Decision = self._settled()
        return decision

    # what `Coordinated` does otherwise

    def begin_from(self, batch: int, before: Decision | None) -> None:
        """Let Spark's batch of this number follow the decision. Raises ControlUnusable."""
        if before is not None and before.state is not None:
            state = before.state
            raise ControlUnusable(
                f"batch {before.batch} of control {self._control!r} was decided by coordinator "
                f"{state.operator_id!r}, whose state would be lost. Give the control this "
                "coordinator. To go on without it, give the control another name"
            )

    def choice(self, batch: int, values: Value) -> tuple[Value, CoordinatorState | None]:
        """Return what the batch runs with, and the state behind that."""
        return values, None

    @property
    def metrics(self) -> Mapping[str, int | float]:
        """Those of a coordinator; none here."""
        return {}

    def returned(self, batch: int, value: Any) -> None:
        """Refuse what the function returned for a batch: that is for a coordinator alone."""

    def close(self) -> None:
        """A coordinator is closed; there is none here."""

    # port `store`

    def look(self, _: int, batch: int) -> None:
        with self._answered():
            later = self._later(batch)
            if batch - 1 in self._listed:
                try:
                    found = self._at(batch - 1)
                except FileNotFoundError:
                    self._machine.missing(self._later(batch))
                    return
                self._newest = found
                self._machine.found(self._later(batch), found.version)
            else:
                self._machine.missing(later)

    def restore(self, _: int, batch: int) -> None:
        with self._answered():
            self.begin_from(batch, self._before(batch + 1))
            self._machine.restored()

    def complete(self, _: int, batch: int) -> None:
        """There is nothing that would hear it."""

    def read(self, _: int, batch: int) -> None:
        with self._answered():
            newest, self._read = self._asked("reading the versions", self._versions.newest)
            earlier = self._earlier(batch)
            if earlier is None:
                self._machine.newest(newest, 0, 0)
            else:
                self._machine.newest(newest, earlier.version, earlier.since + 1)

    def choose(self, _: int, batch: int) -> None:
        with self._answered():
            self._value, self._state = self.choice(batch - 1, {**self._initial, **self._read})
            self._machine.chosen()

    def write(self, _: int, batch: int, version: int, since: int) -> None:
        made = self._now(), this_process(), self._state
        decision = Decision(batch - 1, version, since - 1, self._value, *made)
        self._made = decision
        if self._create(batch, decision.to_entry()):
            self._newest = decision

    def run(self, _: int, batch: int, version: int) -> None:
        assert self._newest is not None, "a decision was read or made"
        self._outcome, self.is_replay = self._newest, self._newest != self._made

    def refuse(self, _: int, batch: int, later: int) -> None:
        where = self._control, self._store, self._query
        self._outcome = BatchOvertaken(*where, batch - 1, batch - 1 + later)

    def miss(self, _: int, batch: int, version: int, earlier: int) -> None:
        before = self._before(batch)
        assert before is not None, "it has the version that is missed"
        where = self._control, self._store, batch - 1
        self._outcome = VersionMissing(*where, version, earlier, before.value)

    def fail(self, _: int, batch: int) -> None:
        where = self._control, self._store
        if isinstance(self._error, EpochgateError):  # the store is not to blame
            self._outcome = self._error
        else:
            self._outcome = DecisionNotMade(*where, batch - 1, str(self._error))

    def _earlier(self, batch: int) -> Decision | None:
        """The newest decision of a batch before this one, or one that replaces it; none if there is
        none.
        """
        try:
            return self._before(batch)
        except FileNotFoundError:  # another driver has decided for the batch, and removed it
            self._later(batch)
            return self._at(self._listed[-1]) if self._listed else None

    def _before(self, batch: int) -> Decision | None:
        """The newest decision of a batch before this one; none if there is none."""
        behind = bisect.bisect_left(self._listed, batch - 1)
        return self._at(self._listed[behind - 1]) if behind else None

    def _at(self, number: int) -> Decision:
        if self._newest is not None and self._newest.batch == number:
            return self._newest
        return Decision.from_entry(self._entry(number))
