"""The removal of source files that the target has: deleted, or moved into an archive.

Decides how a file goes, so that it may be asked for again after a kill: one that is gone already is
no error, and one that is another than the file that was read, by size, time stamp or ETag, stays.
Leaves to the machine `removal` when a file may go, and to the work after commits that a failure is
tried again. Runs on the thread of that work.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import shutil
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from epochgate.errors import EpochgateError
from epochgate.runtime.filesystem import LocalFileSystem
from epochgate.runtime.objects.client import ObjectStore, is_remote, open_url
from epochgate.spark.files.access import FileAccess
from epochgate.spark.files.content import Stamp, is_as_it_was
from epochgate.spark.files.object_finding import bucket_and_key
from epochgate.spark.files.taken import TakenFile

DELETE: Final = "delete"
MOVE: Final = "move:"
_PART: Final = ".epochgate-part"
_BLOCK_BYTES: Final = 1 << 20


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
        access, path = FileAccess(self.open_objects), record.path
        try:
            found = access.stamp_of(path)
        except FileNotFoundError:
            return False
        if not is_as_it_was(record.stamp, found):
            return False
        if self.to is not None:
            place = self.place_of(path)
            is_archived = _is_archived(access, path, found, place)
            if not is_archived and not is_remote(path) and _is_renamed(path, place):
                return True
            if not is_archived:
                self._copy(path, place, found)
            if not is_as_it_was(found, access.stamp_of(path)):  # replaced while it was copied
                if not is_archived:
                    self._delete(place)
                return False
        self._delete(path)
        return True

    def place_of(self, path: str) -> str:
        """The place of a file in the archive."""
        assert self.to is not None, "it is asked where there is one"
        below = path.removeprefix(self.root).lstrip("/") or path.rpartition("/")[2]
        return f"{self.to.rstrip('/')}/{below}"

    def _copy(self, path: str, place: str, stamp: Stamp) -> None:
        if is_remote(path):
            bucket, key = bucket_and_key(path)
            self.open_objects(bucket).copy(key, bucket_and_key(place)[1])
            return
        part = f"{place}{_PART}"
        shutil.copy2(path, part)
        with open(part, "rb+") as copied:
            os.fsync(copied.fileno())
        os.utime(part, ns=(stamp.modified_ns, stamp.modified_ns))
        os.replace(part, place)
        _sync_directory(os.path.dirname(place))

    def _delete(self, path: str) -> None:
        if is_remote(path):
            bucket, key = bucket_and_key(path)
            self.open_objects(bucket).delete(key)
            return
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def _is_archived(access: FileAccess, path: str, stamp: Stamp, place: str) -> bool:
    """Return whether the archive has the same bytes under this name, as it has where a kill came
    before the file was deleted. Raises ArchiveTaken if it has others.
    """
    try:
        there = access.stamp_of(place)
    except FileNotFoundError:
        return False
    if _is_one(path, place):
        raise ArchiveTaken(errno.EEXIST, f"it is in the archive itself, at {place!r}")
    is_same = there.size_bytes == stamp.size_bytes
    if is_same:
        with access.open(path, stamp) as one, access.open(place, there) as other:
            while is_same and (block := one.read(_BLOCK_BYTES)):
                is_same = block == other.read(_BLOCK_BYTES)
    if not is_same:
        raise ArchiveTaken(
            errno.EEXIST, f"the archive has another file of that name, {place!r}; move it away"
        )
    return True


def _is_one(path: str, place: str) -> bool:
    """Return whether both are one entry, by whichever names: a second one, a link, would remain."""
    if is_remote(path):
        return path == place
    one = os.stat(path)
    return one.st_nlink < 2 and os.path.samestat(one, os.stat(place))


def _is_renamed(path: str, place: str) -> bool:
    """Move a file by its name alone, if it can be: not to another file system or mount, nor a link,
    which may lead elsewhere from there.
    """
    LocalFileSystem().make_directory(os.path.dirname(place))
    if os.path.islink(path):
        return False
    try:
        os.rename(path, place)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return False
    return True


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
            except (
                OSError,
                EpochgateError,
            ) as error:  # the latter, where a bucket cannot be opened
                failed.append((record, getattr(error, "strerror", None) or str(error)))
        return failed
