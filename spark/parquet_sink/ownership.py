"""The ownership of a target directory: its marker, its lock, and the run that may commit to it now.

Decides: which directories a job accepts as its target. Leaves to others: what is committed there.
Lives on the driver, on the thread that claims and commits.

The marker lies in the working directory beside the target, with an empty directory in the target
that stands for it: every reader of a directory of Parquet files leaves out an empty directory, and
DuckDB and polars read any file for a Parquet file, whatever its name begins with.

Three things keep two drivers apart: the marker names the job, the lock is held by one process at a
time, and the owner file names the last run that claimed the target, so that a driver whose lock was
lost (a network file system may forget locks) notices before it commits.
"""

from __future__ import annotations

import json
import os

from epochgate.errors import UsageError
from epochgate.runtime.filesystem import TEMPORARY_SUFFIX, AnyPath, FileLock, FileSystem
from epochgate.spark.parquet_sink.checked_json import checked, parsed_json, read_checked
from epochgate.spark.parquet_sink.errors import (
    OtherFileSystem,
    TargetBehind,
    TargetDamaged,
    TargetLocked,
    TargetNotEmpty,
    TargetOfAnotherJob,
    TargetTakenOver,
    TargetVersionUnknown,
)

TARGET_VERSION = 4
_READABLE_VERSIONS = (1, 2, 3, TARGET_VERSION)
MARKER_NAME = "target.json"
MARKED_DIRECTORY = "_epochgate"
"""The empty directory in a target that has a marker."""
EARLIER_MARKER_NAME = "_epochgate.json"
"""The marker of versions 1 and 2, in the target."""
_PRODUCT = "epochgate parquet target"


def working_directory_of(target: AnyPath) -> str:
    """The directory beside `target` in which its files are staged.

    >>> working_directory_of("/data/out")
    '/data/.out.epochgate'
    """
    parent, name = os.path.split(os.path.abspath(target))
    return os.path.join(parent, f".{name}.epochgate")


def read_marker(files: FileSystem, path: str) -> tuple[int, str] | None:
    """The version and the job of the target at `path`; none if it is missing or empty.

    Raises TargetNotEmpty or TargetVersionUnknown.
    """
    if not files.exists(path):
        return None
    if not files.is_directory(os.path.realpath(path)):
        raise TargetNotEmpty(path, "a file of that name")
    names = files.list_directory(path)
    if MARKED_DIRECTORY in names:
        marker_path = os.path.join(working_directory_of(path), MARKER_NAME)
    elif EARLIER_MARKER_NAME in names:
        marker_path = os.path.join(path, EARLIER_MARKER_NAME)
    else:
        foreign = [name for name in names if not name.endswith(TEMPORARY_SUFFIX)]
        if foreign:
            raise TargetNotEmpty(path, foreign[0])
        return None
    if not files.exists(marker_path):
        _refuse_table(files, path, names)
        reason = "it is not there; the directory that held it was moved or removed"
        way = f"Put it back; or remove {path!r}, to begin without the rows that are there"
        raise TargetVersionUnknown(marker_path, reason, way)
    try:
        marker = files.read_bytes(marker_path)
    except OSError as error:
        raise TargetVersionUnknown(marker_path, error.strerror) from error
    try:
        values = parsed_json(marker, marker_path, "the marker of a target")
        product, version, job = values["product"], values["version"], values["job"]
    except (TargetDamaged, KeyError):
        raise TargetVersionUnknown(marker_path, repr(marker[:80])) from None
    if product != _PRODUCT or version not in _READABLE_VERSIONS:
        raise TargetVersionUnknown(marker_path, f"{product!r}, version {version!r}")
    return version, job


def _refuse_table(files: FileSystem, path: str, names: list[str]) -> None:
    """TargetNotEmpty for the directory of a table of another format: the directory that stands for
    the marker is empty, and the one in which a table is staged is not.
    """
    for name in ("_delta_log", MARKED_DIRECTORY):
        if name in names and files.list_directory(os.path.join(path, name)):
            raise TargetNotEmpty(path, name)


