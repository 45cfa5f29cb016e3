"""The plans of a query's batches: the machine says what to ask store and enumerator, and this asks.

Decides nothing: an answer is a trigger of the machine, an error `broken`, or `unknown` where a plan
may have been created. A plan holds the splits of its batch, the filter by which others were pruned,
and the enumerator's state behind them. Machine, plans and Spark's offsets count batches from 1.
Runs where Spark asks for offsets, on one thread at a time.
"""

from __future__ import annotations

import bisect
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from epochgate.errors import EpochgateError, InvariantBroken
from epochgate.models.batch_plan import BatchPlan, BatchPlans
from epochgate.runtime.api.own_frames import own_frames
from epochgate.runtime.source.split import SourceSplit, pack
from epochgate.runtime.steering.errors import PlanForgotten, PlanNotMade, PlanOvertaken
from epochgate.runtime.steering.place import Entries, NotCreated, Numbered, plans_of
from epochgate.runtime.steering.planned import PlannedBatch, SplitFilter, state_in

NO_OUTCOME: Final = InvariantBroken("the machine has not told what it decided")


@dataclass
class Taken:
    """The splits of a batch, and the ids of those that its filter has pruned."""

    splits: list[SourceSplit] = field(default_factory=list)
    pruned: list[str] = field(default_factory=list)


class Choosing(Protocol):
    """An enumerator from which splits are taken; each method may raise what its code raises."""

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


