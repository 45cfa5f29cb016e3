"""Files that tasks have staged for a table, and their way to the place where the table names them.

Decides their order and durability: a file is intact, then it moves, then the table may refer to it.
So what lies in the staging area is never part of the table, not even of its past. Leaves to the
sink what refers to them, and who may. Runs on the driver, and in tasks that commit.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import pyarrow as pa

from epochgate.runtime import CommitRequest
from epochgate.runtime.filesystem import FileSystem
from epochgate.spark.parquet_sink.committable import (
    Committable,
    moved,
    require_intact,
    written_schema,
)

WORKING = "_epochgate"
"""The directory in a table for what no reader sees: staged files, by run."""
RUNS_REMEMBERED = 16
"""The number of earlier runs whose staged files are looked for at each start."""


def working_of(table: str) -> str:
    """The directory for what no reader of the table in this directory sees."""
    return os.path.join(table, WORKING)


class Staged(Protocol):
    """Files that tasks have staged, in directories or in an object store."""

    def name(self, file: Committable) -> str:
        """Return the path by which the table names it, relative to where its files lie."""

    def final(self, file: Committable) -> str:
        """Return the place where the table names it."""

    def schema_of(self, file: Committable) -> pa.Schema:
        """Read the schema of the batches that it was written from, staged or in place."""

    def move_into_place(
        self, files: Sequence[Committable], checkpoint: int, *, are_moved: bool = False
    ) -> None:
        """Look at each file, and let it be where the table names it, durably; also again."""

    def move_from_task(self, requests: Sequence[CommitRequest]) -> None:
        """Do the same in a task, beside others that do."""

    def look(self, files: Sequence[Committable], checkpoint: int) -> None:
        """Look at each file, and leave it where it is. Raises what `move_into_place` raises."""

    def open(self, file: Committable) -> Any:
        """Return what pyarrow reads the file from."""

    def discard(self, files: Iterable[Committable]) -> None:
        """Remove staged files, as far as they are there."""

    def remove(self, files: Iterable[Committable]) -> None:
        """Remove files in place that the table has never named."""

    def remove_orphans(self, runs: Iterable[str], keep: Iterable[Committable]) -> list[str]:
        """Remove what these runs have staged, is not in `keep` and was never in the table."""


class StagedFiles:
    """Those of the table whose directory is `table`, and whose files lie in `final`."""

    def __init__(self, files: FileSystem, table: str, final: str) -> None:
        self._files, self._final = files, final
        self._working = working_of(table)

    def place(self, file: Committable) -> str:
        """Return the place of a file: where it was staged, or where the table names it."""
        final = self.final(file)
        return final if self._files.exists(final) else os.path.join(self._working, file.path)

    def name(self, file: Committable) -> str:
        """Return its path below the directory of the table's files."""
        return file.visible_path

    def final(self, file: Committable) -> str:
        """Return the place where the table names it."""
        return os.path.join(self._final, self.name(file))

    def schema_of(self, file: Committable) -> pa.Schema:
        """Read the schema of the batches that it was written from."""
        return written_schema(self.place(file))

    def move_into_place(
        self, files: Sequence[Committable], checkpoint: int, *, are_moved: bool = False
    ) -> None:
        """Give each file its name in the table, durably; also again, after a crash. `are_moved`:
        tasks have looked at all of them, and moved those that are in place.

        Raises CommittableMissing or CommittableDamaged.
        """
        if are_moved and all(self._files.exists(self.final(file)) for file in files):
            return
        left, into = set(), {self._final} if files else set()
        for file in files:
            place, final = self.place(file), self.final(file)
            require_intact(self._files, place, file, checkpoint)
            if place != final:
                if file.directory and os.path.dirname(final) not in into:
                    self._files.make_directory(os.path.dirname(final))
                self._files.rename(place, final)
                left.add(os.path.dirname(place))
            into.add(os.path.dirname(final))
        for directory in [*sorted(into), *sorted(left)]:
            self._files.fsync_directory(directory)

    def move_from_task(self, requests: Sequence[CommitRequest]) -> None:
        """Give each file of a task's commit its name in the table, durably, whatever other attempt
        does the same. One that is nowhere was in the table before, or is missing: the driver tells
        these apart. Raises CommittableDamaged.
        """
        directories: set[str] = set()
        for request in requests:
            file, checkpoint = Committable.from_list(request.committable), request.checkpoint_id
            staged, final = os.path.join(self._working, file.path), self.final(file)
            if not moved(self._files, staged, final, file, checkpoint, directories):
                request.already_committed()
        for directory in sorted(directories):
            self._files.fsync_directory(directory)

    def look(self, files: Sequence[Committable], checkpoint: int) -> None:
        """Look at each file. Raises CommittableMissing or CommittableDamaged."""
        for file in files:
            require_intact(self._files, self.place(file), file, checkpoint)

    def open(self, file: Committable) -> str:
        """Return its place."""
        return self.place(file)

    def discard(self, files: Iterable[Committable]) -> None:
        """Remove staged files, as far as they are there."""
        for file in files:
            self._files.remove(os.path.join(self._working, file.path))

    def remove(self, files: Iterable[Committable]) -> None:
        """Remove files in place that the table has never named."""
        for file in files:
            self._files.remove(self.final(file))

    def remove_orphans(self, runs: Iterable[str], keep: Iterable[Committable]) -> list[str]:
        """Remove what these runs have staged and is not in `keep`; returns their paths."""
        removed = []
        kept = {os.path.join(self._working, file.path) for file in keep}
        for run in runs:
            directory = os.path.join(self._working, "staged", run)
            names = self._files.list_directory(directory) if self._files.exists(directory) else []
            orphans = {os.path.join(directory, name) for name in names} - kept
            removed += [path for path in sorted(orphans) if self._files.remove(path)]
        return removed