class TargetOwnership:
    """One run's claim to one target directory."""

    def __init__(self, path: AnyPath, job_id: str, run_id: str, files: FileSystem) -> None:
        if "://" in os.fspath(path):
            raise UsageError(
                f"target {os.fspath(path)!r} is a URL of a kind that is not written to. Give a "
                "directory of a mounted file system, or a URL of an object store (s3://, gs://, "
                "abfss://)."
            )
        self.path = os.path.abspath(path)
        self.working_directory = working_directory_of(path)
        self._job_id = job_id
        self._run_id = run_id
        self._files = files
        self._version = TARGET_VERSION
        self._lock: FileLock | None = None

    def acquire(self, restored_checkpoint: int | None, may_begin_late: bool = False) -> None:
        """Lock the target, and mark it if it is missing or empty; see `ParquetTarget.claim`."""
        # Looked at before anything is created beside a directory that is not ours.
        self._is_marked()
        self._files.make_directory(self.working_directory)
        lock_path = os.path.join(self.working_directory, "lock")
        lock = self._files.try_lock(lock_path)
        if lock is None:
            raise TargetLocked(self.path, lock_path)
        self._lock = lock
        try:
            if not self._is_marked():
                self._mark(restored_checkpoint, may_begin_late)
            device = self._files.status(self.path).device
            if self._files.status(self.working_directory).device != device:
                raise OtherFileSystem(self.working_directory, self.path)
        except BaseException:
            self.release()
            raise

    def enter(self) -> None:
        """Become the run that may commit; every earlier run may no longer.

        An earlier release refuses the target from now on: it would not see what this one commits.
        """
        if self._version != TARGET_VERSION:
            self._write_marker()
        self._write(self._owner_path(), checked({"job": self._job_id, "run": self._run_id}))

    def require_owner(self) -> None:
        """`TargetTakenOver` unless this run is the last that entered; `TargetDamaged`."""
        owner = "(none: the target was not claimed, or its working directory was removed)"
        if self._files.exists(self._owner_path()):
            found = read_checked(self._files, self._owner_path(), "the run that owns the target")
            owner = str(found.get("run"))
        if owner != self._run_id or self._lock is None:
            raise TargetTakenOver(self.path, self._run_id, owner)

    def release(self) -> None:
        """Give the lock back; the process's end does the same."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _is_marked(self) -> bool:
        """True if the target is this job's; false if missing or empty; raises if another's."""
        found = read_marker(self._files, self.path)
        if found is None:
            return False
        self._version, job = found
        if job != self._job_id:
            raise TargetOfAnotherJob(self.path, job, self._job_id)
        return True

    def _mark(self, restored_checkpoint: int | None, may_begin_late: bool) -> None:
        if restored_checkpoint is None:
            # Files that a former target of this name has left beside it have no owner now.
            for name in ("staged", "prepared", "manifests", "trees", "compacting"):
                self._files.remove_tree(os.path.join(self.working_directory, name))
        elif not may_begin_late:
            raise TargetBehind(self.path, restored_checkpoint)
        self._files.make_directory(self.path)
        for name in self._files.list_directory(self.path):
            self._files.remove(os.path.join(self.path, name))
        self._write_marker()

    def _write_marker(self) -> None:
        marker = {"product": _PRODUCT, "version": TARGET_VERSION, "job": self._job_id}
        # Without a checksum: people read it, and each of its values is compared with what is known.
        self._write(self._marker_path(), json.dumps(marker, indent=1).encode() + b"\n")
        self._files.make_directory(os.path.join(self.path, MARKED_DIRECTORY))
        if self._files.remove(os.path.join(self.path, EARLIER_MARKER_NAME)):
            self._files.fsync_directory(self.path)

    def _marker_path(self) -> str:
        return os.path.join(self.working_directory, MARKER_NAME)

    def _owner_path(self) -> str:
        return os.path.join(self.working_directory, "owner.json")

    def _write(self, path: str, data: bytes) -> None:
        self._files.write_bytes_durably(path, data)
