"""The Parquet sink's coordinator: makes all subtasks write one schema, before any of them writes.

Decides whose schema counts: that of the target's files, or else of the subtask that asks first. A
checkpoint whose files differ in their columns could never be committed, so nothing may be written
before there is agreement. Runs on the job's queue.

Event to a sink: ["schema", Arrow schema]. Event from a sink: ["schema", Arrow schema], its wish;
both serialized by Arrow.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import msgpack

from epochgate.runtime import (
    CoordinatorContext,
    CoordinatorProvider,
    OperatorCoordinator,
    SubtaskGateway,
)
from epochgate.spark.files.errors import IncompatibleState

STATE_VERSION = 1


class SchemaCoordinator(OperatorCoordinator):
    """Answers every sink with the one schema; `visible` is that of the target's files, if any."""

    def __init__(self, visible: bytes | None) -> None:
        self._visible = visible
        self._agreed = visible
        self._gateways: dict[int, SubtaskGateway] = {}

    def start(self) -> None:
        """Nothing to begin."""

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        """The first wish counts, for everybody; who comes later has been told or is told next."""
        if self._agreed is None:
            self._agreed = event[1]
            for gateway in self._gateways.values():
                gateway.send_event(["schema", self._agreed])

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        """Tell the schema if there is one."""
        self._gateways[subtask] = gateway
        if self._agreed is not None:
            gateway.send_event(["schema", self._agreed])

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        """What was agreed stays agreed."""
        self._gateways.pop(subtask, None)

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        """The schema so far."""
        result.set_result(msgpack.packb([STATE_VERSION, self._agreed]))

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        """Begin from the schema of then, or from the target's."""
        self._gateways.clear()
        self._agreed = self._visible
        if state is not None:
            version, agreed = msgpack.unpackb(state)
            if version != STATE_VERSION:
                raise IncompatibleState("schema coordinator", version, STATE_VERSION)
            self._agreed = agreed or self._visible


class SchemaProvider(CoordinatorProvider):
    """Makes the coordinator of the sink with this operator id."""

    def __init__(self, operator_id: str, visible: bytes | None) -> None:
        self._operator_id, self._visible = operator_id, visible

    @property
    def operator_id(self) -> str:
        """The name of the sink operator."""
        return self._operator_id

    def create(self, context: CoordinatorContext) -> SchemaCoordinator:
        """Make the coordinator."""
        return SchemaCoordinator(self._visible)
