"""The removal of source files that the target has: deleted, or moved into an archive.

Decides how a file goes, so that it may be asked for again after a kill: one that is gone already is
no error, and one that is another than the file that was read, by size, time stamp or ETag, stays.
Leaves to the machine `removal` when a file may go, and to the work after commits that a failure is
tried again. Runs on the thread of that work.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from epochgate.errors import EpochgateError
from epochgate.runtime.objects.client import ObjectStore, is_remote, open_url
from epochgate.spark.files.access import FileAccess
from epochgate.spark.files.content import Stamp, is_as_it_was
from epochgate.spark.files.object_finding import bucket_and_key
from epochgate.spark.files.taken import TakenFile

DELETE: Final = "delete"
MOVE: Final = "move:"
_PART: Final = ".epochgate-part"


def why_not_removed(asked: str | None, age_s: float, on_changed_file: str | None) -> str | None:
    """Return the reason why options of a removal cannot be meant; none if they can."""
    if not (math.isfinite(age_s) and age_s >= 0):
        return f"committed_files_age_s is {age_s}; it must be 0 or more"
    if asked is None:
        lacking = (
            "--after-commit-age (committed_files_age_s) is given, and files stay; give "
            "--after-commit (committed_files) as well"
        )
        return lacking if age_s else None
    if asked != DELETE and (not asked.startswith(MOVE) or asked == MOVE):
        return (
            f"--after-commit (committed_files) is {asked!r}; give {DELETE}, or {MOVE}DIR with a "
            "directory or URL"
        )
    if on_changed_file == "new":
        return (
            "--after-commit (committed_files) removes files that are read once, and "
            "--on-changed-file new (on_changed_file) reads them again when they change; leave out "
            "one of them"
        )
    return None


class FilesNotRemoved(EpochgateError):
    """Committed files could not be removed: how many, one of them, the reason of that."""

    def __str__(self) -> str:
        count, path, reason = self.args
        more = f", and {count - 1:,} more" if count > 1 else ""
        return (
            f"cannot remove {path!r}{more}, whose rows are committed: {reason}. Nothing is lost, "
            "and it is tried again after the next commit. Check the permissions of the directory, "
            "or start without --after-commit"
        )


class ArchiveTaken(OSError):
    """The archive has another file of that name."""


@dataclass(frozen=True)
class Removal:
    """The way in which files are removed. to: the directory or URL of the archive, none to delete
    them. root: the part of the source that is left out of their names there.
    """

    root: str
    to: str | None
    open_objects: Callable[[str], ObjectStore] = open_url

    def remove(self, record: TakenFile) -> bool:
        """Remove the file; False if it is gone, or another by now. Raises OSError."""
        access = FileAccess(self.open_objects)
        try:
            found = access.stamp_of(record.path)
        except FileNotFoundError:
            return False
        if not is_as_it_was(record.stamp, found):
            return False
        if is_remote(record.path):
            return self._remove_object(access, record.path, found)
        if self.to is None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(record.path)
            return True
        self._move_file(record.path, found)
        return True

    def place_of(self, path: str) -> str:
        """The place of a file in the archive."""
        assert self.to is not None, "it is asked where there is one"
        below = path.removeprefix(self.root).lstrip("/")
        return f"{self.to.rstrip('/')}/{below}"

    def _move_file(self, path: str, stamp: Stamp) -> None:
        place = self.place_of(path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        try:
            there = os.stat(place)
        except FileNotFoundError:
            pass
        else:
            if (there.st_size, there.st_mtime_ns) != stamp[:2]:
                raise _taken(place)
        if os.stat(path).st_dev == os.stat(os.path.dirname(place)).st_dev:
            os.replace(path, place)
            return
        part = f"{place}{_PART}"
        shutil.copy2(path, part)
        with open(part, "rb+") as copied:
            os.fsync(copied.fileno())
        os.utime(part, ns=(stamp.modified_ns, stamp.modified_ns))
        os.replace(part, place)
        _sync_directory(os.path.dirname(place))
        os.unlink(path)

    def _remove_object(self, access: FileAccess, path: str, stamp: Stamp) -> bool:
        bucket, key = bucket_and_key(path)
        objects = self.open_objects(bucket)
        if self.to is not None:
            place = bucket_and_key(self.place_of(path))[1]
            with contextlib.suppress(FileNotFoundError):
                if objects.status(place).size_bytes != stamp.size_bytes:
                    raise _taken(f"{bucket}/{place}")
            objects.copy(key, place)
            if not is_as_it_was(stamp, access.stamp_of(path)):
                objects.delete(place)
                return False
        objects.delete(key)
        return True


def _taken(place: str) -> ArchiveTaken:
    return ArchiveTaken(17, "the archive has another file of that name; move it away", place)


def _sync_directory(path: str) -> None:
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


@dataclass(frozen=True)
class AfterCommit:
    """The fate of files whose rows are committed. age_s: how long after its record a file stays.
    given_up: the checkpoints whose rows the target may lack by command.
    """

    removal: Removal
    age_s: float = 0.0
    given_up: Collection[range] = ()


class DueFiles:
    """The files that may be removed, the oldest record first, as of one enumerator.

    age_s: how long after its record a file stays. now: seconds since 1970.
    """

    def __init__(
        self, removal: Removal, age_s: float = 0.0, now: Callable[[], float] = time.time
    ) -> None:
        self.removal, self._age_s, self._now = removal, age_s, now
        self._due: deque[TakenFile] = deque()
        self.removed = 0

    def __len__(self) -> int:
        return len(self._due)

    def add(self, record: TakenFile) -> None:
        """The target has all rows of the file."""
        self._due.append(record)

    def take(self) -> list[TakenFile]:
        """Take those that are old enough."""
        until, taken = self._now() - self._age_s, []
        while self._due and self._due[0].at <= until:
            taken.append(self._due.popleft())
        return taken

    def give_back(self, records: Sequence[TakenFile]) -> None:
        """Keep those that could not be removed; they are the next."""
        self._due.extendleft(reversed(records))

    def remove(self, records: Sequence[TakenFile]) -> list[tuple[TakenFile, str]]:
        """Remove files. Return those that could not be removed, with the reasons; blocks."""
        failed: list[tuple[TakenFile, str]] = []
        for record in records:
            try:
                self.removed += self.removal.remove(record)
            except OSError as error:
                failed.append((record, error.strerror or str(error)))
        return failed
