"""A Delta table as the target of queries: the log keeps each query's number as an application's.

Several queries may write to one table, and others beside them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from epochgate.runtime.filesystem import FileSystem, LocalFileSystem
from epochgate.runtime.objects.client import ObjectStore, is_url, open_url
from epochgate.spark.delta_sink.log import DeltaLog
from epochgate.spark.delta_sink.sink import DeltaSink
from epochgate.spark.delta_sink.target import DeltaTarget
from epochgate.spark.parquet_sink.committable import parsed
from epochgate.spark.parquet_sink.staging import ROLL_BYTES
from epochgate.spark.streaming.errors import CountedElsewhere
from epochgate.spark.streaming.identity import counter_of
from epochgate.spark.streaming.notes import NoteStore, notes_in
from epochgate.spark.streaming.targets.parquet import SWEPT_EVERY, sweep_directory, sweep_objects
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
    """The table in the directory or at the URL `path`; a batch becomes one entry of its log, which
    carries the number also where the batch has no rows, once there is a table. `files` and
    `open_objects`: with what, for tests.
    """

    path: str
    file_bytes: int = ROLL_BYTES
    files: FileSystem | None = None
    open_objects: Callable[[str], ObjectStore] = open_url
    partition_by: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The path."""
        return self.path

    @property
    def sink(self) -> DeltaSink:
        """The sink, whose writers stage below the table's directory."""
        return DeltaSink(
            self.path, self.file_bytes, files=self.files, open_objects=self.open_objects
        )

    def prepare(self) -> Agreed:
        """The table's schema, if there is a table, and where it lies."""
        log = DeltaLog(self.path)
        if not log.read():
            return Agreed(None, (self.path, *self.partition_by))
        return Agreed(packed(log.schema()), (self.path, *log.metadata().partition_columns))

    def notes(self) -> NoteStore:
        """In the working directory of the table."""
        return notes_in(self.path, WORKING, self.files, self.open_objects)

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
        target = self._shared(application, staged, own)
        files = parsed(staged.committables)
        target.commit(staged.checkpoint, files)
        return bool(files) or DeltaLog(self.path).read()

    def commit_write(self, staged: Staged, *, replaces: bool) -> None:
        """Append to the log; what is replaced goes in the same entry."""
        own = self.number(DATAFRAMES)
        target = self._shared(DATAFRAMES, staged, own)
        target.commit(own + 1, parsed(staged.committables), replaces=replaces)

    def _shared(self, application: str, staged: Staged, own: int) -> DeltaTarget:
        target = DeltaTarget(
            self.path,
            application,
            staged.run,
            files=self.files,
            open_objects=self.open_objects,
            partition_by=self.partition_by,
        )
        target.share(own or None)
        return target

    def has_written(self, staged: Staged) -> bool:
        """As the log's newest entries tell."""
        log = DeltaLog(self.path)
        return log.read() and log.has_said("epochgate.run", staged.run)

    def sweep(self, query: str, batch: int) -> None:
        """Remove whole runs; in an object store, what the log has never named of them."""
        if is_url(self.path):
            self._sweep_objects(query, batch)
        else:
            files = LocalFileSystem() if self.files is None else self.files
            sweep_directory(files, os.path.join(self.path, WORKING), query, batch)

    def _sweep_objects(self, query: str, batch: int) -> None:
        log = DeltaLog(self.path)
        if batch % SWEPT_EVERY == 0 and log.read():
            sweep_objects(self.open_objects(self.path), log, query, batch)


def _application(query: str) -> str:
    return query if query == DATAFRAMES else counter_of(query)
