"""The build side's operator: collects the values that a subtask sees, and reports them at the end.

Decides when there are too many values to be worth naming. Its state is what it has and whether that
is all; a restored attempt reports again, because the checkpoint may hold its report in the
operator's state but not in the coordinator's. Runs in the task.

Event to the coordinator: ["report", values], the plain form of `FilteringData`.
"""

from __future__ import annotations

from typing import Any, Final

import msgpack

from epochgate.runtime.api.operator import Operator, OperatorContext
from epochgate.runtime.filtering.data import FilteringData, packed_value
from epochgate.runtime.filtering.errors import AlreadyReported

VALUES_MAX: Final = 10_000


class FilteringDataOperator(Operator):
    """Takes values with `add`; the program calls `report` at the end of the build side's input.

    With more than `values_max` different values nothing is left out.
    """

    def __init__(self, *, values_max: int = VALUES_MAX) -> None:
        self._values_max = values_max
        self._values: set[bytes] | None = set()
        """None when there were too many."""
        self.has_reported = False

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        """Go on with what the state has; what was all then is reported again."""
        super().open(context, state)
        if state is not None:
            values, self.has_reported = msgpack.unpackb(state)
            self._values = None if values is None else set(values)
        if self.has_reported:
            self._send_report()

    def add(self, value: Any) -> None:
        """Add a plain value; a key of several parts is a list. Raises ValueNotPlain,
        AlreadyReported.
        """
        if self.has_reported:
            raise AlreadyReported(
                f"the value {value!r} was added after report(), when the splits that it may need "
                "could have been left out; report at the end of the build side's input"
            )
        if self._values is not None:
            self._values.add(packed_value(value))
            if len(self._values) > self._values_max:
                self._values = None

    def report(self) -> None:
        """That was all; once, later calls change nothing."""
        if not self.has_reported:
            self.has_reported = True
            self._send_report()

    def snapshot(self, checkpoint_id: int) -> bytes:
        """The values so far, and whether that is all."""
        packed: bytes = msgpack.packb([self._data().to_plain(), self.has_reported])
        return packed

    def _data(self) -> FilteringData:
        return FilteringData(None if self._values is None else frozenset(self._values))

    def _send_report(self) -> None:
        self.context.send_to_coordinator(["report", self._data().to_plain()])
