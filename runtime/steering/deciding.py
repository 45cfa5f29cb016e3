"""What a batch runs with: the machine says what to ask the store, and this asks it.

Decides nothing: an answer of the store is a trigger of the machine, an error `broken`, or `unknown`
where an entry may have been created. Without a coordinator (`coordinated`) there is nothing to
restore, and a batch runs with what was updated. Machine and store count batches from 1, Spark
counts them from 0. Runs where Spark calls the function of `foreachBatch`, one batch of a query at a
time.
"""

from __future__ import annotations

import bisect
import contextlib
import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from epochgate.errors import EpochgateError, InvariantBroken
from epochgate.models.batch_decision import BatchDecision, BatchDecisions
from epochgate.runtime.steering.coordinator import CoordinatorState
from epochgate.runtime.steering.errors import (
    BatchOvertaken,
    ControlUnusable,
    DecisionNotMade,
    VersionMissing,
)
from epochgate.runtime.steering.place import Entries, NotCreated, Numbered, decisions_of
from epochgate.runtime.steering.values import Value
from epochgate.runtime.steering.versions import Versions

_COORDINATOR: Final = "coordinator"
_STATE: Final = ("operator", "version", "state")
"""What an entry has of a coordinator."""


@dataclass(frozen=True)
class Decision:
    """What a batch runs with: the number of the newest update that was there, the first batch with
    it, the value, when it was decided (seconds since 1970) and by which process; and the state of
    the coordinator behind it, if the control has one.
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


class Deciding:
    """The decisions of one control for one query: the handler of the machine's port.

    `initial`: what holds before the first update, and for names that no update has named.
    """

    def __init__(
        self,
        entries: Entries,
        store: str,
        control: str,
        query: str,
        initial: Value,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._control, self._query, self._now = store, control, query, now
        self._decisions: Numbered = decisions_of(entries, control, query)
        self._versions = Versions(entries, control)
        self._initial = initial
        self._system = BatchDecisions()
        self._system.bind("batch_decision", "store", self)
        self._newest: Decision | None = None
        """The newest decision that was read or made here."""
        self._listed: list[int] = []
        self._read: Value = {}
        """What the version holds with which the batch would run."""
        self._value: Value = {}
        self._state: CoordinatorState | None = None
        """What was chosen for the batch, and the state behind that."""
        self._outcome: Decision | Exception = InvariantBroken("the decision has no end")
        self._error: BaseException | None = None
        self._refusal: EpochgateError | None = None
        """The error of a batch for which the store is not to blame."""
        self.is_replay = False
        """Whether the batch that was decided last had been decided before."""
        with contextlib.suppress(OSError):  # what is left there harms nothing
            self._decisions.sweep()

    def decide(self, batch: int) -> Decision:
        """What the batch runs with, from now on and for ever.

        Raises BatchOvertaken, VersionMissing, EntryDamaged, DecisionNotMade, ControlUnusable, or
        ChoiceFailed.
        """
        self._error, self._refusal, self.is_replay = None, None, True
        self._machine.begin(batch + 1)
        self._system.settle()
        if isinstance(self._outcome, Exception):
            raise self._outcome from self._error
        return self._outcome

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
        """What the batch runs with, and the state behind that."""
        return values, None

    @property
    def metrics(self) -> Mapping[str, int | float]:
        """Those of a coordinator; none here."""
        return {}

    def returned(self, batch: int, value: Any) -> None:
        """What the function returned for a batch is for a coordinator alone."""

    def close(self) -> None:
        """A coordinator is closed; there is none here."""

    @property
    def _machine(self) -> BatchDecision:
        return self._system.batch_decision[0]

    # port `store`

    def look(self, _: int, batch: int) -> None:
        with self._answered() as machine:
            later = self._later(batch)
            if batch - 1 in self._listed:
                try:
                    found = self._at(batch - 1)
                except FileNotFoundError:
                    machine.missing(self._later(batch))
                    return
                self._newest = found
                machine.found(self._later(batch), found.version)
            else:
                machine.missing(later)

    def restore(self, _: int, batch: int) -> None:
        with self._answered() as machine:
            self.begin_from(batch, self._before(batch + 1))
            machine.restored()

    def complete(self, _: int, batch: int) -> None:
        """There is nothing that would hear it."""

    def read(self, _: int, batch: int) -> None:
        with self._answered() as machine:
            newest, self._read = self._versions.newest()
            earlier = self._before(batch)
            if earlier is None:
                machine.newest(newest, 0, 0)
            else:
                machine.newest(newest, earlier.version, earlier.since + 1)

    def choose(self, _: int, batch: int) -> None:
        with self._answered() as machine:
            self._value, self._state = self.choice(batch - 1, {**self._initial, **self._read})
            machine.chosen()

    def write(self, _: int, batch: int, version: int, since: int) -> None:
        made = self._now(), this_process(), self._state
        decision = Decision(batch - 1, version, since - 1, self._value, *made)
        self.is_replay = False
        try:
            self._decisions.create(batch - 1, decision.to_entry())
        except FileExistsError:
            self.is_replay = True
            self._machine.taken()
        except NotCreated as error:
            self._error = error
            self._machine.broken()
        except OSError as error:
            self._error = error
            self._machine.unknown()
        else:
            self._newest = decision
            self._machine.written()

    def confirm(self, _: int, batch: int) -> None:
        with self._answered() as machine:
            machine.confirmed(self._later(batch))

    def forget(self, _: int, batch: int) -> None:
        # What cannot be removed now is removed with a later batch.
        with contextlib.suppress(OSError):
            for number in self._listed[: bisect.bisect_left(self._listed, batch)]:
                self._decisions.delete(number)

    def run(self, _: int, batch: int, version: int) -> None:
        assert self._newest is not None, "a decision was read or made"
        self._outcome = self._newest

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
        failed = DecisionNotMade(*where, batch - 1, str(self._error))
        self._outcome = self._refusal or failed

    @contextlib.contextmanager
    def _answered(self) -> Any:
        try:
            yield self._machine
        except EpochgateError as error:
            self._error, self._refusal = error.__cause__, error
            self._machine.broken()
        except (OSError, ValueError) as error:
            self._error = error
            self._machine.broken()

    def _later(self, batch: int) -> int:
        """By how many numbers the newest decision is behind that of the batch."""
        self._listed = self._decisions.numbers()
        return max(0, self._listed[-1] - (batch - 1)) if self._listed else 0

    def _before(self, batch: int) -> Decision | None:
        """The newest decision of a batch before this one; none if there is none."""
        behind = bisect.bisect_left(self._listed, batch - 1)
        return self._at(self._listed[behind - 1]) if behind else None

    def _at(self, number: int) -> Decision:
        if self._newest is not None and self._newest.batch == number:
            return self._newest
        return Decision.from_entry(self._decisions.get(number))
