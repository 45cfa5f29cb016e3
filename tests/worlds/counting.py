"""A coordinator that numbers what it sends to each task, each number once: right, and with the bugs
that users write.
"""

from __future__ import annotations

import json
from concurrent.futures import Future
from typing import Any

from epochgate.runtime import (
    CoordinatorContext,
    CoordinatorProvider,
    Operator,
    OperatorContext,
    OperatorCoordinator,
    SubtaskGateway,
)
from epochgate.testing import World, WorldJob


class Counting(OperatorCoordinator):
    """Sends 1, 2, 3 and so on to each task that is there."""

    def __init__(self, context: CoordinatorContext) -> None:
        self.context = context
        self.gateways: dict[int, SubtaskGateway] = {}
        self.sent = [0] * context.parallelism
        self.snapshots = {0: list(self.sent)}

    def start(self) -> None:
        pass

    def send(self) -> None:
        for subtask, gateway in self.gateways.items():
            self.sent[subtask] += 1
            gateway.send_event(self.sent[subtask])

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        self.gateways[subtask] = gateway

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        self.gateways.pop(subtask, None)

    def subtask_reset(self, subtask: int, checkpoint_id: int) -> None:
        self.sent[subtask] = self.snapshots[checkpoint_id][subtask]

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        self.snapshots[checkpoint_id] = list(self.sent)
        result.set_result(json.dumps(self.sent).encode())

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        self.gateways.clear()
        self.sent = [0] * self.context.parallelism if state is None else json.loads(state)
        self.snapshots = {checkpoint_id: list(self.sent)}


class CountingOn(Counting):
    """Does not take back what a task that failed was told after the checkpoint."""

    def subtask_reset(self, subtask: int, checkpoint_id: int) -> None:
        pass


class CountingTooEarly(Counting):
    """Takes the snapshot when it is asked, and completes it later, having sent more meanwhile."""

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        self.snapshots[checkpoint_id] = list(self.sent)
        state = json.dumps(self.sent).encode()
        self.context.post_later(0.1, result.set_result, state)


class CountingShort(Counting):
    """Forgets the snapshot of the very checkpoint that is complete, and then takes back all."""

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.snapshots = {id: sent for id, sent in self.snapshots.items() if id > checkpoint_id}

    def subtask_reset(self, subtask: int, checkpoint_id: int) -> None:
        self.sent[subtask] = self.snapshots.get(checkpoint_id, [0] * len(self.sent))[subtask]


class CountingProvider(CoordinatorProvider):
    operator_id = "count"

    def __init__(self, kind: type[Counting] = Counting) -> None:
        self.kind = kind

    def create(self, context: CoordinatorContext) -> Counting:
        return self.kind(context)


class Listing(Operator):
    """Lists what it was told."""

    heard: list[Any]

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        self.heard = [] if state is None else json.loads(state)

    def handle_event(self, event: Any) -> None:
        self.heard.append(event)

    def snapshot(self, checkpoint_id: int) -> bytes:
        return json.dumps(self.heard).encode()


def counting_job(world: World, kind: type[Counting] = Counting, **settings: Any) -> WorldJob:
    """A job of two tasks with the claims that every number comes once."""
    job = world.job(CountingProvider(kind), operators=Listing, subtasks=2, **settings)
    world.always(
        "each task hears 1, 2, 3 and so on",
        lambda: all(each.heard == [*range(1, len(each.heard) + 1)] for each in job.operators),
    )
    world.eventually(
        "each task has heard what was sent to it",
        lambda: [len(each.heard) for each in job.operators] == job.coordinator.sent,
    )
    return job


def sending(kind: type[Counting], sends: int = 3) -> Any:
    """A test that sends around a checkpoint."""

    def body(world: World) -> None:
        job = counting_job(world, kind)
        for _ in range(sends):
            job.coordinator.send()
            world.move()
            job.checkpoint()
        job.coordinator.send()
        world.move()

    return body
