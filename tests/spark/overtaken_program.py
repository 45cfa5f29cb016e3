"""A batch program whose first attempt of subtask 0 never comes to its end; sent to the workers."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from epochgate.runtime import (
    CoordinatorProvider,
    Operator,
    OperatorCoordinator,
    Program,
    SubtaskGateway,
    Work,
)

ROWS = [1, 2, 3]


class Distributor(OperatorCoordinator):
    """Gives each attempt of a subtask all of its rows."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def start(self) -> None:
        pass

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        result.set_result(b"")

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        self.calls.append(("reset to", checkpoint_id))

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        self.calls.append(("ready", subtask, attempt))
        for row in ROWS:
            gateway.send_event([attempt, row])

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        self.calls.append(("failed", subtask, attempt))

    def subtask_reset(self, subtask: int, checkpoint_id: int) -> None:
        self.calls.append(("reset", subtask, checkpoint_id))


class Provider(CoordinatorProvider):
    operator_id = "rows"

    def __init__(self) -> None:
        self.coordinator = Distributor()

    def create(self, context: Any) -> Distributor:
        return self.coordinator


class Reader(Operator):
    def __init__(self) -> None:
        self.rows: list[int] = []

    def handle_event(self, event: Any) -> None:
        attempt, row = event
        if attempt != self.context.attempt:
            raise RuntimeError(f"{event} came to attempt {self.context.attempt}")
        self.rows.append(row)

    def snapshot(self, checkpoint_id: int) -> bytes:
        return b""

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        return [[self.context.attempt, self.rows]]


class Overtaken(Program):
    def __init__(self, subtask: int) -> None:
        self.subtask, self.reader = subtask, Reader()

    @property
    def operators(self) -> Mapping[str, Operator]:
        return {"rows": self.reader}

    def work(self) -> Work:
        is_stuck = self.subtask == 0 and self.reader.context.attempt == 0
        return Work.ENDED if self.reader.rows == ROWS and not is_stuck else Work.IDLE
