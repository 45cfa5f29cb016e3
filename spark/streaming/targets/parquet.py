"""A directory of Parquet files, or a place in an object store, as the target of one query.

Both belong to one query, whose id stands in the marker or the log. Batches without rows leave
nothing there, so their numbers are recorded in the notes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass

from epochgate.runtime.filesystem import FileSystem, LocalFileSystem
from epochgate.runtime.objects.client import ObjectStore, open_url
from epochgate.runtime.objects.log import ObjectLog
from epochgate.spark.files.checkpoint_directory import checkpoint_of
from epochgate.spark.parquet_sink.committable import parsed
from epochgate.spark.parquet_sink.manifests import read_manifest
from epochgate.spark.parquet_sink.object_target import INITIAL, ObjectTarget, fold, retired
from epochgate.spark.parquet_sink.ownership import read_marker, working_directory_of
from epochgate.spark.parquet_sink.sink import ParquetSink
from epochgate.spark.parquet_sink.staging import ROLL_BYTES
from epochgate.spark.parquet_sink.target import ParquetTarget
from epochgate.spark.parquet_sink.tree import nothing_changing, read_tree
from epochgate.spark.streaming.identity import is_swept, prefix_of
from epochgate.spark.streaming.notes import DirectoryNotes, ObjectNotes
from epochgate.spark.streaming.targets.target import DATAFRAMES, BatchTarget, Staged
from epochgate.spark.tables.staged_objects import StagedObjects, TableHistory

SWEPT_EVERY = 32
"""Listing an object store takes as long as the target is large, so only some batches sweep."""
TRIED_EVERY = 32
"""The first batch tries whether the store honours conditions; later ones are committed to the same
one, and some of them try it again.
"""


@dataclass(frozen=True)
class ParquetBatches(BatchTarget):
    """The directory `path`; a batch becomes one rename. `files`: with what, for tests."""

    path: str
    file_bytes: int = ROLL_BYTES
    partition_by: tuple[str, ...] = ()
    files: FileSystem | None = None

    @property
    def shown(self) -> str:
        """The path."""
        return self.path

    @property
    def sink(self) -> ParquetSink:
        """The sink, with the schema of the batches; the commit compares it with the target's."""
        return ParquetSink(self.path, self.file_bytes, self.files, partition_by=self.partition_by)

    @property
    def _system(self) -> FileSystem:
        return LocalFileSystem.of_table(self.path) if self.files is None else self.files

    def notes(self) -> DirectoryNotes:
        """In the working directory beside the target."""
        return DirectoryNotes(working_directory_of(self.path), self.files)

    def number(self, query: str) -> int:
        """The newest checkpoint that is visible, if the target is the query's."""
        files, working = self._system, working_directory_of(self.path)
        marked = read_marker(files, self.path)
        if marked is None or marked[1] != query:
            return 0
        with nothing_changing(files, working):
            found = map(checkpoint_of, files.list_directory(self.path))
            there = {number for number in found if number is not None}
            return max(there | {*read_tree(files, self.path, working).covered}, default=0)

    def commit(self, staged: Staged, own: int) -> bool:
        """Rename a directory; a batch without files changes nothing."""
        committables = parsed(staged.committables)
        if not committables:
            return False
        target = ParquetTarget(self.path, staged.query, staged.run, files=self.files)
        # Without `may_begin_late`, a new target would remove what this batch has staged.
        target.claim(own, may_begin_late=own == 0)
        try:
            target.discard_prepared(staged.checkpoint, committables)
            target.commit(staged.checkpoint, committables)
        finally:
            target.release()
        return True

    def commit_write(self, staged: Staged, *, replaces: bool) -> None:
        """Rename a directory; what is replaced goes in one step, an exchange of directories."""
        own, committables = self.number(DATAFRAMES), parsed(staged.committables)
        target = ParquetTarget(self.path, DATAFRAMES, staged.run, files=self.files)
        target.claim(own, may_begin_late=own == 0)
        try:
            target.discard_prepared(own + 1, committables)
            show = target.replace if replaces else target.commit
            show(own + 1, committables)
        finally:
            target.release()

    def has_written(self, staged: Staged) -> bool:
        """As the newest manifest tells."""
        own = self.number(DATAFRAMES)
        working = working_directory_of(self.path)
        return own > 0 and read_manifest(self._system, working, own)[0] == staged.run

    def sweep(self, query: str, batch: int) -> None:
        """Remove whole runs."""
        sweep_directory(self._system, working_directory_of(self.path), query, batch)


