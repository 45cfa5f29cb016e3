"""A Delta table as the target of queries: the log keeps each query's number as an application's.

Several queries may write to one table, and others beside them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from epochgate.runtime.filesystem import FileSystem, LocalFileSystem
from epochgate.spark.delta_sink.log import DeltaLog
from epochgate.spark.delta_sink.sink import DeltaSink
from epochgate.spark.delta_sink.target import DeltaTarget
from epochgate.spark.parquet_sink.committable import parsed
from epochgate.spark.parquet_sink.staging import ROLL_BYTES
from epochgate.spark.streaming.errors import CountedElsewhere
from epochgate.spark.streaming.identity import counter_of
from epochgate.spark.streaming.notes import DirectoryNotes
from epochgate.spark.streaming.targets.parquet import sweep_directory
from epochgate.spark.streaming.targets.target import (
    DATAFRAMES,
    Agreed,
    BatchTarget,
    Staged,
    packed,
)
from epochgate.spark.tables.staged import WORKING


@dataclass(frozen=True)
class DeltaBatches(BatchTarget):
    """The table in the directory `path`; a batch becomes one entry of its log, which carries the
    number also where the batch has no rows, once there is a table. `files`: with what, for tests.
    """

    path: str
    file_bytes: int = ROLL_BYTES
    files: FileSystem | None = None

    @property
    def shown(self) -> str:
        """The path."""
        return self.path

    @property
    def sink(self) -> DeltaSink:
        """The sink, whose writers stage below the table's directory."""
        return DeltaSink(self.path, self.file_bytes, files=self.files)

    @property
    def _working(self) -> str:
        return os.path.join(self.path, WORKING)

    def prepare(self) -> Agreed:
        """The table's schema, if there is a table."""
        log = DeltaLog(self.path)
        return Agreed(packed(log.schema()) if log.read() else None)

    def notes(self) -> DirectoryNotes:
        """In the working directory of the table."""
        return DirectoryNotes(self._working, self.files)

    def number(self, query: str) -> int:
        """That of the application. Raises CountedElsewhere."""
        log = DeltaLog(self.path)
        if not log.read():
            return 0
        if query != DATAFRAMES and (last := log.transaction(query)) is not None:
            raise CountedElsewhere(self.path, query, last + 1)
        return log.held(_application(query))[0] or 0

    def commit(self, staged: Staged, own: int) -> bool:
        """Append to the log, or make the table."""
        application = _application(staged.query)
        target = DeltaTarget(self.path, application, staged.run, files=self.files)
        target.share(own or None)
        files = parsed(staged.committables)
        target.commit(staged.checkpoint, files)
        return bool(files) or DeltaLog(self.path).read()

    def commit_write(self, staged: Staged, *, replaces: bool) -> None:
        """Append to the log; what is replaced goes in the same entry."""
        own = self.number(DATAFRAMES)
        target = DeltaTarget(self.path, DATAFRAMES, staged.run, files=self.files)
        target.share(own or None)
        target.commit(own + 1, parsed(staged.committables), replaces=replaces)

    def has_written(self, staged: Staged) -> bool:
        """As the log's newest entries tell."""
        log = DeltaLog(self.path)
        return log.read() and log.has_said("epochgate.run", staged.run)

    def sweep(self, query: str, batch: int) -> None:
        """Remove whole runs."""
        files = LocalFileSystem() if self.files is None else self.files
        sweep_directory(files, self._working, query, batch)


def _application(query: str) -> str:
    return query if query == DATAFRAMES else counter_of(query)
