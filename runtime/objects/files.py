"""Objects under the names of files, for what writes each file once and renames none.

Decides nothing; leaves out what an object store cannot do: rename, link and lock. Directories are
there as soon as something is below them, and what was written is durable.
"""

from __future__ import annotations

import os

from epochgate.runtime.filesystem import AnyPath, WritableFile
from epochgate.runtime.objects.client import ObjectStore


class ObjectFiles:
    """`WrittenOnce` for paths relative to the URL of `objects`."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def read_bytes(self, path: AnyPath) -> bytes:
        """The whole object."""
        return self._objects.get(os.fspath(path))

    def read_range(self, path: AnyPath, offset: int, length: int) -> bytes:
        """Up to `length` bytes from `offset`."""
        return self._objects.get_range(os.fspath(path), offset, length)

    def open_for_writing(self, path: AnyPath) -> WritableFile:
        """Begin an upload; the object is there once it is closed."""
        return self._objects.upload(os.fspath(path))

    def write_bytes_durably(self, path: AnyPath, data: bytes) -> None:
        """Replace the object."""
        self._objects.put(os.fspath(path), data)

    def make_directory(self, path: AnyPath) -> None:
        """Nothing: there are no directories."""

    def fsync_directory(self, path: AnyPath) -> None:
        """Nothing: what was written is durable."""

    def list_directory(self, path: AnyPath) -> list[str]:
        """The names directly below `path`."""
        folder = f"{os.fspath(path)}/"
        keys = self._objects.list(os.fspath(path))
        return sorted({key.removeprefix(folder).partition("/")[0] for key in keys})

    def remove(self, path: AnyPath) -> bool:
        """Remove the object; whether there was one is not known, so true."""
        self._objects.delete(os.fspath(path))
        return True

    def exists(self, path: AnyPath) -> bool:
        """Return whether there is an object, or one below."""
        return bool(self._objects.list(os.fspath(path)))

    def size(self, path: AnyPath) -> int:
        """The object's bytes."""
        return self._objects.size(os.fspath(path))
