"""A coordinator that lowers a limit batch by batch, and notes what it is called with."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from epochgate.runtime import CoordinatorContext, CoordinatorProvider
from epochgate.runtime.entries.stores import Entries
from epochgate.runtime.steering import BatchCoordinator, Coordinated, NextBatch
from tests.runtime.steering.steered import CONTROL, QUERY

INITIAL = {"limit": 900, "mode": "strict"}


class Lowering(BatchCoordinator):
    """The limit of each batch is one less than that of the batch before, from the limit that was
    updated last on; `calls` outlives it.
    """

    def __init__(self, calls: list[Any], context: CoordinatorContext) -> None:
        self.calls, self.context, self.taken = calls, context, 0

    def start(self) -> None:
        self.calls.append("start")

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        assert state is not None
        self.calls.append(("reset", checkpoint_id, json.loads(state)))
        self.taken = json.loads(state)

    def choose(self, next_batch: NextBatch) -> Mapping[str, Any]:
        self.calls.append(("choose", next_batch.batch, next_batch.returned))
        self.taken += 1
        return {"limit": next_batch.values["limit"] - self.taken}

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        self.calls.append(("checkpoint", checkpoint_id))
        result.set_result(json.dumps(self.taken).encode())

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.calls.append(("complete", checkpoint_id))

    def close(self) -> None:
        self.calls.append("close")


class Provider(CoordinatorProvider):
    """Makes coordinators, each of which notes its calls in `calls`."""

    def __init__(
        self,
        make: Callable[[list[Any], CoordinatorContext], Any] = Lowering,
        operator_id: str = "lowering",
    ) -> None:
        self._make, self._operator_id = make, operator_id
        self.calls: list[Any] = []
        self.state_version = 1

    @property
    def operator_id(self) -> str:
        return self._operator_id

    def create(self, context: CoordinatorContext) -> Any:
        return self._make(self.calls, context)

    def upgrade_state(self, version: int, state: bytes) -> bytes:
        return json.dumps(json.loads(state) + 100 * (self.state_version - version)).encode()

    @property
    def taken(self) -> list[Any]:
        """The calls since this was asked last."""
        calls, self.calls[:] = list(self.calls), []
        return calls


def coordinated(entries: Entries, provider: Provider | None = None) -> Coordinated:
    """A process that drives the query, with a coordinator."""
    where = entries, "the store", CONTROL, QUERY, dict(INITIAL)
    return Coordinated(*where, provider or Provider(), now=lambda: 0.0)


def chosen(entries: Entries, batch: int) -> int:
    """With which limit a process that starts now runs a batch."""
    limit: int = coordinated(entries).decide(batch).value["limit"]
    return limit
