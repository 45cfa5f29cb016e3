"""The user code of a job on which a schedule is played: it does what the schedule says, and nothing
by itself.

Coordinators answer a checkpoint when they are told to, operators speak and say that their input has
ended when they are; what they send, receive and snapshot goes to the fuzzer's record, as there.
Operators number what they say to their coordinators, ask for receipts, and after a restore go on
behind the last one that they had a receipt for; coordinators remember the last that they heard.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

import msgpack

from epochgate.runtime.api.coordinator import (
    BATCH_CHECKPOINT,
    CoordinatorContext,
    CoordinatorProvider,
    OperatorCoordinator,
)
from epochgate.runtime.api.operator import Operator, OperatorContext, Work
from epochgate.runtime.api.send_future import SendFuture
from epochgate.runtime.testing.fuzzing.actors import (
    CountingCoordinator,
    ListingOperator,
    ListingProgram,
    Orders,
    Pending,
)
from epochgate.runtime.testing.fuzzing.record import Record, operator_id

MEMORY = "memory"
"""The operator that keeps which receipts the others of its program have; it has no coordinator."""


class ScriptedCoordinator(CountingCoordinator):
    """Keeps the future of the newest checkpoint until the schedule completes it, and those before
    it, whose checkpoints were aborted, in `forgotten`.

    Its state is how many events it has sent to each subtask, and then how many it has heard.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.forgotten: list[Pending] = []
        self.heard = [0] * self.context.parallelism
        self.batch_futures: list[Future[bytes]] = []

    def supports_batch_snapshot(self) -> bool:
        return True

    def handle_client_request(self, request: Any) -> Any:
        """Answer at once."""
        return request

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        """Hold the future."""
        if checkpoint_id == BATCH_CHECKPOINT:
            self.batch_futures.append(result)
            return
        self.forgotten += self.pending
        self.pending = [Pending(checkpoint_id, result)]

    def answer(self, pending: Pending, how: str = "succeed") -> None:
        """Complete the future, or fail it."""
        if how == "succeed":
            self.pending.remove(pending)
            self._snapshots[pending.checkpoint] = list(self.sent)
            pending.result.set_result(msgpack.packb(self.sent + self.heard))
        else:
            super().answer(pending, how)

    def answer_late(self, pending: Pending) -> None:
        """Complete a forgotten future."""
        self.forgotten.remove(pending)
        pending.result.set_result(b"")

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        """Go back, and answer nothing that was asked before."""
        counts = [] if state is None else msgpack.unpackb(state)
        subtasks = self.context.parallelism
        self.heard = counts[subtasks:] or [0] * subtasks
        sent = None if state is None else msgpack.packb(counts[:subtasks])
        super().reset_to_checkpoint(checkpoint_id, sent)
        self.forgotten += self.pending
        self.pending.clear()

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        super().handle_event_from_operator(subtask, attempt, event)
        self.heard[subtask] = max(self.heard[subtask], event)


class ScriptedProvider(CoordinatorProvider):
    """Makes one coordinator, another one when asked again, and keeps the last in `coordinator`."""

    def __init__(self, number: int, run: str, record: Record) -> None:
        self._number, self._run, self._record = number, run, record
        self.coordinator: ScriptedCoordinator
        self.batch_futures: list[Future[bytes]] = []
        """Of snapshots without checkpoints, whichever coordinator was asked for them."""

    @property
    def operator_id(self) -> str:
        return operator_id(self._number)

    def create(self, context: CoordinatorContext) -> OperatorCoordinator:
        self.coordinator = ScriptedCoordinator(
            context, self._number, self._run, self._record, Orders()
        )
        self.coordinator.batch_futures = self.batch_futures
        return self.coordinator


class ScriptedOperator(ListingOperator):
    """Lists what it handles, and speaks when it is told to."""

    spoken = receipts = 0

    def handle_event(self, event: Any) -> None:
        context = self.context
        self.record.note_handled(
            context.run_id, context.subtask, context.attempt, self.number, event, len(self.seen) + 1
        )
        self.seen.append(event[3])
        self._rows.append([self.number, event[3]])

    def speak(self) -> None:
        """Send the next event to the coordinator, and await its receipt."""
        self.spoken += 1
        future = self.context.send_with_receipt(self.spoken)
        future.add_done_callback(partial(self._note_receipt, self.spoken))

    def _note_receipt(self, event: int, future: SendFuture) -> None:
        if future.exception() is None:
            self.receipts = max(self.receipts, event)


class Memory(Operator):
    """Has in its state the last receipt of each operator."""

    def __init__(self, operators: Mapping[str, ScriptedOperator]) -> None:
        self._operators = operators

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        known = {} if state is None else msgpack.unpackb(state)
        for name, operator in self._operators.items():
            operator.spoken = operator.receipts = known.get(name, 0)

    def snapshot(self, checkpoint_id: int) -> bytes:
        receipts = {name: operator.receipts for name, operator in self._operators.items()}
        return bytes(msgpack.packb(receipts))


class ScriptedProgram(ListingProgram):
    """Has input until `has_ended` is set; with `is_to_speak`, its operators speak once each."""

    def __init__(self, record: Record, said: int) -> None:
        super().__init__(record, Orders())
        coordinators = range(record.coordinators)
        self.speakers = {
            operator_id(c): ScriptedOperator(c, record, Orders()) for c in coordinators
        }
        self._said = said
        self.has_ended = self.is_to_speak = False

    @property
    def operators(self) -> dict[str, Any]:
        return {**self.speakers, MEMORY: Memory(self.speakers)}

    def may_speak(self) -> bool:
        """Whether any operator has something left to say."""
        return any(operator.spoken < self._said for operator in self.speakers.values())

    def work(self) -> Work:
        if self.is_to_speak:
            self.is_to_speak = False
            for operator in self.speakers.values():
                if operator.spoken < self._said:
                    operator.speak()
            return Work.DONE
        return Work.ENDED if self.has_ended else Work.IDLE
