"""The two stores as one shape, so that the contract's tests run over both."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from epochgate.runtime.filesystem import LocalFileSystem
from epochgate.runtime.store import (
    CheckpointShelf,
    CheckpointStore,
    CheckpointStoreFull,
    CompletedCheckpoint,
    DirectoryCheckpointStore,
    InMemoryCheckpointStore,
    checkpoint_file_name,
)
from epochgate.runtime.testing.faulty_filesystem import Fault, FaultyFileSystem

JOB = "orders"


def checkpoint_of(checkpoint_id: int, job_id: str = JOB) -> CompletedCheckpoint:
    """A checkpoint with something in every field, different for every id."""
    mark = f"state of {checkpoint_id}".encode()
    return CompletedCheckpoint(
        checkpoint_id=checkpoint_id,
        job_id=job_id,
        run_id="run-1",
        created_at=1_700_000_000.5 + checkpoint_id,
        parallelism=3,
        coordinators={"source": mark, "sink": None},
        subtasks={0: {"reader": mark, "writer": b""}, 2: {}},
        committables={1: [{"file": "part-1", "rows": checkpoint_id}, None, [1.5, b"x", True]]},
        uncommitted={checkpoint_id - 1: [["late"]]} if checkpoint_id else {},
        properties={"nested": {"1": [], 2: {}}, "text": "é"},
        versions={0: {"reader": 2}},
        coordinator_versions={"source": 3},
        files=["known-files/one.segment"],
        epoch=4,
        begun_from="savepoint-1",
    )


class FileSystemWithoutLocks(LocalFileSystem):
    """A mount whose `flock` always fails with this errno."""

    def __init__(self, number: int = errno.ENOLCK) -> None:
        self.number = number

    def lock_exclusively(self, descriptor: int) -> None:
        raise OSError(self.number, os.strerror(self.number))


class Medium(Protocol):
    """The medium that outlives a driver, and what can happen to it."""

    def open(self, job_id: str = JOB, retained: int = 3) -> CheckpointStore: ...

    def kill_driver(self) -> None:
        """End the driver that holds the store, without closing it."""

    def lose_lock(self) -> None:
        """Let a second driver in while the first one lives."""

    def change(self, checkpoint_id: int, to: Callable[[bytes], bytes]) -> None: ...

    def fill_up(self) -> None: ...

    def free_space(self) -> None: ...

    def kept_aside(self) -> list[bytes]: ...


class DirectoryMedium:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.files = FaultyFileSystem(LocalFileSystem())

    def open(self, job_id: str = JOB, retained: int = 3) -> DirectoryCheckpointStore:
        return DirectoryCheckpointStore(
            self.directory, job_id=job_id, retained=retained, file_system=self.files
        )

    def kill_driver(self) -> None:
        self.files.crash()
        self.files = FaultyFileSystem(LocalFileSystem())

    def lose_lock(self) -> None:
        (self.directory / "driver.lock").unlink()

    def path_of(self, checkpoint_id: int) -> Path:
        return self.directory / checkpoint_file_name(checkpoint_id)

    def change(self, checkpoint_id: int, to: Callable[[bytes], bytes]) -> None:
        path = self.path_of(checkpoint_id)
        path.write_bytes(to(path.read_bytes()))

    def fill_up(self) -> None:
        self.files.fault = Fault(len(self.files.operations), "disk_full")

    def free_space(self) -> None:
        self.files.free_space()

    def kept_aside(self) -> list[bytes]:
        return [path.read_bytes() for path in sorted(self.directory.glob("*.damaged*"))]


class ShelfMedium:
    def __init__(self) -> None:
        self.shelf = CheckpointShelf()
        self.store: InMemoryCheckpointStore | None = None

    def open(self, job_id: str = JOB, retained: int = 3) -> InMemoryCheckpointStore:
        self.store = InMemoryCheckpointStore(self.shelf, job_id=job_id, retained=retained)
        return self.store

    def kill_driver(self) -> None:
        self.shelf.end_driver()

    def lose_lock(self) -> None:
        self.shelf.lose_lock()

    def change(self, checkpoint_id: int, to: Callable[[bytes], bytes]) -> None:
        self.shelf.checkpoints[checkpoint_id] = to(self.shelf.checkpoints[checkpoint_id])

    def fill_up(self) -> None:
        assert self.store is not None
        self.store.fail_next_save(CheckpointStoreFull("no space left"))

    def free_space(self) -> None:
        """Only the next save fails."""

    def kept_aside(self) -> list[bytes]:
        return [data for _, data in sorted(self.shelf.damaged.items())]
