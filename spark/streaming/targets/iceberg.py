"""An Iceberg table as the target of queries: its properties keep each query's number.

Several queries may write to one table, and others beside them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from epochgate.runtime.filesystem import FileSystem, LocalFileSystem
from epochgate.runtime.objects.client import is_url, open_url
from epochgate.spark.iceberg_sink.sink import IcebergSink
from epochgate.spark.iceberg_sink.table import IcebergTable
from epochgate.spark.iceberg_sink.target import EXPIRE_EVERY, IcebergTarget
from epochgate.spark.parquet_sink.committable import parsed
from epochgate.spark.parquet_sink.staging import ROLL_BYTES
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
class IcebergBatches(BatchTarget):
    """The table `table` of `catalog`; a batch becomes one snapshot, also one without rows.

    properties: of the catalog. `files`: with what, for tests.
    """

    catalog: str
    table: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    file_bytes: int = ROLL_BYTES
    files: FileSystem | None = None

    @property
    def shown(self) -> str:
        """Catalog and table."""
        return f"{self.catalog}.{self.table}"

    @property
    def sink(self) -> IcebergSink:
        """The sink, whose writers are told where the table lies."""
        return IcebergSink(
            self.catalog, self.table, self.properties, self.file_bytes, files=self.files
        )

    def prepare(self) -> Agreed:
        """Make the table if there is none; its schema, and where it lies."""
        target = self._target("")
        try:
            target.prepare()
            return Agreed(packed(target.schema()), target.told())
        finally:
            target.release()

    def notes(self) -> NoteStore:
        """In the working directory of the table, which is made if there is none."""
        return notes_in(self.prepare().told[0], WORKING, self.files)

    def number(self, query: str) -> int:
        """That among the table's properties."""
        target = self._target(query)
        try:
            return target.last_committed() or 0
        finally:
            target.release()

    def commit(self, staged: Staged, own: int) -> bool:
        """Add a snapshot."""
        target = self._target(staged.query, staged.run)
        try:
            target.share(own or None)
            target.commit(staged.checkpoint, parsed(staged.committables))
            if staged.checkpoint % EXPIRE_EVERY == 0:
                target.expire()
        finally:
            target.release()
        return True

    def commit_write(self, staged: Staged, *, replaces: bool) -> None:
        """Add a snapshot, and before it one without the rows that are replaced, in one commit."""
        own = self.number(DATAFRAMES)
        target = self._target(DATAFRAMES, staged.run)
        try:
            target.share(own or None)
            target.commit(own + 1, parsed(staged.committables), replaces=replaces)
        finally:
            target.release()

    def has_written(self, staged: Staged) -> bool:
        """As the snapshots' summaries tell."""
        target = self._target(DATAFRAMES, staged.run)
        try:
            return target.last_committed() is not None and target.has_run(staged.run)
        finally:
            target.release()

    def sweep(self, query: str, batch: int) -> None:
        """Remove whole runs."""
        place = self.prepare().told[0]
        if is_url(place):
            self._sweep_objects(place, query, batch)
        else:
            files = LocalFileSystem() if self.files is None else self.files
            sweep_directory(files, os.path.join(place, WORKING), query, batch)

    def _sweep_objects(self, place: str, query: str, batch: int) -> None:
        if batch % SWEPT_EVERY == 0:
            table = IcebergTable(self.catalog, self.table, self.properties)
            try:
                table.load()
                sweep_objects(open_url(place), table, query, batch)
            finally:
                table.close()

    def _target(self, query: str, run: str = "") -> IcebergTarget:
        return IcebergTarget(
            lambda: IcebergTable(self.catalog, self.table, self.properties),
            query,
            run,
            files=self.files,
        )
