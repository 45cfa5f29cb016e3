"""The user code of a fuzzed job: scripted coordinators that number what they send, operators that
list what they handle, and a committer with a table; all of them write to the record.

They keep the contract of users: a coordinator goes back when it is told to, an operator hands over
again what no completed checkpoint holds, a commit is idempotent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from epochgate.runtime.api.committer import Committables, Committer, RetryLater
from epochgate.runtime.api.coordinator import CoordinatorContext, SubtaskGateway
from epochgate.runtime.api.operator import OperatorContext, Program, Work
from epochgate.runtime.testing.fuzzing.record import Record, operator_id
from epochgate.runtime.testing.scripted import (
    Script,
    ScriptedCoordinator,
    ScriptedOperator,
    ScriptedProvider,
)

LAST = -1
"""A negative event tells the subtask that its coordinator has no more; it is counted as well."""


class Poison(Exception):
    """User code was told to raise."""


@dataclass
class Orders:
    """The orders of the fuzzer to operators, programs and committers; each is obeyed once."""

    poison: set[tuple[int, str]] = field(default_factory=set)
    """(subtask, `open` | `handle` | `snapshot` | `work`) that raises next."""
    commit: list[str] = field(default_factory=list)
    """What the next commits come to: `retry`, `retry_after` (although it was done), `refuse`."""
    check: list[str] = field(default_factory=list)
    """One item for each checkpoint that the committer refuses before it is stored."""
    work: list[str] = field(default_factory=list)
    """What the next work after a commit raises."""


class CountingCoordinator(ScriptedCoordinator):
    """Sends numbered events, and holds against the contract what it is told."""

    def __init__(
        self, context: CoordinatorContext, script: Script, number: int, run: str, record: Record
    ) -> None:
        super().__init__(context, script)
        self.number, self.run, self.record = number, run, record
        self._is_started = False
        self._is_restored = False
        self._newest: dict[int, int] = {}
        self._told: dict[int, int] = {}
        """Subtask -> the attempt that was told that there is no more."""
        self._last_words: dict[int, tuple[str, int]] = {}

    @property
    def old_gateways(self) -> list[SubtaskGateway]:
        """The gateways of attempts that are not ready any more."""
        ready = self.gateways.values()
        return [gateway for gateway in self.all_gateways.values() if gateway not in ready]

    def start(self) -> None:
        """It may be told of subtasks from now on."""
        super().start()
        self._is_started = True
        if not self._is_restored:
            self._note_all_restored(0)

    def send_next(self, subtask: int) -> None:
        """Send the next event to a subtask whose gateway is known."""
        event = self._event(self.gateways[subtask], len(self.sent[subtask]) + 1)
        self.record.futures.append(self.send(subtask, event))

    def send_by(self, gateway: SubtaskGateway) -> None:
        """Send through a gateway of the past; a coordinator does not count on that."""
        self._send_uncounted(gateway, 10**6)

    def finish(self, subtask: int) -> None:
        """Tell the attempt that is there that no more will come, once."""
        gateway = self.gateways.get(subtask)
        if gateway is not None and self._told.get(subtask) != gateway.attempt:
            self._told[subtask] = gateway.attempt
            self._send_uncounted(gateway, LAST)

    def _send_uncounted(self, gateway: SubtaskGateway, number: int) -> None:
        self.record.futures.append(gateway.send_event(self._event(gateway, number)))

    def _event(self, gateway: SubtaskGateway, number: int) -> list[Any]:
        return [self.run, gateway.attempt, gateway.subtask, number]

    def answer(self, checkpoint_id: int, how: str = "succeed") -> None:
        """Complete a future: this is the moment of the snapshot."""
        if how == "succeed":
            self.complete(checkpoint_id)
        elif how == "fail":
            self.results.pop(checkpoint_id).set_exception(Poison("snapshot"))
        else:
            self.results.pop(checkpoint_id).cancel()

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        """Go back with all subtasks."""
        self._is_restored = True
        self._note_all_restored(checkpoint_id)
        super().reset_to_checkpoint(checkpoint_id, state)
        for subtask in range(self.context.parallelism):
            self._hear("reset", subtask, 0)

    def subtask_reset(self, subtask: int, checkpoint_id: int) -> None:
        """Take back what the subtask was told after the checkpoint."""
        self.record.note_restored(f"subtask {subtask}", checkpoint_id)
        self._hear("reset", subtask, 0)
        super().subtask_reset(subtask, checkpoint_id)

    def _note_all_restored(self, checkpoint_id: int) -> None:
        self.record.note_restored(f"coordinator {self.number}", checkpoint_id)
        for subtask in range(self.context.parallelism):
            self.record.note_restored(f"subtask {subtask}", checkpoint_id)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        super().notify_checkpoint_complete(checkpoint_id)
        self._note_told(checkpoint_id, "completed")

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        super().notify_checkpoint_aborted(checkpoint_id)
        self._note_told(checkpoint_id, "aborted")

    def _note_told(self, checkpoint_id: int, end: str) -> None:
        self.record.note_told(f"coordinator {self.number}", self.run, checkpoint_id, end)

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        super().execution_attempt_ready(subtask, attempt, gateway)
        self._hear("ready", subtask, attempt)
        if not self._is_started:
            self.record.note("contract", f"coordinator {self.number} was never started")
        if attempt <= self._newest.get(subtask, -1):
            self.record.note("contract", f"attempt {attempt} of subtask {subtask} is ready again")
        self._newest[subtask] = attempt

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        super().execution_attempt_failed(subtask, attempt, reason)
        self._hear("failed", subtask, attempt)

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        super().handle_event_from_operator(subtask, attempt, event)
        if self._last_words.get(subtask) != ("ready", attempt):
            self.record.note(
                "contract",
                f"coordinator {self.number} got {event!r} from attempt {attempt} of subtask "
                f"{subtask} and had last heard {self._last_words.get(subtask)}",
            )

    def _hear(self, what: str, subtask: int, attempt: int) -> None:
        before = self._last_words.get(subtask, ("reset", 0))
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
        self._last_words[subtask] = (what, attempt)


def providers_of(
    scripts: Sequence[Script],
    coordinator: type[CountingCoordinator],
    *,
    run: str,
    record: Record,
) -> tuple[ScriptedProvider, ...]:
    """Return what makes the coordinators of a start, one for each script."""
    return tuple(
        ScriptedProvider(
            operator_id(number), script, partial(coordinator, number=number, run=run, record=record)
        )
        for number, script in enumerate(scripts)
    )


class ListingOperator(ScriptedOperator):
    """Handles numbered events; each of them is a row of output."""

    def __init__(self, number: int, record: Record, orders: Orders) -> None:
        super().__init__()
        self.number, self.record, self.orders = number, record, orders
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

    def handle_event(self, event: Any) -> None:
        self.obey("handle")
        self.note_event(event)
        if event[3] != LAST:
            self.send(event[3])

    def note_event(self, event: Any) -> None:
        """Note an event; the last one, which says that there is no more, is no row."""
        context, due = self.context, len(self.handled) + 1
        self.record.note_handled(
            context.run_id, context.subtask, context.attempt, self.number, event, due
        )
        if event[3] == LAST:
            self.is_told = True
        else:
            super().handle_event(event[3])

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        return [[self.number, event] for event in super().prepare_commit(checkpoint_id)]

    def snapshot(self, checkpoint_id: int) -> bytes:
        self.obey("snapshot")
        return super().snapshot(checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        super().notify_checkpoint_aborted(checkpoint_id)
        self._note_told(checkpoint_id, "aborted")

    def _note_told(self, checkpoint_id: int, end: str) -> None:
        who = f"subtask {self.context.subtask}"
        self.record.note_told(who, self.context.run_id, checkpoint_id, end)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._note_told(checkpoint_id, "completed")
        if checkpoint_id not in self._handed_over:
            account = f"subtask {self.context.subtask} heard that {checkpoint_id} is complete"
            self.record.note("contract", f"{account}, in which this attempt has no part")
        super().notify_checkpoint_complete(checkpoint_id)


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

    def check(self, committables: Committables) -> None:
        if self._orders.check:
            raise Poison(self._orders.check.pop(0))

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        order = self._orders.commit.pop(0) if self._orders.commit else "do"
        if order == "refuse":
            raise Poison("commit")
        if order != "retry":
            self._record.note_commit(checkpoint_id, committables)
        if order != "do":
            raise RetryLater("by order of the test")


class WorkAfterCommits:
    """The work after a commit: it notes the checkpoint that is visible."""

    def __init__(self, record: Record, orders: Orders) -> None:
        self._record, self._orders = record, orders

    def __call__(self, checkpoint_id: int, committables: Committables) -> None:
        if self._orders.work:
            raise Poison(self._orders.work.pop(0))
        self._record.note_work(checkpoint_id, committables)
