"""The operator of every sink: runs its writer, and hands over at each barrier what is not known to
belong to a completed checkpoint.

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
    """Runs the writer of `sink`. A program calls `write` once `may_write` says so.

    `label`: the sink's name, where the job has several and a `CommitterOfSinks`.
    """

    def __init__(self, sink: Sink, *, label: str | None = None) -> None:
        self._sink, self._label = sink, label
        self._writer: SinkWriter | None = None
        self._handed_over: list[Any] = []

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        """Make the writer."""
        super().open(context, state)
        self._writer = self._sink.create_writer(context, state or None)

    @property
    def state_version(self) -> int:
        """That of the writer's state."""
        return self._sink.writer_state_version

    def upgrade_state(self, version: int, state: bytes) -> bytes:
        """What the sink makes of it; no state needs no upgrade."""
        return self._sink.upgrade_writer_state(version, state) if state else state

    @property
    def writer(self) -> SinkWriter:
        """The sink's writer. Raises RuntimeError before `open`."""
        if self._writer is None:
            raise RuntimeError("the sink's writer is made by `open`, which was not called yet")
        return self._writer

    def may_write(self, batch: Any) -> bool:
        """Whether the writer takes `batch` now; if not, the program is idle until an event."""
        return self.writer.may_write(batch)

    def write(self, batch: Any) -> None:
        """Let the writer have `batch`."""
        self.writer.write(batch)

    def handle_event(self, event: Any) -> None:
        """Pass on what the sink's coordinator says."""
        self.writer.handle_event(event)

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        """Everything since the last completed checkpoint."""
        new = self.writer.prepare_commit(checkpoint_id)
        self._handed_over += new if self._label is None else labelled(self._label, new)
        return list(self._handed_over)

    def snapshot(self, checkpoint_id: int) -> bytes:
        """The writer's own state."""
        return self.writer.snapshot(checkpoint_id)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """What was handed over is the committer's now; this comes before the next barrier."""
        self._handed_over.clear()

    def close(self) -> None:
        """Close the writer, if it was made."""
        if self._writer is not None:
            self._writer.close()
