"""The build side's coordinator: merges what the subtasks report, and gives it once to who listens.

Decides when the data is whole (every subtask has reported), and that a subtask which reports again
after a failure must report the same, since splits may have been left out by it. Its state is the
reports so far. After a reset of the job, the listeners were reset too, so whole data is given once
more. Runs on the job's queue.

Listeners are found in the coordinators' store under their keys, as the coordinator of a source puts
itself there (`SourceProvider.listening_id`); for one that is not there yet, the event is left under
its key.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, Final, Protocol, runtime_checkable

import msgpack

from epochgate.runtime.api.coordinator import (
    CoordinatorContext,
    CoordinatorProvider,
    OperatorCoordinator,
)
from epochgate.runtime.api.malformed_event import EventForms, MalformedEvent, insist_on_form
from epochgate.runtime.api.plain_values import ValueNotPlain, insist_on_plain
from epochgate.runtime.filtering.data import FilteringData, event_of
from epochgate.runtime.filtering.errors import FilteringDataChanged, FilteringMisconfigured
from epochgate.runtime.filtering.operator import VALUES_MAX

FROM_OPERATOR: Final[EventForms] = {"report": ((list, type(None)),)}


@runtime_checkable
class CoordinatorListener(Protocol):
    """A coordinator that others of its job can speak to."""

    def handle_coordinator_event(self, event: Any) -> None:
        """Take the event in its turn."""
        ...


class DynamicFilteringCoordinator(OperatorCoordinator):
    """Gathers the reports of one build side."""

    def __init__(
        self, context: CoordinatorContext, listening_ids: Sequence[str], values_max: int
    ) -> None:
        self._context, self._listening_ids = context, listening_ids
        self._values_max = values_max
        self._reports: dict[int, FilteringData] = {}
        self._is_given = False

    def start(self) -> None:
        """Nothing to do: a restore has arranged for what it found."""

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        """A subtask reports. Raises FilteringDataChanged, which takes the job back, and
        MalformedEvent for what no build side reports.
        """
        insist_on_form(subtask, event, FROM_OPERATOR)
        if event[1] is not None:
            insist_on_packed(subtask, event[1])
        data = FilteringData.from_plain(event[1])
        before = self._reports.setdefault(subtask, data)
        if before != data:
            raise FilteringDataChanged(
                f"subtask {subtask} of {self._context.operator_id!r} reports {data} after a "
                f"failure, and had reported {before}, by which splits may have been left out. The "
                "job goes back as a whole; if this repeats, the build side reads something that "
                "changes while the job runs"
            )
        self._give()

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        """The reports so far."""
        reports = [[subtask, data.to_plain()] for subtask, data in sorted(self._reports.items())]
        result.set_result(msgpack.packb(reports))

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        """Go back to the reports of the checkpoint, and give them again if they are whole."""
        reports = [] if state is None else msgpack.unpackb(state)
        self._reports = {subtask: FilteringData.from_plain(plain) for subtask, plain in reports}
        self._is_given = False
        # In its turn, when all coordinators have gone back.
        self._context.post(self._give)

    def _give(self) -> None:
        if self._is_given or len(self._reports) < self._context.parallelism:
            return
        self._is_given = True
        whole = FilteringData.merged(self._reports.values(), self._values_max)
        event = event_of(self._context.operator_id, whole)
        for listening_id in self._listening_ids:
            there = self._context.coordinator_store.compute(
                listening_id, lambda there: self._left_for(there, event)
            )
            if isinstance(there, CoordinatorListener):
                there.handle_coordinator_event(event)

    def _left_for(self, there: Any, event: list[Any]) -> Any:
        """Return what is under the listener's key from now on."""
        if isinstance(there, CoordinatorListener):
            return there
        if there is None or (isinstance(there, list) and there[:2] == event[:2]):
            return event
        raise FilteringMisconfigured(
            f"{self._context.operator_id!r} has filtering data for a listener that is not there "
            f"yet, and {there!r} waits for it already. Give each listener one build side, or name "
            "the listener before the build sides in the configuration's providers"
        )


def insist_on_packed(subtask: int, values: list[Any]) -> None:
    """Raise MalformedEvent unless each is one plain value in msgpack."""
    try:
        for value in values:
            insist_on_plain("a value to filter by", msgpack.unpackb(value))
    except (TypeError, ValueError, msgpack.UnpackException, ValueNotPlain) as error:
        raise MalformedEvent(
            f"subtask {subtask} reported values to filter by that are not packed: {error}"
        ) from error


class DynamicFilteringProvider(CoordinatorProvider):
    """Puts the coordinator of the build side `operator_id` into a job's configuration.

    `listening_ids`: the keys in the coordinators' store under which the listeners are found.
    `values_max`: with more different values, over all subtasks, nothing is left out. Raises
    FilteringMisconfigured.
    """

    def __init__(
        self, operator_id: str, listening_ids: Sequence[str], *, values_max: int = VALUES_MAX
    ) -> None:
        if isinstance(listening_ids, str) or not listening_ids:
            raise FilteringMisconfigured(
                f"listening_ids is {listening_ids!r}; name at least one listener, in a list"
            )
        self._operator_id, self._listening_ids = operator_id, list(listening_ids)
        self._values_max = values_max

    @property
    def operator_id(self) -> str:
        """The name of the build side's operator in the program."""
        return self._operator_id

    def create(self, context: CoordinatorContext) -> DynamicFilteringCoordinator:
        """Make the coordinator."""
        return DynamicFilteringCoordinator(context, self._listening_ids, self._values_max)
