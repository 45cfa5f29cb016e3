"""The Parquet sink's coordinator: makes all subtasks write one schema, before any of them writes.

Decides whose schema counts: that of the target's files, or else of the subtask that asks first; and
whether and when it changes, if it may evolve. A change takes effect at a checkpoint: what was asked
for before is agreed when the coordinator's part of it is taken, and told behind its barrier, so
that rows of the new schema are in later checkpoints, and a job that goes back agrees on it again.
Only files of an aborted checkpoint may come together with newer ones. Runs on the job's queue.

Event to a sink: ["schema", Arrow schema, and what else it is told]. Event from a sink: ["schema",
Arrow schema], its wish; both serialized by Arrow.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Final

import msgpack
import pyarrow as pa

from epochgate.runtime import (
    CoordinatorContext,
    CoordinatorProvider,
    FatalTaskError,
    MalformedEvent,
    OperatorCoordinator,
    SubtaskGateway,
)
from epochgate.runtime.api.malformed_event import EventForms, insist_on_form
from epochgate.spark.files.errors import IncompatibleState
from epochgate.spark.files.evolution import (
    OF_FILES,
    EvolutionRefused,
    Rules,
    SchemaEvolution,
    evolved,
)

STATE_VERSION = 1
FROM_SINK: Final[EventForms] = {"schema": ((bytes,),)}


class SchemaCoordinator(OperatorCoordinator):
    """Answers every sink with the one schema; `visible` is that of the target's files, if any."""

    def __init__(
        self,
        context: CoordinatorContext,
        visible: bytes | None,
        evolution: SchemaEvolution,
        told: tuple[str, ...] = (),
        rules: Rules = OF_FILES,
    ) -> None:
        self._context, self._visible, self._evolution = context, visible, evolution
        self._told, self._rules = told, rules
        self._agreed = visible
        self._next: bytes | None = None
        self._gateways: dict[int, SubtaskGateway] = {}

    def start(self) -> None:
        """Nothing to begin."""

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        """The first wish counts, for everybody; who comes later has been told or is told next.

        A later wish is part of the next schema, if the schema may evolve to it; if not, the job
        ends. Raises MalformedEvent for a wish that is none.
        """
        wish = _wish(subtask, event)
        if self._agreed is None:
            self._agreed = wish
            self._tell_all()
        elif self._evolution != "none":
            self._grow(self._agreed, wish)

    def _grow(self, agreed: bytes, wish: bytes) -> None:
        before = self._next or agreed
        try:
            grown = evolved(_schema(before), _schema(wish), self._evolution, self._rules)
        except EvolutionRefused as error:
            raise FatalTaskError(str(error)) from error
        wider = _packed(grown)
        if wider != agreed and wider != before:
            self._next = wider
            self._context.checkpoints.request()

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        """Tell the schema if there is one."""
        self._gateways[subtask] = gateway
        if self._agreed is not None:
            gateway.send_event(["schema", self._agreed, *self._told])

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        """Do nothing: what was agreed stays agreed."""
        self._gateways.pop(subtask, None)

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        """The schema from this checkpoint on; if it has changed, it is told behind the barrier."""
        has_grown = self._next is not None
        self._agreed, self._next = self._next or self._agreed, None
        result.set_result(msgpack.packb([STATE_VERSION, self._agreed]))
        if has_grown:
            self._tell_all()

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        """Begin from the schema of then, or from the target's."""
        self._gateways.clear()
        self._agreed, self._next = self._visible, None
        if state is not None:
            version, agreed = msgpack.unpackb(state)
            if version != STATE_VERSION:
                raise IncompatibleState("schema coordinator", version, STATE_VERSION)
            self._agreed = agreed or self._visible

    def _tell_all(self) -> None:
        for gateway in self._gateways.values():
            gateway.send_event(["schema", self._agreed, *self._told])


class SchemaProvider(CoordinatorProvider):
    """Makes the coordinator of the sink with this operator id; `visible`: the schema of the
    target's files, if any; `told`: what the sink is told with the schema; `rules`: how its columns
    grow.
    """

    def __init__(
        self,
        operator_id: str,
        visible: pa.Schema | None,
        evolution: SchemaEvolution = "none",
        told: tuple[str, ...] = (),
        rules: Rules = OF_FILES,
    ) -> None:
        self._operator_id, self._evolution, self._told = operator_id, evolution, told
        self._rules = rules
        self._visible = None if visible is None else _packed(visible)

    @property
    def operator_id(self) -> str:
        """The name of the sink operator."""
        return self._operator_id

    def create(self, context: CoordinatorContext) -> SchemaCoordinator:
        """Make the coordinator."""
        return SchemaCoordinator(context, self._visible, self._evolution, self._told, self._rules)


def _wish(subtask: int, event: Any) -> bytes:
    insist_on_form(subtask, event, FROM_SINK)
    wish: bytes = event[1]
    try:
        _schema(wish)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise MalformedEvent(f"subtask {subtask} wishes for no Arrow schema: {error}") from error
    return wish


def _schema(packed: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(packed))


def _packed(schema: pa.Schema) -> bytes:
    packed: bytes = schema.serialize().to_pybytes()
    return packed