class Planning:
    """The plans of one stream: the handler of the machine's port.

    `make`: an enumerator that begins from the version and the plain state of a plan, or from
    nothing. `remove_left`: removes what earlier processes have left behind, if none of these states
    refers to it; it gets version and state behind each batch whose plan is kept. `newest_filter`:
    the filter that is in force now.
    """

    def __init__(
        self,
        entries: Entries,
        place: str,
        stream: str,
        make: Callable[[tuple[int, Any] | None], Choosing],
        remove_left: Callable[[Iterator[tuple[int, Any]]], None] | None = None,
        newest_filter: Callable[[], SplitFilter | None] = no_filter,
    ) -> None:
        self._place, self._make, self._remove_left = place, make, remove_left
        self._newest_filter = newest_filter
        self._plans: Numbered = plans_of(entries, stream)
        self._system = BatchPlans()
        self._system.bind("batch_plan", "store", self)
        self._enumerator: Choosing | None = None
        self._listed: list[int] = []
        self._filters: dict[int, SplitFilter | None] = {}
        """The filter that was read last, by its version; the machine says which one prunes."""
        self._taken = Taken()
        """For the plan that is being made."""
        self._found: list[PlannedBatch] = []
        """The batches that are being read."""
        self._outcome: bool | EpochgateError = NO_OUTCOME
        self._error: BaseException | None = None
        with contextlib.suppress(OSError):  # what is left there harms nothing
            self._plans.sweep()

    def has_batch(self, batch: int) -> bool:
        """Whether there is a batch of this number: its splits are decided then.

        Raises PlanOvertaken, PlanNotMade.
        """
        self._error = None
        self._machine.ask(batch)
        return self._settled()

    def batches(self, after: int, through: int) -> list[PlannedBatch]:
        """The plans of these batches, in their order. Raises PlanForgotten, PlanNotMade."""
        self._error, self._found = None, []
        for batch in range(after + 1, through + 1):
            try:
                later = self._later(batch)
            except (OSError, ValueError) as error:
                raise PlanNotMade(self._place, batch, str(error)) from error
            self._machine.read(later, batch)
            self._settled()
        return self._found

    def close(self) -> None:
        """End the enumerator."""
        if self._enumerator is not None:
            self._enumerator.close()
            self._enumerator = None

    @property
    def _machine(self) -> BatchPlan:
        return self._system.batch_plan[0]

    def _settled(self) -> bool:
        self._system.settle()
        outcome, self._outcome = self._outcome, NO_OUTCOME
        if isinstance(outcome, EpochgateError):
            raise outcome from self._error
        return outcome

    # port `store`

    def look(self, _: int, batch: int) -> None:
        with self._answered() as machine:
            later = self._later(batch)
            if batch in self._listed:
                machine.found(later)
            else:
                machine.missing(later)

    def restore(self, _: int, batch: int) -> None:
        with self._answered(BaseException) as machine:
            self.close()
            self._enumerator = self._make(self._state_behind(batch) if batch > 0 else None)
            machine.restored()

    def consult(self, _: int, batch: int) -> None:
        with self._answered() as machine:
            newest = self._newest_filter()
            version = 0 if newest is None else newest.version
            self._filters = {version: newest}
            machine.newest(version)

    def choose(self, _: int, batch: int, version: int) -> None:
        assert self._enumerator is not None, "an enumerator was made"
        with self._answered(BaseException) as machine:
            self._taken = self._enumerator.take(self._filters[version])
            if self._taken.splits:
                machine.chosen()
            elif self._taken.pruned:
                machine.pruned()
            else:
                machine.nothing()

    def write(self, _: int, batch: int, version: int) -> None:
        assert self._enumerator is not None, "an enumerator was made"
        try:
            state_version, state = self._enumerator.state(batch)
            packed = pack(state, "the state of the enumerator")
            by, taken = self._filters[version], self._taken
            made = PlannedBatch(batch, taken.splits, by, taken.pruned)
            entry = made.to_entry(state_version, packed)
        except BaseException as error:  # noqa: BLE001  # the user's code has no root for what it raises
            self._error = error
            self._machine.broken()
            return
        try:
            self._plans.create(batch, entry)
        except FileExistsError:
            self._machine.taken()
        except NotCreated as error:
            self._error = error
            self._machine.broken()
        except OSError as error:
            self._error = error
            self._machine.unknown()
        else:
            self._machine.written()

    def confirm(self, _: int, batch: int) -> None:
        with self._answered() as machine:
            machine.confirmed(self._later(batch))

    def forget(self, _: int, batch: int) -> None:
        # What cannot be removed now is removed with a later batch.
        with contextlib.suppress(OSError):
            for number in self._listed[: bisect.bisect_right(self._listed, batch)]:
                self._plans.delete(number)
            if self._enumerator is not None:
                self._enumerator.forgotten(batch)

    def sweep(self, _: int, batch: int) -> None:
        if self._remove_left is not None:
            self._remove_left(self._states())

    def give(self, _: int, batch: int) -> None:
        try:
            self._found.append(PlannedBatch.from_entry(self._plans.get(batch)))
            self._outcome = True
        except FileNotFoundError as error:
            self._error, self._outcome = error, PlanForgotten(self._place, batch)
        except (OSError, ValueError, KeyError) as error:
            self._error, self._outcome = error, PlanNotMade(self._place, batch, str(error))

    def withhold(self, _: int, batch: int) -> None:
        self._outcome = PlanForgotten(self._place, batch)

    def tell(self, _: int, batch: int) -> None:
        self._outcome = True

    def tell_none(self, _: int, batch: int) -> None:
        self._outcome = False

    def refuse(self, _: int, batch: int, later: int) -> None:
        self._outcome = PlanOvertaken(self._place, batch, batch + later)

    def fail(self, _: int, batch: int) -> None:
        frames = own_frames(self._error)
        told = f"{type(self._error).__name__}: {self._error}{frames}"
        self._outcome = PlanNotMade(self._place, batch, told if frames else str(self._error))

    @contextlib.contextmanager
    def _answered(self, of: type[BaseException] = Exception) -> Iterator[BatchPlan]:
        """`of`: what may be raised, by the user's code `SystemExit` too."""
        try:
            yield self._machine
        except of as error:
            self._error = error
            self._machine.broken()

    def _state_behind(self, batch: int) -> tuple[int, Any]:
        return state_in(self._plans.get(batch))

    def _states(self) -> Iterator[tuple[int, Any]]:
        for number in self._plans.numbers():
            with contextlib.suppress(FileNotFoundError):  # another driver has forgotten it
                yield self._state_behind(number)

    def _later(self, batch: int) -> int:
        """By how many numbers the newest plan is behind that of the batch."""
        self._listed = self._plans.numbers()
        return max(0, self._listed[-1] - batch) if self._listed else 0
