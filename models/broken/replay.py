"""Sinks that meet the replay window unprepared: rows are there twice, or not at all."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import Array, Int
from epochgate.fsm.system import machines
from epochgate.models.replay import Replay, Sink


class AppendingSink(Sink):
    """A sink that keeps no ledger."""

    def has(self, batch: int, driver: int) -> bool:
        return False


class Appending(Replay):
    """The driver dies after the sink has committed, and the batch is appended again."""

    CONSTANTS: ClassVar[dict[str, int]] = {"B": 1, "D": 2, "deaths": 1, "zombies": 0}

    sink: Sink = machines(AppendingSink)


class RunLedger(Sink):
    """A ledger keyed by the run of the query and the batch: a restart begins with an empty one."""

    writer: list[int] = Array(Int("D"), "B")
    """The driver that has written the batch."""

    def has(self, batch: int, driver: int) -> bool:
        return self.has_entry[batch] and self.writer[batch] == driver

    def write(self, batch: int, driver: int) -> None:
        self.has_entry[batch] = True
        self.writer[batch] = driver
        self.rows[batch] += 1


class KeyedByRun(Replay):
    """The ledger does not know what the run before this one has written."""

    CONSTANTS: ClassVar[dict[str, int]] = {"B": 1, "D": 2, "deaths": 1, "zombies": 0}

    sink: Sink = machines(RunLedger)


class OpenSink(Sink):
    """A sink that takes rows from any driver that has looked into the ledger."""

    def takes(self, driver: int) -> bool:
        return True


class Unfenced(Replay):
    """A zombie has looked into the ledger before its successor writes the batch, and writes after it."""

    CONSTANTS: ClassVar[dict[str, int]] = {"B": 1, "D": 2, "deaths": 0, "zombies": 1}

    sink: Sink = machines(OpenSink)


class HopefulSink(Sink):
    """A sink that takes each batch that is played again for one that it has."""

    def has(self, batch: int, driver: int) -> bool:
        return self.system.driver[driver].is_replay


class TakingReplaysForDone(Replay):
    """The driver dies before the sink has committed, and the sink takes the replay for a repeat."""

    CONSTANTS: ClassVar[dict[str, int]] = {"B": 1, "D": 2, "deaths": 1, "zombies": 0}

    sink: Sink = machines(HopefulSink)
