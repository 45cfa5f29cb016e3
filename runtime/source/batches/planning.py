"""The plans of a query's batches: the machine says what to ask store and enumerator, and this asks.

Decides nothing, as `creating` says. A plan holds the splits of its batch, the filter by which
others were pruned, and the enumerator's state behind them. Machine, plans and Spark's offsets count
batches from 1. Runs where Spark asks for offsets, on one thread at a time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar

from epochgate.fsm import Handle, Handles
from epochgate.models.batch_plan import BatchPlan, BatchPlans
from epochgate.runtime.api.own_frames import own_frames
from epochgate.runtime.api.raised import described, in_words
from epochgate.runtime.entries.creating import Creating
from epochgate.runtime.entries.stores import Entries
from epochgate.runtime.entries.waits import USUAL, Waits
from epochgate.runtime.limited import CallLate
from epochgate.runtime.source.batches.errors import PlanForgotten, PlanNotMade, PlanOvertaken
from epochgate.runtime.source.batches.planned import PlannedBatch, SplitFilter, state_in
from epochgate.runtime.source.batches.plans import plans_of
from epochgate.runtime.source.split import SourceSplit, pack

T = TypeVar("T")


@dataclass
class Taken:
    """The splits of a batch, and the ids of those that its filter has pruned."""

    splits: list[SourceSplit] = field(default_factory=list)
    pruned: list[str] = field(default_factory=list)


class Choosing(Protocol):
    """An enumerator from which splits are taken; each method may raise what its code raises."""

    @property
    def metrics(self) -> Mapping[str, int | float]:
        """Its figures."""

    def take(self, by: SplitFilter | None) -> Taken:
        """The splits of the next batch, pruned by the filter; none of either if none waits."""

    def state(self, batch: int) -> tuple[int, Any]:
        """The version of the state behind what was taken, and the state, a plain value."""

    def forgotten(self, batch: int) -> None:
        """No plan refers to the states behind this batch and those before any more."""

    def close(self) -> None:
        """Another takes over."""


def no_filter() -> None:
    """Of a source whose splits are all read."""


class Planning(Creating):
    """The plans of one stream: the handler of the machine's port.

    `make`: an enumerator that begins from the version and the plain state of a plan, or from
    nothing. `remove_left`: removes what earlier processes have left behind, if none of these states
    refers to it; it gets version and state behind each batch whose plan is kept. `newest_filter`:
    the filter that is in force now.
    """

    FIRST = 1
    FAILURES: ClassVar[tuple[type[Exception], ...]] = (Exception,)  # the user's code has no root

    _machine: Handle[BatchPlan]

    def __init__(
        self,
        entries: Entries,
        place: str,
        stream: str,
        make: Callable[[tuple[int, Any] | None], Choosing],
        remove_left: Callable[[Iterator[tuple[int, Any]]], None] | None = None,
        newest_filter: Callable[[], SplitFilter | None] = no_filter,
        waits: Waits = USUAL,
    ) -> None:
        self._place, self._make, self._remove_left = place, make, remove_left
        self._newest_filter = newest_filter
        system = Handles(BatchPlans)
        system.bind("batch_plan", "store", self)
        super().__init__(system.batch_plan[0], system.settle, plans_of(entries, stream), waits)
        self._enumerator: Choosing | None = None
        self._filters: dict[int, SplitFilter | None] = {}
        """The filter that was read last, by its version; the machine says which one prunes."""
        self._taken = Taken()
        """For the plan that is being made."""
        self._found: list[PlannedBatch] = []
        """The batches that are being read."""
        self._plan: PlannedBatch | None = None
        """The plan that was read last."""

    def has_batch(self, batch: int) -> bool:
        """Return whether there is a batch of this number: its splits are decided then.

        Raises PlanOvertaken, PlanNotMade.
        """
        self._error = None
        self._machine.begin(batch)
        return bool(self._settled())

    def batches(self, after: int, through: int) -> list[PlannedBatch]:
        """The plans of these batches, in their order. Raises PlanForgotten, PlanNotMade."""
        self._error, self._found = None, []
        for batch in range(after + 1, through + 1):
            self._machine.run(batch)
            self._settled()
        return self._found

    def figures(self) -> dict[str, int | float]:
        """The figures of the enumerator, as of the newest plan that it has made; empty before it
        has made one.
        """
        return {} if self._enumerator is None else dict(self._enumerator.metrics)

    def close(self) -> None:
        """End the enumerator."""
        enumerator, self._enumerator = self._enumerator, None
        if enumerator is not None:
            self._of_users("its close", enumerator.close)

    # port `store`

    def look(self, _: int, batch: int) -> None:
        with self._answered():
            later = self._later(batch)
            if batch in self._listed:
                self._machine.found(later)
            else:
                self._machine.missing(later)

    def restore(self, _: int, batch: int) -> None:
        with self._answered(BaseException):
            self.close()
            behind = state_in(self._entry(batch)) if batch > 0 else None
            self._enumerator = self._of_users("its start", lambda: self._make(behind))
            self._machine.restored()

    def consult(self, _: int, batch: int) -> None:
        with self._answered():
            newest = self._asked("reading the newest filter", self._newest_filter)
            version = 0 if newest is None else newest.version
            self._filters = {version: newest}
            self._machine.newest(version)

    def choose(self, _: int, batch: int, version: int) -> None:
        enumerator, by = self._enumerator, self._filters[version]
        assert enumerator is not None, "an enumerator was made"
        with self._answered(BaseException):
            self._taken = self._of_users("its look for splits", lambda: enumerator.take(by))
            if self._taken.splits:
                self._machine.chosen()
            elif self._taken.pruned:
                self._machine.pruned()
            else:
                self._machine.nothing()

    def write(self, _: int, batch: int, version: int) -> None:
        enumerator = self._enumerator
        assert enumerator is not None, "an enumerator was made"
        try:
            state_version, state = self._of_users("its state", lambda: enumerator.state(batch))
            packed = pack(state, "the state of the enumerator")
            by, taken = self._filters[version], self._taken
            made = PlannedBatch(batch, taken.splits, by, taken.pruned)
            entry = made.to_entry(state_version, packed)
        except BaseException as error:  # noqa: BLE001  # the user's code has no root for what it raises
            self._error = error
            self._machine.broken()
        else:
            self._create(batch, entry)

    def _remove(self, batch: int) -> None:
        super()._remove(batch)
        enumerator, remove_left = self._enumerator, self._remove_left
        if enumerator is not None and batch > 0:
            self._of_users("its removal", lambda: enumerator.forgotten(batch))
        if remove_left is not None:
            self._asked("removing what was left behind", lambda: remove_left(self._states()))

    def fetch(self, _: int, batch: int) -> None:
        with self._answered():
            try:
                self._plan = PlannedBatch.from_entry(self._entry(batch))
            except FileNotFoundError as error:
                self._error = error
                self._machine.lost()
            else:
                self._machine.read(self._later(batch))

    def give(self, _: int, batch: int) -> None:
        assert self._plan is not None, "a plan was read"
        self._found.append(self._plan)
        self._outcome = True

    def withhold(self, _: int, batch: int) -> None:
        self._outcome = PlanForgotten(self._place, batch)

    def tell(self, _: int, batch: int) -> None:
        self._outcome = True

    def tell_none(self, _: int, batch: int) -> None:
        self._outcome = False

    def refuse(self, _: int, batch: int, later: int) -> None:
        self._outcome = PlanOvertaken(self._place, batch, batch + later)

    def fail(self, _: int, batch: int) -> None:
        error = self._error
        assert error is not None, "a question was broken"
        told = described(error) if own_frames(error) else in_words(error)
        self._outcome = PlanNotMade(self._place, batch, told)

    def _of_users(self, what: str, call: Callable[[], T]) -> T:
        """Call the user's code; one that is late is left behind with its enumerator."""
        try:
            return self._called(f"the enumerator ({what})", self._waits.maker, call)
        except CallLate:
            self._enumerator = None
            raise

    def _states(self) -> Iterator[tuple[int, Any]]:
        for number in self._entries.numbers():
            with contextlib.suppress(FileNotFoundError):  # another driver has forgotten it
                yield state_in(self._entries.get(number))
