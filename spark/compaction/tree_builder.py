"""The tree that is to take a target's place: merged files, and second names for all others.

Decides how files are called in it: what a compaction moves or merges gets a name with the number of
the tree, so that a reader who has listed the tree before finds none of these by another content.
Leaves the exchange of the trees to `directory`. Runs where the command runs.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import replace

from epochgate.runtime.filesystem import TEMPORARY_SUFFIX, FileSystem
from epochgate.spark.compaction.errors import ForeignFile, LinksRefused
from epochgate.spark.compaction.merging import Merger, Source
from epochgate.spark.compaction.plan import Merge, Plan
from epochgate.spark.files.checkpoint_directory import (
    checkpoint_name,
    checkpoint_of,
    merged_name,
    moved_name,
)
from epochgate.spark.parquet_sink.ownership import MARKED_DIRECTORY
from epochgate.spark.parquet_sink.tree import VisibleFile, tree_name, walk

_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)


class TreeBuilder:
    """Builds tree `number` of `target` in the directory `path`, which it makes."""

    def __init__(self, files: FileSystem, target: str, path: str, number: int) -> None:
        self._files, self._target, self._path, self._number = files, target, path, number
        self._made: set[str] = set()

    def build(self, plan: Plan, merger: Merger) -> list[VisibleFile]:
        """The covered checkpoints, durably; returns their files as they are then.

        Raises CommittableDamaged, LinksRefused or OSError.
        """
        self._directory(os.path.join(MARKED_DIRECTORY, tree_name(self._number)))
        built = [self._link(file, file) for file in plan.untouched]
        for merge in plan.merges:
            built += self._merged(merge, merger, len(built))
            for file in merge.large:
                name = moved_name(self._number, file.name)
                moved = replace(file, checkpoint=merge.checkpoint, name=name)
                built.append(self._link(file, moved))
        self.make_durable()
        return built

    def add(self, checkpoint: int) -> None:
        """A checkpoint that stays as it is. Raises LinksRefused or OSError."""
        for path in walk(self._files, os.path.join(self._target, checkpoint_name(checkpoint))):
            self._link_path(os.path.join(checkpoint_name(checkpoint), path))

    def add_root(self) -> None:
        """Add to the tree each file beside the checkpoints. Raises ForeignFile, LinksRefused or
        OSError.
        """
        for name in beside_checkpoints(self._files, self._target):
            self._link_path(name)

    def make_durable(self) -> None:
        """Let all names that were made survive a power cut."""
        for directory in sorted(self._made, reverse=True):
            self._files.fsync_directory(directory)
        self._made.clear()

    def _merged(self, merge: Merge, merger: Merger, so_far: int) -> Iterator[VisibleFile]:
        place = os.path.join(checkpoint_name(merge.checkpoint), merge.directory)
        absolute = self._directory(place)
        sources = []
        for file in merge.small:
            path = os.path.join(self._target, checkpoint_name(file.checkpoint), file.path)
            sources.append(Source(file, path, str))

        def path_of(number: int) -> str:
            return os.path.join(absolute, merged_name(self._number, so_far + number))

        for path, rows, size_bytes, crc32, schema in merger.merge(sources, path_of):
            name = os.path.basename(path)
            self._files.copy_mode(sources[0].path, path)
            yield VisibleFile(
                merge.checkpoint, merge.directory, name, rows, size_bytes, crc32, schema
            )

    def _link(self, file: VisibleFile, as_file: VisibleFile) -> VisibleFile:
        self._link_path(
            os.path.join(checkpoint_name(file.checkpoint), file.path),
            os.path.join(checkpoint_name(as_file.checkpoint), as_file.path),
        )
        return as_file

    def _link_path(self, path: str, as_path: str | None = None) -> None:
        directory, name = os.path.split(as_path or path)
        destination = os.path.join(self._directory(directory), name)
        try:
            self._files.link(os.path.join(self._target, path), destination)
        except OSError as error:
            if error.errno in _NO_LINKS:
                raise LinksRefused(destination, error.strerror) from error
            raise

    def _directory(self, path: str) -> str:
        absolute = os.path.join(self._path, path) if path else self._path
        if absolute not in self._made:
            self._files.make_directory(absolute)
            # Each directory of the new tree is one of the old; readers may be other users.
            if self._files.exists(before := os.path.join(self._target, path)):
                self._files.copy_mode(before, absolute)
            if path:
                self._directory(os.path.dirname(path))
            self._made.add(absolute)
        return absolute


def beside_checkpoints(files: FileSystem, target: str) -> Iterator[str]:
    """The files in a target that belong to no checkpoint. Raises ForeignFile for a directory."""
    for name in files.list_directory(target):
        path = os.path.join(target, name)
        if files.is_directory(path):
            if checkpoint_of(name) is None and name != MARKED_DIRECTORY:
                raise ForeignFile(path)
        elif not name.endswith(TEMPORARY_SUFFIX):
            yield name
