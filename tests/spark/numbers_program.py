"""A job whose outcome shows each fault: numbers go to the tasks as events, and come out committed.

The coordinator sends 1, 2, 3, ... to each subtask. Its operator refuses a gap or a repetition, and
hands the range since the last completed checkpoint to the committer.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from typing import Any

import msgpack

from epochgate.runtime import (
    Committables,
    Committer,
    CoordinatorContext,
    CoordinatorProvider,
    JobConfiguration,
    Operator,
    OperatorContext,
    OperatorCoordinator,
    Program,
    SubtaskGateway,
    Work,
)
from epochgate.runtime.api.restart_strategies import FixedDelay

TICK_S = 0.005


class NumberCoordinator(OperatorCoordinator):
    def __init__(self, context: CoordinatorContext, last: int, is_held: threading.Event) -> None:
        self.context, self.last, self.is_held = context, last, is_held
        self.sent: dict[int, int] = {}
        self.gateways: dict[int, SubtaskGateway] = {}
        self.snapshots: dict[int, dict[int, int]] = {}
        self.heard: list[Any] = []
        self.is_over = False

    def start(self) -> None:
        self.send_next()

    def send_next(self) -> None:
        for subtask, gateway in self.gateways.items():
            sent = self.sent.get(subtask, 0)
            # The last number waits while it is held, so that the job cannot end before the test.
            if sent < self.last and not (self.is_held.is_set() and sent == self.last - 1):
                self.sent[subtask] = sent + 1
                gateway.send_event(sent + 1)
        if not self.is_over:
            self.context.post_later(TICK_S, self.send_next)

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        self.snapshots[checkpoint_id] = dict(self.sent)
        result.set_result(msgpack.packb(self.sent))

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        self.gateways = {}
        self.sent = {} if state is None else msgpack.unpackb(state, strict_map_key=False)
        self.snapshots[checkpoint_id] = dict(self.sent)

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        self.gateways[subtask] = gateway

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        self.gateways.pop(subtask, None)

    def subtask_reset(self, subtask: int, checkpoint_id: int) -> None:
        self.sent[subtask] = self.snapshots.get(checkpoint_id, {}).get(subtask, 0)

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        self.heard.append(event)

    def close(self) -> None:
        self.is_over = True


class NumberProvider(CoordinatorProvider):
    operator_id = "numbers"

    def __init__(self, last: int) -> None:
        self.last = last
        self.is_held = threading.Event()
        self.coordinator: NumberCoordinator | None = None

    def create(self, context: CoordinatorContext) -> OperatorCoordinator:
        self.coordinator = NumberCoordinator(context, self.last, self.is_held)
        return self.coordinator


class NumberOperator(Operator):
    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        self.number = 0 if state is None else msgpack.unpackb(state)
        self.committed = self.number
        self.offered: dict[int, int] = {}

    def handle_event(self, event: Any) -> None:
        if event != self.number + 1:
            raise AssertionError(f"{event} came after {self.number}")
        self.number = event

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        self.offered[checkpoint_id] = self.number
        return [[self.committed + 1, self.number]]

    def snapshot(self, checkpoint_id: int) -> bytes:
        data: bytes = msgpack.packb(self.number)
        return data

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.committed = self.offered[checkpoint_id]


class NumberProgram(Program):
    def __init__(self, last: int) -> None:
        self.operator = NumberOperator()
        self.last = last

    @property
    def operators(self) -> dict[str, Operator]:
        return {"numbers": self.operator}

    def work(self) -> Work:
        return Work.ENDED if self.operator.number == self.last else Work.IDLE

    def metrics(self) -> dict[str, int | float]:
        return {"number": self.operator.number}


class BusyProgram(NumberProgram):
    """Works without end, in pieces that last long or not at all, and hears nothing meanwhile."""

    def __init__(self, piece_s: float) -> None:
        super().__init__(0)
        self.piece_s = piece_s

    def work(self) -> Work:
        until_s = time.monotonic() + self.piece_s
        while time.monotonic() < until_s:
            pass
        return Work.DONE


class FailingProgram(NumberProgram):
    """Raises at its first piece of work."""

    def __init__(self, error: Exception) -> None:
        super().__init__(0)
        self.error = error

    def work(self) -> Work:
        raise self.error


class RangeCommitter(Committer):
    """Keeps the ranges of each checkpoint; committing one again changes nothing."""

    def __init__(self) -> None:
        self.committed: dict[int, Committables] = {}

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        again = self.committed.setdefault(checkpoint_id, committables)
        assert again == committables, f"checkpoint {checkpoint_id} was committed with other ranges"

    def problems(self, parallelism: int, last: int) -> list[str]:
        """What is not exactly once."""
        expected = dict.fromkeys(range(parallelism), 1)
        problems = []
        for checkpoint_id in sorted(self.committed):
            for subtask, ranges in self.committed[checkpoint_id].items():
                for first, to in ranges:
                    if first != expected[subtask]:
                        wrong = f"{first} instead of {expected[subtask]}"
                        problems.append(f"subtask {subtask}, checkpoint {checkpoint_id}: {wrong}")
                    expected[subtask] = to + 1
        short = {s: n - 1 for s, n in expected.items() if n != last + 1}
        return problems + ([f"the last numbers are {short} instead of {last}"] if short else [])


def number_configuration(
    provider: CoordinatorProvider, parallelism: int = 4, **changes: Any
) -> JobConfiguration:
    settings: dict[str, Any] = {
        "checkpoint_interval_s": 0.15,
        "tolerable_checkpoint_failures": 1000,
        "restart_strategy": FixedDelay(1000, 0.0),
        **changes,
    }
    return JobConfiguration("numbers", parallelism, (provider,), **settings)
