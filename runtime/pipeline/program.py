"""The program of one subtask of a pipeline: source, map, sink, one batch at a time.

Decides the order (a batch is taken from the source only once the sink takes it), that a batch which
has to wait is mapped again when a setting has changed meanwhile, and that a subtask above its share
of the rate waits without work. Runs in the task, on its only thread.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from epochgate.runtime.api.operator import Operator, Program, Work
from epochgate.runtime.api.sink_operator import SinkOperator
from epochgate.runtime.pipeline.pace import Pace
from epochgate.runtime.pipeline.setting import SettingOperator
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
        """Return the batch for the sink, an iterator of batches, or None for no records."""

    def snapshot(self, checkpoint_id: int) -> bytes:
        """Return no state, unless it is overridden."""
        return b""


class PipelineProgram(Program):
    """One batch from source to sink at a time.

    `map`: from a batch, with the settings as arguments of their names, to a batch, an iterator of
    batches, or none; without a map a batch stays as it is. `beside` has the operators that are not
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
        self._mapped: tuple[dict[str, Any], list[Any]] | None = None
        """What waits for the sink, and the settings that it was mapped with."""
        self.rows_read = self.rows_written = 0
        """By this attempt."""

    @property
    def operators(self) -> Mapping[str, Operator]:
        """Settings first, then source, map and sink; all snapshots are of the same moment."""
        own: dict[str, Operator] = {SOURCE: self._source, SINK: self._sink}
        if self._map_operator is not None:
            own[MAP] = self._map_operator
        return {**self._beside, **own}

    def work(self) -> Work:
        """Read, map and write one batch, or wait."""
        if (wait_s := self._wait_s()) > 0:
            self._source.context.wake_after(wait_s)
            return Work.IDLE
        fetched = self._source.peek()
        if fetched is None:
            return Work.ENDED if self._source.has_ended else Work.IDLE
        batches = self._batches(fetched.records)
        if not all(map(self._sink.may_write, batches)):
            return Work.IDLE
        self._source.take()
        self._mapped = None
        for batch in batches:
            self._sink.write(batch)
            self.rows_written += len(batch)
        self.taken(fetched.records)
        rows = self.rows_in(fetched.records)
        self.rows_read += rows
        self._pace.note(rows, self._source.context.now_s())
        return Work.DONE

    def taken(self, records: Any) -> None:
        """Do what else is to be done with records once they were taken from the source and written;
        nothing, unless it is overridden.
        """

    def rows_in(self, records: Any) -> int:
        """How many rows the source has fetched."""
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
        return self._pace.wait_s(now_s)

    def _value(self, operator_id: str) -> Any:
        operator = self._beside[operator_id]
        assert isinstance(operator, SettingOperator)
        return operator.value

    def _batches(self, records: Any) -> list[Any]:
        """What the sink is to get; the same as long as it waits and no setting has changed."""
        settings = {name: self._value(each) for name, each in self._settings.items()}
        if self._mapped is not None and self._mapped[0] == settings and self._map_operator is None:
            return self._mapped[1]
        mapped = records if self._map is None else self._map(records, **settings)
        batches = list(mapped) if isinstance(mapped, Iterator) else [mapped]
        batches = [batch for batch in batches if batch is not None]
        self._mapped = settings, batches
        return batches
