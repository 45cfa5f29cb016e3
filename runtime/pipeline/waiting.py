"""The mapped batches that wait for the sink, as a part of the task's snapshot.

Only a pipeline with a `MapOperator` has them. Decides the stored form: Arrow in its stream format,
anything else as plain values; and which subtask writes them after rescaling. Leaves to the machine
`in_flight` when a batch is stored. Nothing is pickled. Runs in the task, on its only thread;
`redistributed` on the driver.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgpack

from epochgate.runtime.api.operator import FatalTaskError, Operator, OperatorContext
from epochgate.runtime.api.plain_values import problem_of

IN_FLIGHT: Final = "in_flight"
"""The operator id of the batches that wait."""
_PLAIN, _RECORD_BATCH, _TABLE = 0, 1, 2


class WaitingBatches(Operator):
    """Restores the batches that wait, and gives them to `on_restore`; `on_barrier` returns those
    that wait at a barrier, and the name of the map.
    """

    def __init__(
        self,
        on_restore: Callable[[list[Any]], None],
        on_barrier: Callable[[], tuple[list[Any], str]],
    ) -> None:
        self._on_restore, self._on_barrier = on_restore, on_barrier

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        """Restore the batches."""
        super().open(context, state)
        if state:
            self._on_restore([_restored(*stored) for stored in _unpacked(state)])

    def snapshot(self, checkpoint_id: int) -> bytes:
        """Return the batches that wait. Raises FatalTaskError for one that cannot be stored."""
        waiting, name = self._on_barrier()
        return _packed([_stored(batch, name) for batch in waiting])


def redistributed(states: Mapping[int, bytes], parallelism: int) -> dict[int, bytes]:
    """Deal the batches that wait out to `parallelism` subtasks, in turns.

    >>> redistributed({0: b"", 1: _packed([[0, [1]], [0, [2]]])}, 3) == {
    ...     0: _packed([[0, [1]]]), 1: _packed([[0, [2]]]), 2: b""
    ... }
    True
    """
    waiting = [stored for _, state in sorted(states.items()) for stored in _unpacked(state)]
    return {subtask: _packed(waiting[subtask::parallelism]) for subtask in range(parallelism)}


def _packed(stored: list[Any]) -> bytes:
    return bytes(msgpack.packb(stored)) if stored else b""


def _unpacked(state: bytes) -> list[Any]:
    return list(msgpack.unpackb(state, strict_map_key=False)) if state else []


def _stored(batch: Any, name: str) -> list[Any]:
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(batch, arrow.RecordBatch | arrow.Table):
        sink = arrow.BufferOutputStream()
        with arrow.ipc.new_stream(sink, batch.schema) as writer:
            writer.write(batch)
        kind = _TABLE if isinstance(batch, arrow.Table) else _RECORD_BATCH
        return [kind, sink.getvalue().to_pybytes()]
    plain = list(batch) if isinstance(batch, range) else batch
    if (problem := problem_of(plain)) is not None:
        raise FatalTaskError(
            f"{name} has returned a batch that waits until the sink is ready, and a checkpoint "
            f"cannot hold it: {problem}. Return a pyarrow.RecordBatch or pyarrow.Table, or a list "
            "of plain values; or let may_write of the sink's writer return True"
        )
    return [_PLAIN, plain]


def _restored(kind: int, stored: Any) -> Any:
    if kind == _PLAIN:
        return stored
    import pyarrow as arrow

    table = arrow.ipc.open_stream(stored).read_all()
    if kind == _TABLE:
        return table
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else arrow.RecordBatch.from_pylist([], schema=table.schema)
