"""The program of one subtask of a pipeline: source, map, sink, one batch at a time.

Decides what a map may return, and that a subtask above its share of the rate waits without work.
Leaves to the machine `in_flight` when a batch is mapped, when it counts as taken from the source,
and whether it is part of a snapshot. Runs in the task, on its only thread.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from epochgate.fsm import Handles
from epochgate.models.in_flight import RecordsInFlight
from epochgate.runtime.api.operator import Operator, Program, Work
from epochgate.runtime.api.sink_operator import SinkOperator
from epochgate.runtime.pipeline.mapped import batches_of, place_of
from epochgate.runtime.pipeline.pace import Pace
from epochgate.runtime.pipeline.setting import SettingOperator
from epochgate.runtime.pipeline.waiting import IN_FLIGHT, WaitingBatches
from epochgate.runtime.source.operator import SourceOperator

SOURCE: Final = "source"
MAP: Final = "map"
SINK: Final = "sink"
"""The ids of a pipeline's own operators."""

Map = Callable[..., Any]


class MapOperator(Operator):
    """A map with state, or with a coordinator of its own (operator id `map`), or both."""

    @abstractmethod
    def map(self, batch: Any) -> Any:
        """Return the batch for the sink, an iterator of tables, or None for no records.

        Called once for each batch in an attempt. If the sink is not ready, the result is stored
        with this operator's state in the checkpoints until it is; it must then be an Arrow record
        batch or table, or a list of plain values.
        """

    def snapshot(self, checkpoint_id: int) -> bytes:
        """Return no state, unless it is overridden."""
        return b""


class PipelineProgram(Program):
    """One batch from source to sink at a time.

    `map`: from a batch, with the settings as arguments of their names, to what `batches_of`
    accepts; without a map a batch stays as it is. `beside` has the operators that are not
    the pipeline's own, by their ids; among them are those of the settings, given by the name of the
    argument and the id, and of the rate limits, given by their ids.
    """

    def __init__(
        self,
        source: SourceOperator,
        map: Map | MapOperator | None,  # the usual word
        sink: SinkOperator,
        *,
        beside: Mapping[str, Operator] | None = None,
        settings: Mapping[str, str] | None = None,
        rate_limits: Sequence[str] = (),
        pace: Pace | None = None,
    ) -> None:
        self._source, self._sink = source, sink
        self._beside = dict(beside or {})
        self._settings, self._rate_limits = dict(settings or {}), rate_limits
        self._pace = Pace() if pace is None else pace
        self._map_operator = map if isinstance(map, MapOperator) else None
        self._map = map.map if isinstance(map, MapOperator) else map
        self._map_place = place_of(self._map)
        self._waiting: list[Any] = []
        """Mapped batches that the sink has not accepted."""
        self._given: dict[str, Any] = {}
        """The settings with which they were mapped."""
        self._records: Any = None
        """What the source has shown last, which the machine has mapped and taken."""
        self._outcome = Work.IDLE
        self._system = Handles(RecordsInFlight)
        self._system.bind("in_flight", "batches", self)
        self._in_flight = self._system.in_flight
        self._kept: list[Any] = []
        self._stored = WaitingBatches(self._restore, self._at_barrier)
        self.rows_read = self.rows_written = 0
        """By this attempt."""

    @property
    def operators(self) -> Mapping[str, Operator]:
        """Settings first, then source, map and sink; all snapshots are of the same moment."""
        own: dict[str, Operator] = {SOURCE: self._source, SINK: self._sink}
        if self._map_operator is not None:
            own[MAP], own[IN_FLIGHT] = self._map_operator, self._stored
        return {**self._beside, **own}

    def work(self) -> Work:
        """Read, map and write one batch, or wait."""
        if (wait_s := self._wait_s()) > 0:
            self._source.context.wake_after(wait_s)
            return Work.IDLE
        self._outcome = Work.IDLE
        self._in_flight.work(bool(self._settings) and self._given != self._settings_now())
        self._system.settle()
        return self._outcome

    def pace_changed(self, records_per_s: float | None) -> None:
        """Do what a new share of the rate limits demands; nothing, unless it is overridden."""

    def taken(self, records: Any) -> None:
        """Do what else is to be done with records that are taken from the source; nothing, unless
        it is overridden.
        """

    def rows_in(self, records: Any) -> int:
        """Count the rows that the source has fetched."""
        return len(records)

    def metrics(self) -> dict[str, int | float]:
        """Rows of this attempt."""
        return {"rows_read": self.rows_read, "rows_written": self.rows_written}

    def _wait_s(self) -> float:
        context = self._source.context
        now_s = context.now_s()
        if self._rate_limits:
            limits = [self._value(operator_id) for operator_id in self._rate_limits]
            share = min((x / context.parallelism for x in limits if x is not None), default=None)
            if share != self._pace.per_s:
                self._pace.change(share, now_s)
                self.pace_changed(share)
        return self._pace.wait_s(now_s)

    def _value(self, operator_id: str) -> Any:
        operator = self._beside[operator_id]
        assert isinstance(operator, SettingOperator)
        return operator.value

    def _settings_now(self) -> dict[str, Any]:
        return {name: self._value(operator_id) for name, operator_id in self._settings.items()}

    def _restore(self, batches: list[Any]) -> None:
        self._waiting = batches
        self._in_flight.restore()

    def _at_barrier(self) -> tuple[list[Any], str]:
        self._kept = []
        self._in_flight.barrier()
        self._system.settle()
        return self._kept, self._map_place

    # port `batches`

    def look(self) -> None:
        """Ask the source for a batch, for the machine."""
        if (fetched := self._source.peek()) is not None:
            self._records = fetched.records
            self._in_flight.show(self._map_operator is not None)
        elif self._source.has_ended:
            self._outcome = Work.ENDED

    def map(self) -> None:
        """Map the batch and ask the sink for it, for the machine."""
        self._given = self._settings_now() if self._settings else {}
        records = self._records
        mapped = records if self._map is None else self._map(records, **self._given)
        self._waiting = batches_of(mapped, self._map_place)
        self.ask()

    def ask(self) -> None:
        """Ask the sink whether it is ready, for the machine."""
        for batch in self._waiting:
            if not self._sink.may_write(batch):
                return
        self._in_flight.accept()

    def take(self) -> None:
        """Move the source behind the batch, for the machine."""
        self._source.take()
        records = self._records
        self.taken(records)
        rows = self.rows_in(records)
        self.rows_read += rows
        self._pace.note(rows, self._source.context.now_s())

    def write(self) -> None:
        """Pass the mapped batches to the sink, for the machine."""
        waiting, self._waiting = self._waiting, []
        for batch in waiting:
            self._sink.write(batch)
            self.rows_written += len(batch)
        self._outcome = Work.DONE

    def keep(self) -> None:
        """Put the mapped batches into the snapshot, for the machine."""
        self._kept = self._waiting
