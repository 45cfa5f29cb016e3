"""The files of a job's history: in a directory, or objects beside checkpoints in an object store.

Decides names, and how many files are kept. A file of a directory is appended to. An object cannot
be: the newest one is put again with each line, so that objects are small, and each driver has its
own, named for its epoch, so that one which was replaced overwrites nothing of a later one.

    history/history.jsonl             the newest lines of a directory
    history/history.1.jsonl           older ones, and so on, the oldest with the greatest number
    history/000000002-000004.jsonl    the fourth object of the driver with epoch 2
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import BinaryIO, Final, Protocol

from epochgate.runtime.filesystem import LocalFileSystem, opener
from epochgate.runtime.objects.client import ObjectStore

FOLDER: Final = "history"
FILE_BYTES_MAX: Final = 1 << 20
FILES_MAX: Final = 4
OBJECT_BYTES_MAX: Final = 1 << 16
OBJECTS_MAX: Final = 32


def file_name(number: int) -> str:
    """The name of a file of the history; the newest is number 0.

    >>> file_name(0), file_name(2)
    ('history.jsonl', 'history.2.jsonl')
    """
    return f"history.{number}.jsonl" if number else "history.jsonl"


class HistoryFiles(Protocol):
    """The place that a driver writes to. Every operation may raise OSError."""

    @property
    def size_bytes(self) -> int:
        """Of the file that is written to; 0 where it is new."""

    def open(self) -> None:
        """Go on with the newest file, or begin one."""

    def begin_another(self) -> None:
        """Begin a file, and drop the oldest of too many."""

    def put(self, line: bytes) -> None:
        """Write a line, which readers can see then."""

    def close(self) -> None:
        """Let go of the file."""


class FilesOfDirectory:
    """Files that are appended to, in a directory that is made if it is missing."""

    def __init__(self, directory: str, files_max: int = FILES_MAX) -> None:
        self._directory, self._files_max = directory, files_max
        self._file: BinaryIO | None = None
        self.size_bytes = 0

    def open(self) -> None:
        """Go on with the newest file, or begin one."""
        LocalFileSystem().make_directory(self._directory)
        path = os.path.join(self._directory, file_name(0))
        self._file = open(path, "ab", buffering=0, opener=opener)  # noqa: SIM115  it is kept open
        self.size_bytes = os.path.getsize(path)
        if self.size_bytes:
            # The driver before may have been killed within a line; an empty one is passed over.
            self.put(b"\n")

    def begin_another(self) -> None:
        """Number each file one higher, which drops the oldest."""
        self.close()
        for number in reversed(range(self._files_max - 1)):
            older, newer = (
                os.path.join(self._directory, file_name(n)) for n in (number + 1, number)
            )
            with contextlib.suppress(FileNotFoundError):
                os.replace(newer, older)
        self.open()

    def put(self, line: bytes) -> None:
        """Append it."""
        assert self._file is not None, "it was opened"
        self._file.write(line)
        self.size_bytes += len(line)

    def close(self) -> None:
        """Let go of the file."""
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):
                file.close()


class FilesOfObjects:
    """Objects below the folder of the history, of the driver with this epoch."""

    def __init__(self, objects: ObjectStore, epoch: int, files_max: int = OBJECTS_MAX) -> None:
        self._objects, self._epoch, self._files_max = objects, epoch, files_max
        self._number, self._lines = 0, b""

    @property
    def size_bytes(self) -> int:
        """Of the newest object."""
        return len(self._lines)

    def open(self) -> None:
        """Begin an object."""
        self.begin_another()

    def begin_another(self) -> None:
        """Begin an object, and remove the oldest of too many."""
        self._number, self._lines = self._number + 1, b""
        there = self._objects.list(FOLDER)
        for key in there[: max(0, len(there) + 1 - self._files_max)]:
            self._objects.delete(key)

    def put(self, line: bytes) -> None:
        """Put the object again, with the line."""
        key = f"{FOLDER}/{self._epoch:09d}-{self._number:06d}.jsonl"
        self._objects.put(key, self._lines + line)
        self._lines += line

    def close(self) -> None:
        """Hold nothing."""


def lines_in_directory(directory: str) -> Iterator[bytes]:
    """The lines of the files in a directory, oldest first; none where it is missing."""
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return
    numbers = [n for n in range(len(names) + FILES_MAX) if file_name(n) in names]
    for number in reversed(numbers):
        # The oldest may have been dropped since.
        with contextlib.suppress(FileNotFoundError):
            with open(os.path.join(directory, file_name(number)), "rb") as file:
                lines = file.read().splitlines()
            yield from lines


def lines_in_objects(objects: ObjectStore) -> Iterator[bytes]:
    """The lines of the objects beside checkpoints, oldest first."""
    for key in objects.list(FOLDER):
        with contextlib.suppress(FileNotFoundError):
            yield from objects.get(key).splitlines()
