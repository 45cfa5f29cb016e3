"""A sink without a target in the tasks: records go to the committer with their checkpoint.

They travel through the driver and its checkpoints, so this is for outputs of some thousand records
a checkpoint. The writer runs in the task; the committer, or the function in its place, stays on the
driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from epochgate.runtime.api.committer import Committables, Committer
from epochgate.runtime.api.operator import OperatorContext
from epochgate.runtime.api.sink import Sink, SinkStart, SinkWriter


class RecordSink(Sink):
    """Hands the records themselves to `committer`; to the tasks it travels without that."""

    def __init__(self, committer: Committer | None) -> None:
        self._committer = committer

    def __reduce__(self) -> tuple[type[RecordSink], tuple[None]]:
        return RecordSink, (None,)

    def create_writer(self, context: OperatorContext, state: bytes | None) -> SinkWriter:
        """Keep the records until the next barrier."""
        return RecordWriter()

    def create_committer(self, start: SinkStart) -> Committer:
        """The committer that was given; raises RuntimeError in a task, where there is none."""
        if self._committer is None:
            raise RuntimeError("the committer of this sink stays on the driver")
        return self._committer


class RecordWriter(SinkWriter):
    """Keeps the records that belong to no checkpoint yet."""

    def __init__(self) -> None:
        self._records: list[Any] = []

    def write(self, batch: Iterable[Any]) -> None:
        """Keep the records of a batch."""
        self._records.extend(batch)

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        """Return the records since the last call."""
        records, self._records = self._records, []
        return records


class FunctionCommitter(Committer):
    """Calls `write(checkpoint_id, records)` for each completed checkpoint that has records.

    After a failure it may be called again for the same checkpoint with the same records, and must
    then change nothing: name the output by the checkpoint. It is retried if it raises RetryLater.
    """

    def __init__(self, write: Callable[[int, list[Any]], None]) -> None:
        self._write = write

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        """The records of all subtasks, in their order."""
        records = [record for subtask in sorted(committables) for record in committables[subtask]]
        if records:
            self._write(checkpoint_id, records)
