"""The stores of entries: each is a file or an object, created once, and never written again.

Decides how an entry is created as a whole in a directory, and which error says that it was not
created. Leaves to the machines what is created, and to others what entries mean. In a directory the
file systems must have links; in an object store, conditional creation and listings that show what
was created before. Any process, any thread.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Callable
from typing import Final, Protocol

from epochgate.runtime.entries.errors import NotCreated, StoreUnusable
from epochgate.runtime.filesystem import (
    TEMPORARY_SUFFIX,
    FileSystem,
    LocalFileSystem,
)
from epochgate.runtime.objects.client import ObjectStore, is_remote, is_url, open_url
from epochgate.runtime.objects.errors import ObjectStoreRefused

SUFFIX: Final = ".json"
_LEFT_S: Final = 3600.0
"""Seconds after which a file that was being written is one that a crash has left."""


class Entries(Protocol):
    """The requests to a directory or object store; keys have slashes. Raises OSError."""

    def get(self, key: str) -> bytes:
        """The whole entry; `FileNotFoundError` if there is none."""

    def create(self, key: str, data: bytes) -> None:
        """Make the entry durably, all or nothing; `FileExistsError` if there is one, `NotCreated`
        if it is certain that there is none.
        """

    def delete(self, key: str) -> None:
        """Remove the entry, if there is one."""

    def list(self, folder: str) -> list[str]:
        """The keys below `folder`, however deep, sorted."""

    def sweep(self, folder: str) -> None:
        """Remove what crashes have left in `folder`."""

    def place(self, key: str) -> str:
        """The path or URL of an entry, for people."""


class DirectoryEntries:
    """Entries in a directory: each is written aside, and linked to its name."""

    def __init__(self, root: str, files: FileSystem | None = None) -> None:
        self._root, self._files = root, files or LocalFileSystem()

    def get(self, key: str) -> bytes:
        """The whole file."""
        return self._files.read_bytes(self.place(key))

    def create(self, key: str, data: bytes) -> None:
        """Write, fsync, link, fsync: under its name it is whole, and stays."""
        target = self.place(key)
        folder, name = os.path.split(target)
        temporary = os.path.join(folder, f".{name}.{uuid.uuid4().hex}{TEMPORARY_SUFFIX}")
        try:
            self._write(folder, temporary, data)
        except OSError as error:
            raise NotCreated(error.errno, error.strerror, target) from error
        try:
            self._files.link(temporary, target)
            self._files.fsync_directory(folder)
        finally:
            self._files.remove(temporary)

    def _write(self, folder: str, temporary: str, data: bytes) -> None:
        self._files.make_directory(folder)
        file = self._files.open_for_writing(temporary)
        try:
            file.write(data)
            file.fsync()
        finally:
            file.close()

    def delete(self, key: str) -> None:
        """Remove the file."""
        self._files.remove(self.place(key))

    def list(self, folder: str) -> list[str]:
        """The files below a directory."""
        try:
            names = self._files.list_directory(self.place(folder))
        except (FileNotFoundError, NotADirectoryError):
            return []
        found: list[str] = []
        for name in names:
            key = f"{folder}/{name}" if folder else name
            if name.endswith(SUFFIX):
                found.append(key)
            elif not name.endswith(TEMPORARY_SUFFIX) and self._files.is_directory(self.place(key)):
                found.extend(self.list(key))
        return found

    def sweep(self, folder: str) -> None:
        """Remove what writers have left that were killed long ago."""
        path = self.place(folder)
        if not self._files.is_directory(path):
            return
        oldest_ns = (time.time() - _LEFT_S) * 1e9
        for name in self._files.list_directory(path):
            left = os.path.join(path, name)
            if name.endswith(TEMPORARY_SUFFIX):
                with contextlib.suppress(FileNotFoundError):  # its writer has ended meanwhile
                    if self._files.status(left).modified_ns < oldest_ns:
                        self._files.remove(left)

    def place(self, key: str) -> str:
        """The path of the file."""
        return os.path.join(self._root, *key.split("/")) if key else self._root


class ObjectEntries:
    """Entries in an object store."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def get(self, key: str) -> bytes:
        """The whole object."""
        return self._objects.get(key)

    def create(self, key: str, data: bytes) -> None:
        """One conditional PUT."""
        try:
            self._objects.create(key, data)
        except ObjectStoreRefused as error:
            raise NotCreated(error.errno, error.strerror, key) from error

    def delete(self, key: str) -> None:
        """Remove the object."""
        self._objects.delete(key)

    def list(self, folder: str) -> list[str]:
        """One listing."""
        return self._objects.list(folder)

    def sweep(self, folder: str) -> None:
        """Nothing: an object is there as a whole or not at all."""

    def place(self, key: str) -> str:
        """The URL of the object."""
        return f"{self._objects.url}/{key}"


def open_entries(
    store: str,
    open_objects: Callable[[str], ObjectStore] = open_url,
    files: FileSystem | None = None,
) -> Entries:
    """The entries in a directory or at the URL of an object store. Raises StoreUnusable for
    another URL, and for a file.
    """
    if is_url(store):
        return ObjectEntries(open_objects(store))
    if is_remote(store):
        raise StoreUnusable(
            f"{store!r} has no conditional creation, by which one of two drivers is told that it "
            "came second; give a directory, or a URL that begins with s3://, gs:// or abfss://"
        )
    root, files = os.path.abspath(store), files or LocalFileSystem()
    if files.exists(root) and not files.is_directory(root):
        raise StoreUnusable(f"{store!r} is a file, and a store is a directory; give another path")
    return DirectoryEntries(root, files)
