"""The operator of every sink: runs its writer, and hands over at each barrier the committables that
belong to no completed checkpoint yet.

Decides that committables of an aborted checkpoint are handed over again for the next (rule C1 in
docs/protocol.md): their records are consumed and must not be lost. They need not be in the state:
an attempt that goes back reads those records again, and those of a completed checkpoint are the
committer's. Leaves writing to the writer. Runs in the task.
"""

from __future__ import annotations

from typing import Any

from epochgate.runtime.api.operator import Operator, OperatorContext
from epochgate.runtime.api.sink import Sink, SinkWriter
from epochgate.runtime.api.sinks_of_one_job import labelled


class SinkOperator(Operator):
    """Runs the writer of `sink`. A program calls `write` when `may_write` returns true.

    `label`: the sink's name in a job with several sinks and a `CommitterOfSinks`.
    """

    def __init__(self, sink: Sink, *, label: str | None = None) -> None:
        self._sink, self._label = sink, label
        self.state_version = sink.writer_state_version
        self._writer: SinkWriter | None = None
        self._handed_over: list[Any] = []

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        """Create the writer."""
        super().open(context, state)
        self._writer = self._sink.create_writer(context, state or None)

    def upgrade_state(self, version: int, state: bytes) -> bytes:
        """Upgrade the writer's state; an empty state needs no upgrade."""
        return self._sink.upgrade_writer_state(version, state) if state else state

    @property
    def writer(self) -> SinkWriter:
        """The sink's writer. Raises RuntimeError before `open`."""
        if self._writer is None:
            raise RuntimeError("the sink's writer is made by `open`, which was not called yet")
        return self._writer

    def may_write(self, batch: Any) -> bool:
        """Return whether the writer accepts `batch` now; if not, return Work.IDLE from `work`."""
        return self.writer.may_write(batch)

    def write(self, batch: Any) -> None:
        """Pass `batch` to the writer."""
        self.writer.write(batch)

    def handle_event(self, event: Any) -> None:
        """Pass an event of the sink's coordinator to the writer."""
        self.writer.handle_event(event)

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        """Return all committables since the last completed checkpoint."""
        new = self.writer.prepare_commit(checkpoint_id)
        self._handed_over += new if self._label is None else labelled(self._label, new)
        return list(self._handed_over)

    def snapshot(self, checkpoint_id: int) -> bytes:
        """Return the writer's state."""
        return self.writer.snapshot(checkpoint_id)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Forget the committables, which the committer has now."""
        self._handed_over.clear()

    def close(self) -> None:
        """Close the writer, if it was created."""
        if self._writer is not None:
            self._writer.close()
