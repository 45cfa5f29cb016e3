"""The Parquet sink's committers in the tasks: each looks at the files of its subtask, and brings
them to where one step of the global committer shows them.

Decides which steps are left to the tasks: those that readers cannot see, and that any attempt may
take again, of whichever driver. In a directory a file moves into a directory that is named by its
checkpoint and by the run that has staged it. So a replaced driver's task that moves files of a
checkpoint that was lost moves them where no later driver looks; and where the checkpoint was not
lost, both move the same files to the same place. In an object store nothing moves. What is shown,
and by which driver, is decided on the driver, as in a job that commits there.
Runs on the task's only thread.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from epochgate.runtime import CommitRequest, RetryLater, TaskCommitter
from epochgate.runtime.filesystem import FileSystem
from epochgate.runtime.objects.client import ObjectStore
from epochgate.runtime.objects.log import ObjectLog
from epochgate.spark.parquet_sink.committable import (
    Committable,
    gathered_directory,
    moved,
)
from epochgate.spark.parquet_sink.errors import (
    CommittableDamaged,
    CommittableMissing,
    DiskFull,
    translating,
)
from epochgate.spark.parquet_sink.object_target import INITIAL, fold
from epochgate.spark.parquet_sink.ownership import working_directory_of


class DirectoryTaskCommitter(TaskCommitter):
    """Gathers the files of a checkpoint beside the target `path`."""

    def __init__(self, path: str, files: FileSystem) -> None:
        self._path, self._files = path, files
        self._working = working_directory_of(path)

    def commit(self, requests: Sequence[CommitRequest]) -> None:
        """Move each file that is where it was staged. One that is nowhere was shown before, or is
        missing: the driver tells these apart.

        Raises RetryLater where the disk is full, CommittableDamaged, TargetNotWritable or
        OtherFileSystem.
        """
        try:
            with translating(self._path, self._working):
                self._gather(requests)
        except DiskFull as error:
            raise RetryLater(str(error)) from error

    def _gather(self, requests: Sequence[CommitRequest]) -> None:
        directories: set[str] = set()
        for request in requests:
            file, checkpoint = Committable.from_list(request.committable), request.checkpoint_id
            staged = os.path.join(self._working, file.path)
            into = gathered_directory(self._working, checkpoint, file.run)
            gathered = os.path.join(into, file.visible_path)
            if not moved(self._files, staged, gathered, file, checkpoint, directories):
                request.already_committed()
        for directory in sorted(directories):
            # The driver shows it once another attempt has committed the same, and synced it.
            with contextlib.suppress(FileNotFoundError):
                self._files.fsync_directory(directory)


class ObjectTaskCommitter(TaskCommitter):
    """Looks at the objects of a checkpoint, by listing those of its subtask."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def commit(self, requests: Sequence[CommitRequest]) -> None:
        """Compare each object's size. Raises RetryLater where the store does not answer,
        CommittableDamaged, and CommittableMissing unless the checkpoint was committed before.
        """
        try:
            self._look(requests)
        except (OSError, ValueError) as error:
            raise RetryLater(f"the object store at {self._objects.url}: {error}") from error

    def _look(self, requests: Sequence[CommitRequest]) -> None:
        files = [Committable.from_list(request.committable) for request in requests]
        found = sizes_of(self._objects, [file.path for file in files])
        for request, file in zip(requests, files, strict=True):
            size_bytes, place = found.get(file.path), f"{self._objects.url}/{file.path}"
            if size_bytes is None and not self._is_committed(request.checkpoint_id):
                raise CommittableMissing(place, request.checkpoint_id)
            if size_bytes is None:
                request.already_committed()
            elif size_bytes != file.size_bytes:
                expected, seen = f"{file.size_bytes} bytes", f"{size_bytes} bytes"
                raise CommittableDamaged(place, expected, seen)

    def _is_committed(self, checkpoint: int) -> bool:
        log = ObjectLog(self._objects, fold, INITIAL)
        log.refresh()
        last = log.state["last"]
        return last is not None and last >= checkpoint


def sizes_of(objects: ObjectStore, keys: Sequence[str]) -> dict[str, int]:
    """The bytes of those of these objects that are there."""
    by_folder: dict[str, list[str]] = {}
    for key in keys:
        by_folder.setdefault(key.rpartition("/")[0], []).append(key)
    found = {}
    for folder, wanted in by_folder.items():
        last = max(wanted)
        for status in objects.find(folder, min(wanted)[:-1]):
            if status.key > last:
                break
            found[status.key] = status.size_bytes
    return {key: found[key] for key in keys if key in found}