@dataclass(frozen=True)
class ObjectBatches(BatchTarget):
    """The place `url` in an object store; a batch becomes one conditional PUT. `open_objects`: with
    what, for tests.
    """

    url: str
    file_bytes: int = ROLL_BYTES
    partition_by: tuple[str, ...] = ()
    open_objects: Callable[[str], ObjectStore] = open_url

    @property
    def shown(self) -> str:
        """The URL."""
        return self.url

    @property
    def sink(self) -> ParquetSink:
        """The sink, which uploads files under the names that they keep."""
        return ParquetSink(
            self.url,
            self.file_bytes,
            open_objects=self.open_objects,
            partition_by=self.partition_by,
        )

    def notes(self) -> ObjectNotes:
        """Below the URL."""
        return ObjectNotes(self.open_objects(self.url))

    def number(self, query: str) -> int:
        """The newest commit of the log, if the target is the query's."""
        log = ObjectLog(self.open_objects(self.url), fold, INITIAL)
        log.refresh()
        is_ours = log.state.get("job") == query
        return int(log.state["last"] or 0) if is_ours else 0

    def commit(self, staged: Staged, own: int) -> bool:
        """Append to the log; a batch without files changes nothing."""
        committables = parsed(staged.committables)
        if not committables:
            return False
        target = ObjectTarget(self.open_objects(self.url), staged.query, staged.run)
        prefix = prefix_of(staged.query)
        tries_store = own == 0 or staged.batch % TRIED_EVERY == 0
        target.claim(own, may_begin_late=own == 0, staged_by=prefix, tries_store=tries_store)
        try:
            target.commit(staged.checkpoint, committables)
        finally:
            target.release()
        return True

    def commit_write(self, staged: Staged, *, replaces: bool) -> None:
        """Append to the log, also what replaces all: one entry."""
        own = self.number(DATAFRAMES)
        target = ObjectTarget(self.open_objects(self.url), DATAFRAMES, staged.run)
        target.claim(own, may_begin_late=own == 0, staged_by=prefix_of(staged.query))
        try:
            target.commit(own + 1, parsed(staged.committables), replaces=replaces)
        finally:
            target.release()

    def has_written(self, staged: Staged) -> bool:
        """As the log tells."""
        log = ObjectLog(self.open_objects(self.url), fold, INITIAL)
        log.refresh()
        return any(run == staged.run for run, _ in log.state["commits"].values())

    def sweep(self, query: str, batch: int) -> None:
        """Delete the objects of these runs that the log does not name."""
        if batch % SWEPT_EVERY:
            return
        objects = self.open_objects(self.url)
        log = ObjectLog(objects, fold, INITIAL)
        log.refresh()
        named = {*log.state["files"], *retired(log.state)}
        for key in objects.list("data"):
            if key not in named and is_swept(key.split("/")[1], query, batch):
                objects.delete(key)


def sweep_directory(files: FileSystem, working: str, query: str, batch: int) -> None:
    """Remove from `working` what runs of the query have staged for this batch and those before."""
    staged = os.path.join(working, "staged")
    with contextlib.suppress(FileNotFoundError):
        for run in files.list_directory(staged):
            if is_swept(run, query, batch):
                files.remove_tree(os.path.join(staged, run))


def sweep_objects(objects: ObjectStore, history: TableHistory, query: str, batch: int) -> None:
    """Remove what such runs have uploaded and the table has never named. Raises OSError."""
    runs = {key.split("/")[1] for key in objects.list("data")}
    swept = sorted(run for run in runs if is_swept(run, query, batch))
    StagedObjects(objects, history).remove_orphans(swept, [])
