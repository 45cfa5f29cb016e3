"""The user code of a job on which a schedule is played: it does what the schedule says, and nothing
by itself.

Coordinators answer a checkpoint when they are told to, and operators say that their input has ended
when they are; what they send, receive and snapshot goes to the fuzzer's record, as there.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from epochgate.runtime.coordinator import (
    CoordinatorContext,
    CoordinatorProvider,
    OperatorCoordinator,
)
from epochgate.runtime.fuzzing.actors import (
    CountingCoordinator,
    ListingOperator,
    ListingProgram,
    Orders,
    Pending,
)
from epochgate.runtime.fuzzing.record import Record, operator_id
from epochgate.runtime.operator import OperatorContext, Work


class ScriptedCoordinator(CountingCoordinator):
    """Keeps the future of the newest checkpoint until the schedule completes it."""

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        """Forget an earlier one, which was aborted."""
        self.pending = [Pending(checkpoint_id, result)]

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        """Go back, and answer nothing that was asked before."""
        super().reset_to_checkpoint(checkpoint_id, state)
        self.pending.clear()


class ScriptedProvider(CoordinatorProvider):
    """Makes one coordinator, and keeps it in `coordinator`."""

    def __init__(self, number: int, run: str, record: Record) -> None:
        self._number, self._run, self._record = number, run, record
        self.coordinator: ScriptedCoordinator

    @property
    def operator_id(self) -> str:
        return operator_id(self._number)

    def create(self, context: CoordinatorContext) -> OperatorCoordinator:
        self.coordinator = ScriptedCoordinator(
            context, self._number, self._run, self._record, Orders()
        )
        return self.coordinator


class ScriptedOperator(ListingOperator):
    """Lists what it handles, and says nothing to its coordinator."""

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(replace(context, send_to_coordinator=_say_nothing), state)


def _say_nothing(event: Any) -> None:
    """No step of the closed job has an operator speak."""


class ScriptedProgram(ListingProgram):
    """Has input until `has_ended` is set."""

    def __init__(self, record: Record) -> None:
        super().__init__(record, Orders())
        self._operators = {
            operator_id(c): ScriptedOperator(c, record, Orders())
            for c in range(record.coordinators)
        }
        self.has_ended = False

    def work(self) -> Work:
        return Work.ENDED if self.has_ended else Work.IDLE
