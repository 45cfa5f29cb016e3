"""The notes on streaming queries beside a target: where from, and with which offsets.

Decides the form of a note, and that notes change by compare and exchange alone: of two processes
that have read the same, one is told to read again. All of the notes is compared, since their
versions begin again once a target is dropped. Leaves to `QueryBatch` what a note means. Runs
where a batch is committed. Notes are few: one for each query that has written to the target.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Final, Protocol

from epochgate.runtime import RetryLater
from epochgate.runtime.filesystem import FileSystem, LocalFileSystem
from epochgate.runtime.objects.client import ObjectStore, is_url, open_url
from epochgate.spark.parquet_sink.checked_json import checked, parsed_json
from epochgate.spark.parquet_sink.errors import TargetDamaged

BATCHES_NOTED: Final = 2
"""The next batch, and the one before: it may be the last that took effect."""
_KEPT: Final = 8
"""The newest states of notes in an object store; older ones are removed."""


@dataclass(frozen=True)
class Note:
    """Of one query: its checkpoint location, and the offsets of its newest batches, by number.

    number: of the batches that are recorded, whose effect does not carry the number; above:
    how many the target itself had by then, so that a target that was set back is noticed.
    """

    location: str
    offsets: Mapping[str, str] = field(default_factory=dict)
    number: int = 0
    above: int = 0

    def with_batch(self, batch: int, location: str, offsets: str) -> Note:
        """The note once this batch is the next one."""
        known = {**self.offsets, str(batch): offsets}
        kept = {key: known[key] for key in known if batch - BATCHES_NOTED < int(key) <= batch}
        return Note(location, kept, self.number, self.above)

    def differs(self, batch: int, offsets: str) -> bool:
        """Return whether the batch was noted with other offsets, as far as both are known."""
        noted = self.offsets.get(str(batch), "")
        return bool(noted and offsets) and noted != offsets


@dataclass(frozen=True)
class Notes:
    """All notes of a target, as of one reading; `version`: how often they have changed."""

    version: int = 0
    queries: Mapping[str, Note] = field(default_factory=dict)

    def elsewhere(self, query: str, location: str) -> str:
        """The location that the query had before, if it is another one; else ""."""
        note = self.queries.get(query)
        return note.location if note is not None and note.location != location else ""

    def before(self, query: str, location: str) -> str:
        """The query that had this location before, if this one is new; else ""."""
        if query in self.queries:
            return ""
        at = (one for one, note in self.queries.items() if note.location == location)
        return next(at, "")

    def with_note(self, query: str, note: Note) -> dict[str, Note]:
        """The next state: no other query has the location any more."""
        others = {
            one: other
            for one, other in self.queries.items()
            if one != query and other.location != note.location
        }
        return {**others, query: note}

    def to_bytes(self) -> bytes:
        """As JSON."""
        queries = {query: asdict(note) for query, note in self.queries.items()}
        return checked({"version": self.version, "queries": queries})

    @classmethod
    def from_bytes(cls, data: bytes, place: str) -> Notes:
        """Inverse of `to_bytes`; `place`: where they lie. Raises TargetDamaged."""
        what = "the notes of the queries"
        values = parsed_json(data, place, what)
        try:
            queries = {query: Note(**note) for query, note in values["queries"].items()}
            return cls(int(values["version"]), queries)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise TargetDamaged(place, what, repr(error), "") from error


class NoteStore(Protocol):
    """The place where the notes of a target lie."""

    def read(self) -> Notes:
        """The newest state."""

    def exchange(self, read: Notes, queries: Mapping[str, Note]) -> None:
        """Write the next state durably, if `read` is the newest. RetryLater if it is not, or if
        that is not known.
        """


class DirectoryNotes:
    """In a file of a directory, `queries.json`, with a lock beside it."""

    def __init__(self, directory: str, files: FileSystem | None = None) -> None:
        self._directory = directory
        self._files: FileSystem = LocalFileSystem() if files is None else files
        self._path = os.path.join(directory, "queries.json")

    def read(self) -> Notes:
        """The newest state."""
        try:
            return Notes.from_bytes(self._files.read_bytes(self._path), self._path)
        except FileNotFoundError:
            return Notes()
        except OSError as error:
            raise TargetDamaged(self._path, "the notes of the queries", repr(error), "") from error

    def exchange(self, read: Notes, queries: Mapping[str, Note]) -> None:
        """Write the next state, under the lock."""
        self._files.make_directory(self._directory)
        lock = self._files.try_lock(f"{self._path}.lock")
        if lock is None:
            raise RetryLater(f"{self._path} is being written")
        try:
            if self.read() != read:
                raise RetryLater(f"{self._path} has changed")
            notes = Notes(read.version + 1, queries)
            self._files.write_bytes_durably(self._path, notes.to_bytes())
        finally:
            lock.release()


class ObjectNotes:
    """In an object store, a numbered object for each state, made if there is none of the number."""

    def __init__(self, objects: ObjectStore, folder: str = "_epochgate/queries") -> None:
        self._objects, self._folder = objects, folder

    def read(self) -> Notes:
        """The newest state."""
        keys = self._objects.list(self._folder)
        if not keys:
            return Notes()
        place = f"{self._objects.url}/{keys[-1]}"
        return Notes.from_bytes(self._objects.get(keys[-1]), place)

    def exchange(self, read: Notes, queries: Mapping[str, Note]) -> None:
        """Create the object of the next number, and remove old ones. A target that is dropped
        between the look and that is not noticed.
        """
        notes = Notes(read.version + 1, queries)
        try:
            if self.read() != read:
                raise FileExistsError
            self._objects.create(self._key(notes.version), notes.to_bytes())
        except FileExistsError as error:
            raise RetryLater(f"{self._objects.url}/{self._folder} has changed") from error
        except OSError as error:
            raise RetryLater(str(error)) from error
        if notes.version > _KEPT:
            # One that stays does no harm: the newest counts.
            with contextlib.suppress(OSError):
                self._objects.delete(self._key(notes.version - _KEPT))

    def _key(self, version: int) -> str:
        return f"{self._folder}/{version:015d}.json"


def notes_in(
    place: str,
    folder: str,
    files: FileSystem | None = None,
    open_objects: Callable[[str], ObjectStore] = open_url,
) -> NoteStore:
    """Of the target in the directory or at the URL `place`, in a `folder` of it."""
    if is_url(place):
        return ObjectNotes(open_objects(place))
    return DirectoryNotes(os.path.join(place, folder), files)
