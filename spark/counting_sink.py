"""A sink whose committer counts what it has made visible, as an ingestion tells it.

Decides the figures that every target of an ingestion has. Leaves everything else to the sinks.
"""

from __future__ import annotations

from abc import abstractmethod

from epochgate.runtime import Committer, Sink, SinkStart


class CountingCommitter(Committer):
    """Counts rows and files: those that this start has committed, and all that are visible.

    `files_*` stay 0 where a target has no files.
    """

    rows_visible: int = 0
    files_visible: int = 0
    rows_committed: int = 0
    files_committed: int = 0

    def count(self, rows: int, files: int = 0) -> None:
        """A commit took effect."""
        self.rows_committed += rows
        self.rows_visible += rows
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

    @abstractmethod
    def create_committer(self, start: SinkStart) -> CountingCommitter:
        """As `Sink.create_committer`."""
