"""A file system made to fail, at any step of a checkpoint or commit; for tests, also users' own.

Passes everything on, counts what changes something, and strikes where it is told to. Blind spots:
it truncates files that were not fsynced, but keeps names whose directory was not fsynced; it does
not reorder writes within one file.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from epochgate.runtime.api.raised import RaisedByTest
from epochgate.runtime.filesystem import (
    AnyPath,
    ComposedOperations,
    FileLock,
    FileStatus,
    LocalFileSystem,
    WritableFile,
)


class SimulatedCrash(RaisedByTest):
    """The process of this file system died; a `BaseException`, so that no handler revives it."""


@dataclass(frozen=True)
class Fault:
    """Strikes at the `at`-th mutating operation, counted from 0.

    "crash": raises `SimulatedCrash` before or after the operation, or "during" it (half of a write
    is done, any other operation is not); every later call raises it again.
    "disk_full": from that operation on, whatever needs space raises ENOSPC, until `free_space()`.
    "error": that one operation raises EIO, before or after it has been done.
    """

    at: int
    kind: Literal["crash", "disk_full", "error"] = "crash"
    when: Literal["before", "during", "after"] = "before"


@dataclass(frozen=True)
class Operation:
    """One mutating operation that a `FaultyFileSystem` has counted."""

    name: str
    path: str


NEEDS_SPACE = frozenset({"create", "write", "fsync", "link", "create_directory"})


class _FaultyFile:
    def __init__(self, owner: FaultyFileSystem, path: AnyPath) -> None:
        self._owner = owner
        self._path = os.fspath(path)
        self._file = owner.inner.open_for_writing(path)
        owner.unsynced[self._path] = self

    def write(self, data: bytes) -> int:
        def whole() -> None:
            self._file.write(data)

        def half() -> None:
            self._file.write(bytes(memoryview(data).cast("B")[: len(memoryview(data)) // 2]))

        self._owner.mutate("write", self._path, whole, half)
        return memoryview(data).nbytes

    def fsync(self) -> None:
        def sync() -> None:
            self._file.fsync()
            self._owner.unsynced.pop(self._path, None)

        self._owner.mutate("fsync", self._path, sync)

    def close(self) -> None:
        # Not counted: closing changes nothing on the device that `fsync` has not.
        self._file.close()


class FaultyFileSystem(ComposedOperations):
    """Passes everything to `inner`, counts the mutating operations and strikes at one of them.

    `operations` lists what was done or tried, so a test may first run without a fault, then repeat
    the run once for every index. With `lose_unsynced`, a crash empties files that were not fsynced.
    Each operation may raise what the fault says: SimulatedCrash, or OSError with ENOSPC or EIO.
    """

    def __init__(
        self, inner: LocalFileSystem, fault: Fault | None = None, *, lose_unsynced: bool = True
    ) -> None:
        self.inner = inner
        self.fault = fault
        self.operations: list[Operation] = []
        self.unsynced: dict[str, _FaultyFile] = {}
        self._lose_unsynced = lose_unsynced
        self._crashed = False
        self._full = False
        self._locks: list[FileLock] = []

    @property
    def has_struck(self) -> bool:
        """True if the fault's operation has been reached."""
        return self.fault is not None and len(self.operations) > self.fault.at

    def free_space(self) -> None:
        """End a "disk_full" fault."""
        self._full = False
        self.fault = None

    def crash(self) -> SimulatedCrash:
        """End this file system's process here and now; returns the exception to raise."""
        self._crashed = True
        for path, file in sorted(self.unsynced.items()):
            with contextlib.suppress(OSError):
                file.close()
            if self._lose_unsynced and self.inner.exists(path):
                os.truncate(path, 0)
        self.unsynced.clear()
        for lock in self._locks:
            lock.release()
        return SimulatedCrash(f"simulated crash at operation {len(self.operations) - 1}")

    def mutate(
        self,
        name: str,
        path: AnyPath,
        whole: Callable[[], None],
        half: Callable[[], None] | None = None,
    ) -> None:
        """Count one operation, and do it, a half of it or none of it as the fault says."""
        self._alive()
        index = len(self.operations)
        self.operations.append(Operation(name, os.fspath(path)))
        strikes = self.fault if self.fault is not None and self.fault.at == index else None
        if strikes is not None and strikes.kind == "disk_full":
            self._full = True
        if self._full and name in NEEDS_SPACE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fspath(path))
        if strikes is not None and strikes.when == "during" and half is not None:
            half()
        if strikes is None or strikes.when == "after" or strikes.kind == "disk_full":
            whole()
        if strikes is not None and strikes.kind == "crash":
            raise self.crash()
        if strikes is not None and strikes.kind == "error":
            raise OSError(errno.EIO, os.strerror(errno.EIO), os.fspath(path))

    def _alive(self) -> LocalFileSystem:
        if self._crashed:
            raise SimulatedCrash("the process of this file system has already crashed")
        return self.inner

    def read_bytes(self, path: AnyPath) -> bytes:
        return self._alive().read_bytes(path)

    def read_range(self, path: AnyPath, offset: int, length: int) -> bytes:
        return self._alive().read_range(path, offset, length)

    def open_for_writing(self, path: AnyPath) -> WritableFile:
        opened: list[_FaultyFile] = []
        try:
            self.mutate("create", path, lambda: opened.append(_FaultyFile(self, path)))
        except OSError:
            # Created, and reported as failed: the caller has nothing that it could close.
            for file in opened:
                file.close()
            raise
        return opened[0]

    def rename(self, source: AnyPath, destination: AnyPath) -> None:
        def rename() -> None:
            self.inner.rename(source, destination)
            moved = self.unsynced.pop(os.fspath(source), None)
            if moved is not None:
                self.unsynced[os.fspath(destination)] = moved

        self.mutate("rename", destination, rename)

    def link(self, source: AnyPath, destination: AnyPath) -> None:
        self.mutate("link", destination, lambda: self.inner.link(source, destination))

    def copy_mode(self, source: AnyPath, destination: AnyPath) -> None:
        self.mutate("copy_mode", destination, lambda: self.inner.copy_mode(source, destination))

    def exchange(self, first: AnyPath, second: AnyPath) -> None:
        self.mutate("exchange", first, lambda: self.inner.exchange(first, second))

    def create_directory(self, path: AnyPath) -> None:
        self.mutate("create_directory", path, lambda: self.inner.create_directory(path))

    def fsync_directory(self, path: AnyPath) -> None:
        self.mutate("fsync_directory", path, lambda: self.inner.fsync_directory(path))

    def remove(self, path: AnyPath) -> bool:
        there = self._alive().exists(path)
        if there:
            self.mutate("remove", path, lambda: _ignore(self.inner.remove(path)))
        return there

    def remove_empty_directory(self, path: AnyPath) -> None:
        self.mutate("remove_directory", path, lambda: self.inner.remove_empty_directory(path))

    def list_directory(self, path: AnyPath) -> list[str]:
        return self._alive().list_directory(path)

    def exists(self, path: AnyPath) -> bool:
        return self._alive().exists(path)

    def is_directory(self, path: AnyPath) -> bool:
        return self._alive().is_directory(path)

    def size(self, path: AnyPath) -> int:
        return self._alive().size(path)

    def status(self, path: AnyPath) -> FileStatus:
        return self._alive().status(path)

    def try_lock(self, path: AnyPath) -> FileLock | None:
        lock = self._alive().try_lock(path)
        if lock is not None:
            self._locks.append(lock)
        return lock

    def wait_for_lock(self, path: AnyPath) -> FileLock:
        lock = self._alive().wait_for_lock(path)
        self._locks.append(lock)
        return lock


def _ignore(_: object) -> None:
    """Turn a result into none."""
