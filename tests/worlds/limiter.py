"""A rate limiter with a timer, as a user writes it, whose tasks take numbers at the rate that they
are given: right, and with a task that forgets rows at the notice of a checkpoint.
"""

from __future__ import annotations

import json
from concurrent.futures import Future
from typing import Any

from epochgate.runtime import (
    Committables,
    Committer,
    CoordinatorContext,
    CoordinatorProvider,
    Operator,
    OperatorContext,
    OperatorCoordinator,
    Program,
    SubtaskGateway,
    Work,
)
from epochgate.testing import World

TICK_S = 0.2
SHARE = 4


class Limiter(OperatorCoordinator):
    """Gives each task its share of a rate at every tick."""

    def __init__(self, context: CoordinatorContext) -> None:
        self.context = context
        self.ticks = 0
        self.gateways: dict[int, SubtaskGateway] = {}

    def start(self) -> None:
        self.context.post_later(TICK_S, self.tick)

    def tick(self) -> None:
        self.ticks += 1
        for gateway in self.gateways.values():
            gateway.send_event([self.ticks, SHARE])
        self.context.post_later(TICK_S, self.tick)

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        self.gateways[subtask] = gateway

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        self.gateways.pop(subtask, None)

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        result.set_result(json.dumps(self.ticks).encode())

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        self.gateways.clear()
        self.ticks = 0 if state is None else json.loads(state)


class LimiterProvider(CoordinatorProvider):
    operator_id = "limiter"

    def create(self, context: CoordinatorContext) -> Limiter:
        return Limiter(context)


class Taking(Operator):
    """Takes numbers at the rate that it is given, and hands them over."""

    def __init__(self, last: int) -> None:
        self.last = last

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        self.rows: list[int] = []
        self.handed_over: dict[int, int] = {}
        self.quota = 0
        self.position = context.subtask if state is None else json.loads(state)

    def handle_event(self, event: Any) -> None:
        self.quota = event[1]

    def take(self) -> Work:
        if self.position >= self.last:
            return Work.ENDED
        if not self.quota:
            return Work.IDLE
        self.quota -= 1
        self.rows.append(self.position)
        self.position += 2
        return Work.DONE

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        self.handed_over[checkpoint_id] = len(self.rows)
        return list(self.rows)

    def snapshot(self, checkpoint_id: int) -> bytes:
        return json.dumps(self.position).encode()

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        del self.rows[: self.handed_over[checkpoint_id]]
        self.handed_over.clear()


class Forgetting(Taking):
    """Forgets what it took between a barrier and the notice of its checkpoint."""

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.rows.clear()


class TakingProgram(Program):
    """Lets its operator take."""

    def __init__(self, operator: Taking) -> None:
        self.operator = operator

    @property
    def operators(self) -> dict[str, Operator]:
        return {"limiter": self.operator}

    def work(self) -> Work:
        return self.operator.take()


class Table(Committer):
    """Keeps the rows of each checkpoint."""

    def __init__(self, pages: dict[int, Committables]) -> None:
        self.pages = pages

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        self.pages[checkpoint_id] = committables


def limited(operator: type[Taking], last: int = 60) -> Any:
    """The body of a test: each number is committed once."""

    def body(world: World) -> None:
        pages: dict[int, Committables] = {}
        job = world.job(
            LimiterProvider(),
            program=lambda subtask: TakingProgram(operator(last)),
            subtasks=2,
            committer=lambda: Table(pages),
        )
        for _ in range(3):
            world.move(1.0)
            job.checkpoint()
        world.calm()
        while not job.is_over:
            world.move(1.0)
        rows = [row for page in pages.values() for of_one in page.values() for row in of_one]
        assert sorted(rows) == list(range(last))

    return body
