"""The program of a certification's job: numbers rows, and writes them to the sink."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, Protocol

from epochgate.runtime.api.operator import Operator, OperatorContext, Program, Work
from epochgate.runtime.api.sink import Sink
from epochgate.runtime.api.sink_operator import SinkOperator
from epochgate.runtime.testing.certification.case import SinkCase, expected_row
from epochgate.runtime.testing.certification.claims import ROWS_OF_LANE, SOURCE

SINK: Final = "sink"
LANES: Final = 2
"""Rows come in lanes, which the subtasks share out, so that any parallelism has the same rows."""


class Allowance(Protocol):
    """The bound on how far the program may go."""

    case: SinkCase
    allowed: list[int]
    has_ended: bool


class RowSource(Operator):
    """Numbers the rows of its lanes, as many as it is allowed to."""

    def __init__(self) -> None:
        self.next: dict[int, int] = {}

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        """Go on behind the rows of the checkpoint."""
        lanes = range(context.subtask, LANES, context.parallelism)
        read = json.loads(state) if state else dict.fromkeys(lanes, 0)
        self.next = {int(lane): position for lane, position in read.items()}

    def snapshot(self, checkpoint_id: int) -> bytes:
        """The position in each lane."""
        return json.dumps(self.next).encode()


def redistribute(states: Mapping[int, bytes], parallelism: int) -> dict[int, bytes]:
    """Give each subtask of another parallelism its lanes."""
    positions = {int(k): v for state in states.values() for k, v in json.loads(state).items()}
    return {
        subtask: json.dumps(
            {lane: positions[lane] for lane in range(subtask, LANES, parallelism)}
        ).encode()
        for subtask in range(parallelism)
    }


class RowProgram(Program):
    """Writes what is allowed, one row in a batch."""

    def __init__(self, run: Allowance, sink: Sink) -> None:
        self._run, self.source = run, RowSource()
        self.sink_made, self.sink = sink, SinkOperator(sink)

    @property
    def operators(self) -> Mapping[str, Operator]:
        """The source first."""
        return {SOURCE: self.source, SINK: self.sink}

    def work(self) -> Work:
        """Write a row."""
        for lane, position in self.source.next.items():
            if position < self._run.allowed[lane]:
                batch = self._run.case.batch([expected_row(lane * ROWS_OF_LANE + position)])
                if not self.sink.may_write(batch):
                    return Work.IDLE
                self.sink.write(batch)
                self.source.next[lane] += 1
                return Work.DONE
        return Work.ENDED if self._run.has_ended else Work.IDLE
