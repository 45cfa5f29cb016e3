"""Where controls and plans are kept: each version, decision and plan is a file or an object that is
created once, by its number, and never written again.

    STORE/pricing/versions/000000000000005.json            the fifth update, and what it comes to
    STORE/pricing/queries/QUERY ID/000000000000041.json    what batch 41 of this query runs with
    STORE/pricing/sources/STREAM ID/000000000000001.json   the initial values of a source's filter
    STATE/STREAM ID/plans/000000000000042.json             the splits of the 42nd batch of a source

Decides how an entry is created as a whole in a directory, and which error says that it was not
created. Leaves to the machines what is created, and to others what entries mean. In a directory the
file systems must have links; in an object store, conditional creation and listings that show what
was created before. Any process, any thread.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
import uuid
from collections.abc import Callable
from typing import Any, Final, Protocol

from epochgate.runtime.filesystem import TEMPORARY_SUFFIX, FileSystem, LocalFileSystem
from epochgate.runtime.objects.client import ObjectStore, is_remote, is_url, open_url
from epochgate.runtime.objects.errors import ObjectStoreRefused
from epochgate.runtime.steering.errors import ControlUnusable
from epochgate.runtime.steering.values import from_bytes, to_bytes

VERSIONS: Final = "versions"
QUERIES: Final = "queries"
SOURCES: Final = "sources"
PLANS: Final = "plans"
_SUFFIX: Final = ".json"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_LEFT_S: Final = 3600.0
"""Seconds after which a file that was being written is one that a crash has left."""


class NotCreated(OSError):
    """An entry was not created, and will not be."""


class Entries(Protocol):
    """What a place asks of a directory or object store; keys have slashes. Raises OSError."""

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


class DirectoryEntries:
    """Entries in a directory: each is written aside, and linked to its name."""

    def __init__(self, root: str, files: FileSystem | None = None) -> None:
        self._root, self._files = root, files or LocalFileSystem()

    def get(self, key: str) -> bytes:
        """The whole file."""
        return self._files.read_bytes(self._path(key))

    def create(self, key: str, data: bytes) -> None:
        """Write, fsync, link, fsync: under its name it is whole, and stays."""
        target = self._path(key)
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
        self._files.remove(self._path(key))

    def list(self, folder: str) -> list[str]:
        """The files below a directory."""
        path = self._path(folder)
        if not self._files.is_directory(path):
            return []
        found: list[str] = []
        for name in self._files.list_directory(path):
            key = f"{folder}/{name}" if folder else name
            if name.endswith(_SUFFIX):
                found.append(key)
            elif not name.endswith(TEMPORARY_SUFFIX):
                found.extend(self.list(key))
        return found

    def sweep(self, folder: str) -> None:
        """Remove what writers have left that were killed long ago."""
        path = self._path(folder)
        if not self._files.is_directory(path):
            return
        oldest_ns = (time.time() - _LEFT_S) * 1e9
        for name in self._files.list_directory(path):
            left = os.path.join(path, name)
            if name.endswith(TEMPORARY_SUFFIX):
                with contextlib.suppress(FileNotFoundError):  # its writer has ended meanwhile
                    if self._files.status(left).modified_ns < oldest_ns:
                        self._files.remove(left)

    def _path(self, key: str) -> str:
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


def open_entries(
    store: str,
    open_objects: Callable[[str], ObjectStore] = open_url,
    files: FileSystem | None = None,
) -> Entries:
    """The entries in a directory or at the URL of an object store. Raises ControlUnusable for
    another URL, and for a file.
    """
    if is_url(store):
        return ObjectEntries(open_objects(store))
    if is_remote(store):
        raise ControlUnusable(
            f"{store!r} has no conditional creation, by which one of two drivers is told that it "
            "came second; give a directory, or a URL that begins with s3://, gs:// or abfss://"
        )
    root, files = os.path.abspath(store), files or LocalFileSystem()
    if files.exists(root) and not files.is_directory(root):
        raise ControlUnusable(f"{store!r} is a file, and a store is a directory; give another path")
    return DirectoryEntries(root, files)


class Numbered:
    """The entries of one folder, by number."""

    def __init__(self, entries: Entries, folder: str) -> None:
        self._entries, self._folder = entries, folder

    def numbers(self) -> list[int]:
        """Which there are, ascending. Raises OSError."""
        keys = self._entries.list(self._folder)
        return [int(key.rpartition("/")[2].removesuffix(_SUFFIX)) for key in keys]

    def get(self, number: int) -> dict[str, Any]:
        """Raises OSError, and ValueError for one that is damaged."""
        key = self._key(number)
        try:
            return from_bytes(self._entries.get(key))
        except ValueError as error:
            raise ValueError(f"{key} is damaged: {error}") from error

    def create(self, number: int, entry: dict[str, Any]) -> None:
        """Raises FileExistsError, NotCreated, OSError."""
        self._entries.create(self._key(number), to_bytes(entry))

    def delete(self, number: int) -> None:
        """Raises OSError."""
        self._entries.delete(self._key(number))

    def sweep(self) -> None:
        """Remove what crashes have left. Raises OSError."""
        self._entries.sweep(self._folder)

    def _key(self, number: int) -> str:
        return f"{self._folder}/{number:015d}{_SUFFIX}"


def versions_of(entries: Entries, control: str) -> Numbered:
    """The versions of a control."""
    return Numbered(entries, f"{control}/{VERSIONS}")


def decisions_of(entries: Entries, control: str, query: str) -> Numbered:
    """The decisions of a control for a query."""
    return Numbered(entries, f"{control}/{QUERIES}/{query}")


def initials_of(entries: Entries, control: str, stream: str) -> Numbered:
    """The initial values of a control for a source that it prunes, one after the other."""
    return Numbered(entries, f"{control}/{SOURCES}/{stream}")


def plans_of(entries: Entries, stream: str) -> Numbered:
    """The plans of a stream."""
    return Numbered(entries, f"{stream}/{PLANS}")


def controls_in(entries: Entries) -> list[str]:
    """The controls that there are. Raises OSError."""
    parts = (key.split("/") for key in entries.list(""))
    of = (VERSIONS, QUERIES, SOURCES)
    return sorted({part[0] for part in parts if len(part) > 2 and part[1] in of})


def queries_of(entries: Entries, control: str) -> list[str]:
    """The queries that a control has decided for. Raises OSError."""
    return _below(entries, f"{control}/{QUERIES}")


def sources_of(entries: Entries, control: str) -> list[str]:
    """The streams of the sources that a control prunes. Raises OSError."""
    return _below(entries, f"{control}/{SOURCES}")


def _below(entries: Entries, folder: str) -> list[str]:
    return sorted({key.split("/")[2] for key in entries.list(folder)})


def insist_on_name(what: str, name: str) -> None:
    """Raise ControlUnusable for what cannot be the name of a directory everywhere."""
    if not _NAME.fullmatch(name):
        raise ControlUnusable(
            f"{name!r} cannot be the name of {what}: give letters, digits, '.', '_' and '-', "
            "100 at most, the first a letter or digit"
        )
