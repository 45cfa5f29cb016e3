"""A sink whose committer counts what it has made visible, as an ingestion tells it.

Decides the figures that every target of an ingestion has, and how committables are read. Leaves
everything else to the sinks.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

import pyarrow as pa

from epochgate.errors import EpochgateError
from epochgate.runtime import Committables, Committer, Sink, SinkStart

Read = TypeVar("Read")
SHOWN_MAX = 200


class CommittableUnreadable(EpochgateError):
    """A value that a subtask handed over is no committable of the sink: subtask, value, reason."""

    def __str__(self) -> str:
        subtask, value, reason = self.args
        return (
            f"subtask {subtask} handed over {value}, which is no committable of this sink: "
            f"{reason}. The writer has to return what `prepare_commit` of the sink's own writer "
            "returns; nothing of its checkpoint has become visible."
        )


def read_committables(committables: Committables, read: Callable[[Any], Read]) -> list[Read]:
    """The committables of all subtasks, each read by `read`. Raises CommittableUnreadable."""
    found = []
    for subtask, values in committables.items():
        for value in values:
            try:
                found.append(read(value))
            except (TypeError, ValueError, KeyError) as error:
                raise CommittableUnreadable(subtask, repr(value)[:SHOWN_MAX], str(error)) from error
    return found


class CountingCommitter(Committer):
    """Counts rows and files: those that this start has committed, and all that are visible.

    `files_*` stay 0 where a target has no files.
    """

    rows_visible: int = 0
    files_visible: int = 0
    rows_committed: int = 0
    files_committed: int = 0

    def count(self, rows: int, files: int = 0, *, added: int | None = None) -> None:
        """A commit took effect; `added`: how many more rows there are, if not as many as came."""
        self.rows_committed += rows
        self.rows_visible += rows if added is None else added
        self.files_committed += files
        self.files_visible += files

    def metrics(self) -> dict[str, int | float]:
        """The figures by name."""
        return {
            "rows_committed": self.rows_committed,
            "files_committed": self.files_committed,
            "rows_visible": self.rows_visible,
        }


class CountingSink(Sink):
    """A target of an ingestion."""

    def accepts(self, schema: pa.Schema) -> None:
        """Raise RowsUnfit, on the driver, for columns that the target cannot hold whatever their
        values are.
        """

    @abstractmethod
    def create_committer(self, start: SinkStart) -> CountingCommitter:
        """As `Sink.create_committer`."""
