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

from epochgate.runtime.api.coordinator import BATCH_CHECKPOINT
from epochgate.runtime.api.operator import Operator, OperatorContext, Work
from epochgate.runtime.api.send_future import SendFuture
from epochgate.runtime.shell.send_window import EVENT_BYTES, GatewayFull
from epochgate.runtime.testing.fuzzing.actors import (
    CountingCoordinator,
    ListingOperator,
    ListingProgram,
    Orders,
)
from epochgate.runtime.testing.fuzzing.record import Record, operator_id
from epochgate.runtime.testing.scripted import Script

BYTES = EVENT_BYTES + len(msgpack.packb(["run-0", 0, 0, 0]))
"""What an event weighs, where a closed job counts one byte."""
MEMORY = "memory"
"""The operator that keeps which receipts the others of its program have; it has no coordinator."""


class PlayedScript(Script):
    """Leaves it to the schedule when checkpoints are completed, and answers clients at once."""

    def __init__(self) -> None:
        super().__init__(
            is_completing=False, answer=lambda request: request, has_batch_snapshots=True
        )
        self.batch_futures: list[Future[bytes]] = []
        """Of snapshots without checkpoints, whichever coordinator was asked for them."""
        self.restore_errors: list[BaseException] = []
        """What the next restore raises; one at most."""
        self.broken = 0
        """How many restores were to raise."""

    def break_restore(self, error: BaseException) -> None:
        """Let the next restore raise."""
        self.broken += 1
        self.restore_errors.append(error)

    def end_restore(self) -> None:
        """Raise what the restore is to raise."""
        if self.restore_errors:
            raise self.restore_errors.pop()


class PlayedCoordinator(CountingCoordinator):
    """Answers its newest checkpoint when the schedule says so; the others in `results` were
    aborted, or are of the time before a reset.
    """

    script: PlayedScript
    newest = 0
    """The checkpoint that it was asked for last; 0 after a reset."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.waiting_for_room: dict[int, SendFuture] = {}
        """By subtask, what an event that was refused waits for."""
        for earlier in self.script.coordinators[-2:-1]:
            if isinstance(earlier, PlayedCoordinator):
                # What the coordinator before this one was asked for may still come, and be late.
                self.results, self.newest = earlier.results, earlier.newest
        if len(self.script.coordinators) > 1:
            self.script.end_restore()

    def may_send(self, subtask: int) -> bool:
        """Return whether an attempt of the subtask is ready, and no event waits for room."""
        room = self.waiting_for_room.get(subtask)
        return subtask in self.gateways and (room is None or room.done())

    def send_next(self, subtask: int) -> None:
        """Send the next event, or wait for room."""
        try:
            super().send_next(subtask)
        except GatewayFull:
            self.waiting_for_room[subtask] = self.gateways[subtask].when_room()

    def is_asked(self) -> bool:
        """Return whether it has a checkpoint to complete."""
        return self.newest in self.results

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        """Hold the future."""
        if checkpoint_id == BATCH_CHECKPOINT:
            self.script.batch_futures.append(result)
        else:
            self.newest = checkpoint_id
            super().checkpoint(checkpoint_id, result)

    def answer_late(self) -> None:
        """Complete the futures that are not to be completed any more."""
        for checkpoint in [other for other in self.results if other != self.newest]:
            self.results.pop(checkpoint).set_result(b"")

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        """Go back, and answer nothing that was asked before."""
        super().reset_to_checkpoint(checkpoint_id, state)
        self.newest = 0
        self.script.end_restore()


class PlayedOperator(ListingOperator):
    """Lists what it handles, and speaks when it is told to."""

    spoken = receipts = 0

    def handle_event(self, event: Any) -> None:
        self.note_event(event)

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

    def __init__(self, operators: Mapping[str, PlayedOperator]) -> None:
        self._operators = operators

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        known = {} if state is None else msgpack.unpackb(state)
        for name, operator in self._operators.items():
            operator.spoken = operator.receipts = known.get(name, 0)

    def snapshot(self, checkpoint_id: int) -> bytes:
        receipts = {name: operator.receipts for name, operator in self._operators.items()}
        return bytes(msgpack.packb(receipts))


class PlayedProgram(ListingProgram):
    """Has input until `has_ended` is set; with `is_to_speak`, its operators speak once each."""

    def __init__(self, record: Record, said: int) -> None:
        super().__init__(record, Orders())
        coordinators = range(record.coordinators)
        self.speakers = {operator_id(c): PlayedOperator(c, record, Orders()) for c in coordinators}
        self._said = said
        self.has_ended = self.is_to_speak = False

    @property
    def operators(self) -> dict[str, Any]:
        return {**self.speakers, MEMORY: Memory(self.speakers)}

    def may_speak(self) -> bool:
        """Return whether any operator has something left to say."""
        return any(operator.spoken < self._said for operator in self.speakers.values())

    def work(self) -> Work:
        if self.is_to_speak:
            self.is_to_speak = False
            for operator in self.speakers.values():
                if operator.spoken < self._said:
                    operator.speak()
            return Work.DONE
        return Work.ENDED if self.has_ended else Work.IDLE
