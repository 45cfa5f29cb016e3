"""Where controls and plans are kept: each version, decision and plan is a file or an object that is
created once, by its number, and never written again.

    STORE/pricing/versions/000000000000005.json            the fifth update, and what it comes to
    STORE/pricing/queries/QUERY ID/000000000000041.json    what batch 41 of this query runs with
    STORE/pricing/sources/STREAM ID/000000000000001.json   the initial values of a source's filter
    STATE/STREAM ID/plans/000000000000042.json             the splits of the 42nd batch of a source

Decides how an entry is created as a whole in a directory, which error says that it was not created,
that a file of another name is ignored, and that one which is not as it was written is refused.
Leaves to the machines what is created, and to others what entries mean. In a directory the file
systems must have links; in an object store, conditional creation and listings that show what was
created before. Any process, any thread.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Protocol

from epochgate.runtime.filesystem import (
    TEMPORARY_SUFFIX,
    FileSystem,
    LocalFileSystem,
    NotAFile,
)
from epochgate.runtime.objects.client import ObjectStore, is_remote, is_url, open_url
from epochgate.runtime.objects.errors import ObjectStoreRefused
from epochgate.runtime.steering.errors import ControlUnusable, EntryDamaged
from epochgate.runtime.steering.values import opened, sealed

_log = logging.getLogger(__name__)

VERSIONS: Final = "versions"
QUERIES: Final = "queries"
SOURCES: Final = "sources"
PLANS: Final = "plans"
_SUFFIX: Final = ".json"
_ENTRY: Final = re.compile(r"\d{15}\.json", re.ASCII)
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
            if name.endswith(_SUFFIX):
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


@dataclass(frozen=True)
class Kind:
    """What the entries of a folder have: names that none lacks, which of them is the number of the
    entry, if one is, and what to do when a file is damaged.
    """

    names: frozenset[str]
    number: str | None
    next_step: str


_OUT_OF_THE_FOLDER: Final = "Restore the file from a backup, or move it out of the folder"
_VERSION: Final = Kind(
    frozenset(("version", "value", "changes", "token", "at", "by")),
    "version",
    f"{_OUT_OF_THE_FOLDER}: the update before it applies then, so update the control with the "
    "values that are to hold, and start the query again",
)
_DECISION: Final = Kind(
    frozenset(("batch", "version", "since", "value", "at", "by")),
    "batch",
    f"{_OUT_OF_THE_FOLDER} and start the query again: the batch is decided with the newest values "
    "then, and what an earlier run of it has written may have others",
)
_INITIAL_VALUES: Final = Kind(
    frozenset(("value",)),
    None,
    f"{_OUT_OF_THE_FOLDER}: the next start of the query writes it again",
)
_PLAN: Final = Kind(
    frozenset(("batch", "splits", "version", "state")),
    "batch",
    "Restore the file from a backup, or use an empty checkpoint location",
)


class Numbered:
    """The entries of one folder, by number. Files of other names in it are told, and ignored."""

    def __init__(self, entries: Entries, folder: str, kind: Kind) -> None:
        self._entries, self._folder, self._kind = entries, folder, kind
        self._names = re.compile(
            rf"^{re.escape(folder)}/(\d{{15}})\.json$", re.ASCII | re.MULTILINE
        )

    @property
    def shown(self) -> str:
        """The path or URL of the folder, for people."""
        return self._entries.place(self._folder)

    def numbers(self) -> list[int]:
        """Which there are, ascending. Raises OSError."""
        keys = self._entries.list(self._folder)
        # In one search: a batch lists a hundred names three times.
        found = list(map(int, self._names.findall("\n".join(keys))))
        if len(found) != len(keys):
            for key in keys:
                if not self._names.fullmatch(key):
                    _tell_foreign(self._entries.place(key))
        return found

    def get(self, number: int) -> dict[str, Any]:
        """Raises OSError, and EntryDamaged for one that is not as it was written."""
        key = self._key(number)
        try:
            entry = opened(self._entries.get(key))
            self._insist_on_kind(entry, number)
        except (ValueError, NotAFile, IsADirectoryError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            place = self._entries.place(key)
            raise EntryDamaged(place, reason, self._kind.next_step) from error
        return entry

    def _insist_on_kind(self, entry: dict[str, Any], number: int) -> None:
        kind = self._kind
        if missing := kind.names - entry.keys():
            raise ValueError(f"it has no {sorted(missing)[0]!r}")
        if kind.number is not None and entry[kind.number] != number:
            raise ValueError(f"it is that of number {entry[kind.number]!r}")

    def create(self, number: int, entry: dict[str, Any]) -> None:
        """Raises FileExistsError, NotCreated, OSError."""
        self._entries.create(self._key(number), sealed(entry))

    def delete(self, number: int) -> None:
        """Raises OSError."""
        self._entries.delete(self._key(number))

    def sweep(self) -> None:
        """Remove what crashes have left. Raises OSError."""
        self._entries.sweep(self._folder)

    def _key(self, number: int) -> str:
        return f"{self._folder}/{number:015d}{_SUFFIX}"


@lru_cache(maxsize=1000)
def _tell_foreign(place: str) -> None:
    """Once in each process."""
    _log.warning(
        "%s is no file of epochgate, and is ignored; move it out of the store if it is not needed",
        place,
    )


def versions_of(entries: Entries, control: str) -> Numbered:
    """The versions of a control."""
    return Numbered(entries, f"{control}/{VERSIONS}", _VERSION)


def decisions_of(entries: Entries, control: str, query: str) -> Numbered:
    """The decisions of a control for a query."""
    return Numbered(entries, f"{control}/{QUERIES}/{query}", _DECISION)


def initials_of(entries: Entries, control: str, stream: str) -> Numbered:
    """The initial values of a control for a source that it prunes, one after the other."""
    return Numbered(entries, f"{control}/{SOURCES}/{stream}", _INITIAL_VALUES)


def plans_of(entries: Entries, stream: str) -> Numbered:
    """The plans of a stream."""
    return Numbered(entries, f"{stream}/{PLANS}", _PLAN)


def controls_in(entries: Entries) -> list[str]:
    """The controls that there are. Raises OSError."""
    parts = (key.split("/") for key in entries.list(""))
    return sorted({part[0] for part in parts if _is_of_a_control(part)})


def queries_of(entries: Entries, control: str) -> list[str]:
    """The queries that a control has decided for. Raises OSError."""
    return _below(entries, control, QUERIES)


def sources_of(entries: Entries, control: str) -> list[str]:
    """The streams of the sources that a control prunes. Raises OSError."""
    return _below(entries, control, SOURCES)


def newest_decisions(
    entries: Entries, control: str, known: dict[str, dict[str, Any]] | None = None
) -> list[dict[str, Any]]:
    """The newest decision for each query. `known`: by query, what was read before, which is read
    again where it is not the newest any more, since an entry is never written again. Raises
    OSError, EntryDamaged.
    """
    known = {} if known is None else known
    newest: dict[str, int] = {}
    for key in reversed(entries.list(f"{control}/{QUERIES}")):
        query, _, name = key[len(control) + len(QUERIES) + 2 :].partition("/")
        if query not in newest and _ENTRY.fullmatch(name):
            newest[query] = int(name.removesuffix(_SUFFIX))
    for query, number in newest.items():
        if query not in known or known[query]["batch"] != number:
            known[query] = decisions_of(entries, control, query).get(number)
    return [known[query] for query in sorted(newest)]


def foreign_in(entries: Entries, control: str) -> list[str]:
    """The files in the folders of a control that are no entries of it. Raises OSError."""
    return [key for key in entries.list(control) if not _is_of_a_control(key.split("/"))]


def _below(entries: Entries, control: str, folder: str) -> list[str]:
    parts = (key.split("/") for key in entries.list(f"{control}/{folder}"))
    return sorted({part[2] for part in parts if _is_of_a_control(part)})


def _is_of_a_control(parts: list[str]) -> bool:
    """Whether a key is that of a version, a decision, or initial values."""
    depth = {VERSIONS: 3, QUERIES: 4, SOURCES: 4}.get(parts[1] if len(parts) > 1 else "")
    return len(parts) == depth and _ENTRY.fullmatch(parts[-1]) is not None


def insist_on_name(what: str, name: str) -> None:
    """Raise ControlUnusable for what cannot be the name of a directory everywhere."""
    if not _NAME.fullmatch(name):
        raise ControlUnusable(
            f"{name!r} cannot be the name of {what}: give letters, digits, '.', '_' and '-', "
            "100 at most, the first a letter or digit"
        )
