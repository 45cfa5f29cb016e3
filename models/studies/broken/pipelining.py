"""Broken variants of records in flight: what happens without one of the rules of section 12 in
docs/protocol.md.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import Ignore, Row, machines
from epochgate.models.closed.pipelining import PipelineTasks
from epochgate.models.closed.surroundings.pipelining import TaskInFlight
from epochgate.models.in_flight import EMPTY, SHOWN, TAKEN

SMALL = {**PipelineTasks.CONSTANTS, "subtasks": 1, "records": 1, "F": 1}


class MappingAgain(TaskInFlight):
    """Maps the batch at each piece of work until the sink accepts it."""

    def ask(self) -> None:
        self.batches.map()


class MappedAgain(PipelineTasks):
    """A batch that waits is mapped again, although nothing has changed."""

    CONSTANTS: ClassVar[dict[str, int]] = SMALL

    in_flight: list[TaskInFlight] = machines(MappingAgain)


class TakingLate(TaskInFlight):
    """Takes the batch when the sink accepts it, whatever the map."""

    def has_state(self, has_state: bool) -> bool:
        return False


class TakenLate(PipelineTasks):
    """A barrier may come between a map with state and the source's position."""

    CONSTANTS: ClassVar[dict[str, int]] = SMALL

    in_flight: list[TaskInFlight] = machines(TakingLate)


class TakingEarly(TaskInFlight):
    """Takes the batch when it is mapped, whatever the map."""

    def has_state(self, has_state: bool) -> bool:
        return True


class TakenEarly(PipelineTasks):
    """The batch of a function is taken before the sink accepts it, and the shell stores none."""

    CONSTANTS: ClassVar[dict[str, int]] = SMALL

    in_flight: list[TaskInFlight] = machines(TakingEarly)


class Forgetting(TaskInFlight):
    """Leaves the mapped batch out of the snapshot."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in TaskInFlight.ROWS if row.trigger != "barrier"),
        Ignore("barrier", (EMPTY, SHOWN, TAKEN), None, "the batch is in memory"),
    )
    # fmt: on


class Forgotten(PipelineTasks):
    """A mapped batch that waits is not in the checkpoint."""

    CONSTANTS: ClassVar[dict[str, int]] = SMALL

    in_flight: list[TaskInFlight] = machines(Forgetting)
