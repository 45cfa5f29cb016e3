"""The programs that the tests of the contract run in the tasks; the module travels to them by
value.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from epochgate.runtime import Operator, Program, Work
from epochgate.runtime.source import Source, SourceOperator
from tests.runtime.collect.counting import CountingProgram
from tests.spark.numbers_program import NumberOperator, NumberProgram

PIECE_S = 0.001


class Stateless(Operator):
    """Takes part in checkpoints with nothing."""

    def snapshot(self, checkpoint_id: int) -> bytes:
        return b""


class TwoOperatorsProgram(NumberProgram):
    """Numbers, and beside them an operator that does nothing."""

    def __init__(self, last: int, other: str) -> None:
        super().__init__(last)
        self._other = {other: Stateless()}

    @property
    def operators(self) -> dict[str, Operator]:
        return {**super().operators, **self._other}


class LateOperator(NumberOperator):
    """Begins with whatever number comes first, and tells its coordinator what it has handled."""

    def handle_event(self, event: Any) -> None:
        if self.number == 0:
            self.number = self.committed = event - 1
        super().handle_event(event)
        self.context.send_to_coordinator(event)


class LateProgram(NumberProgram):
    """Numbers, from any one on."""

    def __init__(self, last: int) -> None:
        super().__init__(last)
        self.operator = LateOperator()


class AlignedOperator(SourceOperator):
    """Knows the limit it was told, and the watermark it has come to."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.limit: int | None = None
        self.watermark = -1

    def handle_event(self, event: Any) -> None:
        super().handle_event(event)
        if event[0] == "align" and event[1] is not None:
            self.limit = event[1]

    def emit(self, records: Sequence[Any]) -> None:
        """The records are numbers from 0 on, and their watermarks are the same."""
        self.watermark = records[-1]


class TwoSpeedsProgram(Program):
    """Reads `eager` as far as it may, and `slow` a record at a time; raises when the eager one is
    further ahead than the drift, or was never held back.

    The eager one begins when both were told a limit: before that the slow one is unknown.
    """

    def __init__(self, eager: Source, slow: Source, drift: int) -> None:
        self.eager, self.slow, self.drift = AlignedOperator(eager), AlignedOperator(slow), drift
        self.held_back = 0

    @property
    def operators(self) -> dict[str, Operator]:
        return {"eager": self.eager, "slow": self.slow}

    def work(self) -> Work:
        if self.slow.limit is not None and self.eager.limit is not None:
            self._read_eagerly()
        time.sleep(PIECE_S)
        self.slow.step(self.slow.emit)
        if not (self.eager.has_ended and self.slow.has_ended):
            return Work.DONE
        assert self.held_back > 0, "the eager source never had to wait"
        return Work.ENDED

    def _read_eagerly(self) -> None:
        while self.eager.step(self.eager.emit) is Work.DONE:
            lead = self.eager.watermark - self.slow.watermark
            # A split is held back once its watermark is above the limit, so by one record more.
            assert lead <= self.drift + 1, f"{lead} ahead of the other source of its group"
        self.held_back += len(self.eager.splits) > 0


class MeasuredProgram(CountingProgram):
    """Tells how many rows it has made."""

    def metrics(self) -> dict[str, int | float]:
        return {"made": self.counter.number}
