"""Files that tasks have uploaded for a table in an object store, where nothing can be renamed.

Decides that they stay where they are and that the table refers to them there, so that a commit
costs no copy; and which of them nothing will refer to any more. Leaves to the sink what refers to
them, and who may. Runs on the driver, and in tasks that commit.

    URL/data/RUN/part-....parquet       written by a task, visible once the table names it

An object is taken for an orphan if its run is over and the table has never named it. The table
tells what it has named since some moment; what is older stays, for the table's own clean-up, which
goes by age.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

import pyarrow as pa

from epochgate.runtime import CommitRequest
from epochgate.runtime.objects.client import ObjectStatus, ObjectStore
from epochgate.spark.files.object_file import ObjectFile
from epochgate.spark.parquet_sink.committable import Committable
from epochgate.spark.parquet_sink.errors import CommittableDamaged, CommittableMissing
from epochgate.spark.parquet_sink.object_target import schema_at
from epochgate.spark.parquet_sink.task_committers import sizes_of

SLACK_NS = 2_000_000_000
"""Of the store's time stamps, which some keep in whole seconds."""


class TableHistory(Protocol):
    """The word of a table on the files that it has named."""

    def named_since(self, moment_ns: int) -> tuple[int, Collection[str]]:
        """Return the paths that it has named, and since when they are all of them: not later than
        `moment_ns`, in the store's time, unless it does not know. Raises OSError.
        """


class StagedObjects:
    """Those of the table below the URL of `objects`."""

    def __init__(self, objects: ObjectStore, history: TableHistory | None = None) -> None:
        self._objects, self._history = objects, history

    def name(self, file: Committable) -> str:
        """Return the path by which the table names it."""
        return file.path

    def final(self, file: Committable) -> str:
        """Return its URL."""
        return f"{self._objects.url}/{file.path}"

    def schema_of(self, file: Committable) -> pa.Schema:
        """Read the schema of the batches that it was written from. Raises CommittableDamaged."""
        return schema_at(self._objects, file.path)

    def move_into_place(
        self, files: Sequence[Committable], checkpoint: int, *, are_moved: bool = False
    ) -> None:
        """Look at each file; none moves. `are_moved`: tasks have looked at those that are there.

        Raises CommittableMissing, CommittableDamaged or OSError.
        """
        self.look(files, checkpoint)

    def look(self, files: Sequence[Committable], checkpoint: int) -> None:
        """Look at each file. Raises CommittableMissing, CommittableDamaged or OSError."""
        for file in self._missing(files):
            raise CommittableMissing(f"{self._objects.url}/{file.path}", checkpoint)

    def open(self, file: Committable) -> ObjectFile:
        """Return the object as a file. Raises OSError."""
        return ObjectFile(self._objects, self._objects.status(file.path))

    def discard(self, files: Iterable[Committable]) -> None:
        """Remove objects that nothing refers to. Raises OSError."""
        for file in files:
            self._objects.delete(file.path)

    remove = discard

    def move_from_task(self, requests: Sequence[CommitRequest]) -> None:
        """Look at each file of a task's commit. One that is nowhere was in the table before, or is
        missing: the driver tells these apart. Raises CommittableDamaged or OSError.
        """
        files = [Committable.from_list(request.committable) for request in requests]
        missing = {file.path for file in self._missing(files)}
        for request, file in zip(requests, files, strict=True):
            if file.path in missing:
                request.already_committed()

    def _missing(self, files: Sequence[Committable]) -> list[Committable]:
        """Return those that are not there. Raises CommittableDamaged for one of another size."""
        found = sizes_of(self._objects, [file.path for file in files])
        for file in files:
            size_bytes = found.get(file.path, file.size_bytes)
            if size_bytes != file.size_bytes:
                expected = f"{file.size_bytes} bytes"
                place = f"{self._objects.url}/{file.path}"
                raise CommittableDamaged(place, expected, f"{size_bytes} bytes")
        return [file for file in files if file.path not in found]

    def remove_orphans(self, runs: Iterable[str], keep: Iterable[Committable]) -> list[str]:
        """Remove what these runs have uploaded, is not in `keep`, and the table has never named;
        returns their keys. Raises OSError.
        """
        kept = {file.path for file in keep}
        found: list[ObjectStatus] = [
            one for run in runs for one in self._objects.find(f"data/{run}") if one.key not in kept
        ]
        if not found or self._history is None:
            return []
        oldest_ns = min(one.modified_ns for one in found) - SLACK_NS
        since_ns, named = self._history.named_since(oldest_ns)
        orphans = [
            one.key
            for one in found
            if one.key not in named and one.modified_ns - SLACK_NS >= since_ns
        ]
        for key in orphans:
            self._objects.delete(key)
        return orphans
