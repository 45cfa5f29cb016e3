"""A sink without a writer: records go to the committer with their checkpoint.

Decides nothing but that records of an aborted checkpoint are handed over again for the next (rule
C1 in docs/protocol.md). They travel through the driver and its checkpoints, so this is for outputs
of some thousand records a checkpoint. The operator runs in the task, the committer on the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from epochgate.runtime.api.committer import Committables, Committer
from epochgate.runtime.pipeline.program import WritingOperator


class RecordSinkOperator(WritingOperator):
    """Hands the records over at each barrier."""

    def __init__(self) -> None:
        self._new: list[Any] = []
        self._handed_over: list[Any] = []

    def may_write(self, batch: Any) -> bool:
        """Always."""
        return True

    def write(self, batch: Iterable[Any]) -> None:
        """Keep the records until the next barrier."""
        self._new.extend(batch)

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        """All that is in no completed checkpoint."""
        self._handed_over += self._new
        self._new = []
        return list(self._handed_over)

    def snapshot(self, checkpoint_id: int) -> bytes:
        """Nothing: all records were handed over."""
        return b""

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """What was handed over is the committer's; this comes before the next barrier."""
        self._handed_over.clear()


class FunctionCommitter(Committer):
    """Calls `write(checkpoint_id, records)` for each completed checkpoint that has records.

    It may be called again for the same checkpoint, after a failure, with the same records, and must
    then change nothing: name what is written by the checkpoint. RetryLater lets it be tried again.
    """

    def __init__(self, write: Callable[[int, list[Any]], None]) -> None:
        self._write = write

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        """The records of all subtasks, in their order."""
        records = [record for subtask in sorted(committables) for record in committables[subtask]]
        if records:
            self._write(checkpoint_id, records)
