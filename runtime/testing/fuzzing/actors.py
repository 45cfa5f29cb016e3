"""The user code of a fuzzed job: coordinators that count what they send, operators that list what
they handle, and a committer with a table; all of them write to the record.

They keep the contract of users: a coordinator goes back when it is told to, an operator hands over
again what no completed checkpoint holds, a commit is idempotent.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import msgpack

from epochgate.runtime.api.committer import Committables, Committer, RetryLater
from epochgate.runtime.api.coordinator import (
    CoordinatorContext,
    CoordinatorProvider,
    OperatorCoordinator,
    SubtaskGateway,
)
from epochgate.runtime.api.operator import Operator, OperatorContext, Program, Work
from epochgate.runtime.testing.fuzzing.record import Record, operator_id

LAST = -1
"""A negative event tells the subtask that its coordinator has no more; it is counted as well."""


class Poison(Exception):
    """User code was told to raise."""


@dataclass
class Orders:
    """What the fuzzer wants of user code; each is obeyed once."""

    answers: dict[int, str] = field(default_factory=dict)
    """Coordinator -> how it answers a checkpoint: `now`, `raise`, or later, which is the rule."""
    poison: set[tuple[int, str]] = field(default_factory=set)
    """(subtask, `open` | `handle` | `snapshot` | `work`) that raises next."""
    commit: list[str] = field(default_factory=list)
    """What the next commits come to: `retry`, `retry_after` (although it was done), `refuse`."""


@dataclass
class Pending:
    """A checkpoint that a coordinator was asked for and has not answered."""

    checkpoint: int
    result: Future[bytes]


class CountingCoordinator(OperatorCoordinator):
    """Sends numbered events; its state is how many it has sent to each subtask."""

    def __init__(
        self, context: CoordinatorContext, number: int, run: str, record: Record, orders: Orders
    ) -> None:
        self.context, self.number, self.run = context, number, run
        self.record, self.orders = record, orders
        self.sent = [0] * context.parallelism
        self.gateways: dict[int, SubtaskGateway] = {}
        self.old_gateways: list[SubtaskGateway] = []
        self.pending: list[Pending] = []
        self._is_started = False
        self._is_restored = False
        self._newest: dict[int, int] = {}
        self._told: dict[int, int] = {}
        """Subtask -> the attempt that was told that there is no more."""
        self._snapshots: dict[int, list[int]] = {}
        self._heard: dict[int, tuple[str, int]] = {}

    def start(self) -> None:
        """It may be told of subtasks from now on."""
        self._is_started = True
        if not self._is_restored:
            self._note_all_restored(0)

    def send(self, subtask: int) -> None:
        """Send the next event to a subtask whose gateway is known."""
        self._send(self.gateways[subtask], self.sent[subtask] + 1)
        self.sent[subtask] += 1

    def send_by(self, gateway: SubtaskGateway) -> None:
        """Send through a gateway of the past; a coordinator does not count on that."""
        self._send(gateway, 10**6)

    def finish(self, subtask: int) -> None:
        """Tell the attempt that is there that no more will come, once."""
        gateway = self.gateways.get(subtask)
        if gateway is not None and self._told.get(subtask) != gateway.attempt:
            self._told[subtask] = gateway.attempt
            self._send(gateway, LAST)

    def _send(self, gateway: SubtaskGateway, number: int) -> None:
        event = [self.run, gateway.attempt, gateway.subtask, number]
        self.record.futures.append(gateway.send_event(event))

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        """Answer as ordered."""
        answer = self.orders.answers.get(self.number, "later")
        if answer == "raise":
            del self.orders.answers[self.number]
            raise Poison("checkpoint")
        pending = Pending(checkpoint_id, result)
        self.pending.append(pending)
        if answer == "now":
            self.answer(pending)

    def answer(self, pending: Pending, how: str = "succeed") -> None:
        """Complete a future: this is the moment of the snapshot."""
        self.pending.remove(pending)
        if how == "fail":
            pending.result.set_exception(Poison("snapshot"))
        elif how == "cancel":
            pending.result.cancel()
        else:
            self._snapshots[pending.checkpoint] = list(self.sent)
            pending.result.set_result(msgpack.packb(self.sent))

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        """Go back with all subtasks."""
        self._is_restored = True
        self._note_all_restored(checkpoint_id)
        zero = [0] * self.context.parallelism
        self.sent = list(msgpack.unpackb(state)) if state is not None else zero
        self._snapshots = {checkpoint_id: list(self.sent)}
        for subtask in range(self.context.parallelism):
            self._hear("reset", subtask, 0)
        self.gateways.clear()

    def subtask_reset(self, subtask: int, checkpoint_id: int) -> None:
        """Take back what the subtask was told after the checkpoint."""
        self.record.note_restored(f"subtask {subtask}", checkpoint_id)
        self._hear("reset", subtask, 0)
        self.sent[subtask] = self._snapshots[checkpoint_id][subtask] if checkpoint_id else 0

    def _note_all_restored(self, checkpoint_id: int) -> None:
        self.record.note_restored(f"coordinator {self.number}", checkpoint_id)
        for subtask in range(self.context.parallelism):
            self.record.note_restored(f"subtask {subtask}", checkpoint_id)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._note_told(checkpoint_id, "completed")

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._note_told(checkpoint_id, "aborted")

    def _note_told(self, checkpoint_id: int, end: str) -> None:
        self.record.note_told(f"coordinator {self.number}", self.run, checkpoint_id, end)

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        self._hear("ready", subtask, attempt)
        if not self._is_started:
            self.record.note("contract", f"coordinator {self.number} was never started")
        if attempt <= self._newest.get(subtask, -1):
            self.record.note("contract", f"attempt {attempt} of subtask {subtask} is ready again")
        self._newest[subtask] = attempt
        self.gateways[subtask] = gateway

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        self._hear("failed", subtask, attempt)
        gateway = self.gateways.pop(subtask, None)
        if gateway is not None:
            self.old_gateways.append(gateway)

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        if self._heard.get(subtask) != ("ready", attempt):
            self.record.note(
                "contract",
                f"coordinator {self.number} got {event!r} from attempt {attempt} of subtask "
                f"{subtask} and had last heard {self._heard.get(subtask)}",
            )

    def _hear(self, what: str, subtask: int, attempt: int) -> None:
        before = self._heard.get(subtask, ("reset", 0))
        allowed = {
            "ready": ("reset",),
            "failed": ("ready", "reset"),
            "reset": ("failed", "reset"),
        }
        is_other = what == "failed" and before[0] == "ready" and before[1] != attempt
        if before[0] not in allowed[what] or is_other:
            self.record.note(
                "contract",
                f"coordinator {self.number} heard {what} of attempt {attempt} of subtask {subtask} "
                f"after {before[0]} of {before[1]}",
            )
        self._heard[subtask] = (what, attempt)


class CountingProvider(CoordinatorProvider):
    """Makes coordinator `number` of a start, and keeps it in `coordinator`."""

    def __init__(self, number: int, run: str, record: Record, orders: Orders) -> None:
        self._make: Callable[[CoordinatorContext], CountingCoordinator] = lambda context: (
            CountingCoordinator(context, number, run, record, orders)
        )
        self._number = number
        self.coordinator: CountingCoordinator

    @property
    def operator_id(self) -> str:
        return operator_id(self._number)

    def create(self, context: CoordinatorContext) -> OperatorCoordinator:
        self.coordinator = self._make(context)
        return self.coordinator


class ListingOperator(Operator):
    """Its state is the list of the events handled; each of them is a row of output."""

    def __init__(self, number: int, record: Record, orders: Orders) -> None:
        self.number, self.record, self.orders = number, record, orders
        self.seen: list[int] = []
        self._rows: list[list[int]] = []
        self._handed_over: dict[int, int] = {}
        self.is_told = False

    def obey(self, where: str) -> None:
        """Raise if that was ordered."""
        order = (self.context.subtask, where)
        if order in self.orders.poison:
            self.orders.poison.discard(order)
            raise Poison(where)

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        self.obey("open")
        self.seen = [] if state is None else list(msgpack.unpackb(state))

    def handle_event(self, event: Any) -> None:
        self.obey("handle")
        context = self.context
        self.record.note_handled(
            context.run_id, context.subtask, context.attempt, self.number, event, len(self.seen) + 1
        )
        if event[3] == LAST:
            self.is_told = True
            return
        self.seen.append(event[3])
        self._rows.append([self.number, event[3]])
        context.send_to_coordinator(event[3])

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        self._handed_over[checkpoint_id] = len(self._rows)
        return list(self._rows)

    def snapshot(self, checkpoint_id: int) -> bytes:
        self.obey("snapshot")
        return bytes(msgpack.packb(self.seen))

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._note_told(checkpoint_id, "aborted")

    def _note_told(self, checkpoint_id: int, end: str) -> None:
        who = f"subtask {self.context.subtask}"
        self.record.note_told(who, self.context.run_id, checkpoint_id, end)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._note_told(checkpoint_id, "completed")
        done = self._handed_over.get(checkpoint_id)
        if done is None:
            account = f"subtask {self.context.subtask} heard that {checkpoint_id} is complete"
            self.record.note("contract", f"{account}, in which this attempt has no part")
        del self._rows[: done or 0]
        self._handed_over.clear()


class ListingProgram(Program):
    """One operator for each coordinator; it ends when all of them were told that there is no more.

    After a restore it has to be told again, so the word that there is no more belongs to no state.
    """

    def __init__(self, record: Record, orders: Orders) -> None:
        self._operators = {
            operator_id(c): ListingOperator(c, record, orders) for c in range(record.coordinators)
        }

    @property
    def operators(self) -> dict[str, ListingOperator]:
        return self._operators

    def work(self) -> Work:
        for operator in self._operators.values():
            operator.obey("work")
        is_over = all(operator.is_told for operator in self._operators.values())
        return Work.ENDED if is_over else Work.IDLE


class TableCommitter(Committer):
    """Commits to the record's table, which outlives the driver."""

    def __init__(self, record: Record, orders: Orders) -> None:
        self._record, self._orders = record, orders

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        order = self._orders.commit.pop(0) if self._orders.commit else "do"
        if order == "refuse":
            raise Poison("commit")
        if order != "retry":
            self._record.note_commit(checkpoint_id, committables)
        if order != "do":
            raise RetryLater("by order of the test")
