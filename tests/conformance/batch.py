"""A snapshot without a checkpoint: its machine, and the sends that it waits for.

Decides nothing: it counts for the machine which sends are on their way when the future completes,
and tells it the outcome of each, as the runtime does.
"""

from __future__ import annotations

from typing import Protocol

from epochgate.models.batch_snapshot import BatchSnapshotPort, BatchSnapshots
from epochgate.runtime.api.coordinator import BATCH_CHECKPOINT
from tests.conformance.standins import Coordinator, bind, fire
from tests.conformance.wire import Send


class Asker(Protocol):
    """A client whose coordinator is asked, and who hears the result."""

    coordinator: Coordinator
    undecided: dict[Send, None]

    def part_has_failed(self, checkpoint: int) -> None: ...
    def part_is_ready(self, checkpoint: int) -> None: ...
    def keep(self, checkpoint: int, state: str) -> None: ...


class Batch(BatchSnapshotPort):
    """One coordinator's snapshots without checkpoints."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker
        system = BatchSnapshots(coordinators=1)
        bind(system, "batch_snapshot", "requester", self)
        self._machine = system.batch_snapshot[0]
        self._awaited: dict[Send, int] = {}

    def ask(self) -> None:
        fire(self._machine.ask)

    def answer(self, state: str | None) -> None:
        """The coordinator's future succeeds with a state, or fails."""
        number = self._machine.number
        if state is None:
            fire(self._machine.fail, number)
            return
        self._awaited.update(dict.fromkeys(self._asker.undecided, number))
        fire(self._machine.succeed, number, len(self._asker.undecided), state)

    def decided(self, send: Send) -> None:
        """The outcome of a send is known."""
        if number := self._awaited.pop(send, 0):
            fire(self._machine.confirm if send.is_ok else self._machine.lose, number)

    def ask_coordinator(self, number: int) -> None:
        self._asker.coordinator.checkpoint(BATCH_CHECKPOINT)

    def keep(self, state: str) -> None:
        self._asker.keep(BATCH_CHECKPOINT, state)

    def taken(self) -> None:
        self._asker.part_is_ready(BATCH_CHECKPOINT)

    def failed(self) -> None:
        self._asker.part_has_failed(BATCH_CHECKPOINT)

    def refused(self) -> None:
        self._asker.part_has_failed(BATCH_CHECKPOINT)
