"""The paths of a source that count as files of it, and why the others do not; nothing is read of
them.

Those below a directory, those that match a pattern, or the one named. Not, each with its reason:
names beginning with '.' or '_', also of directories below the source; endings of unfinished files
(`UNFINISHED_SUFFIXES`); links to directories, which may lead back to where they are; what is no
file. Runs on the driver.
"""

from __future__ import annotations

import fnmatch
import glob
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from epochgate.errors import UsageError
from epochgate.runtime.objects.client import is_remote
from epochgate.spark.files.content import Stamp
from epochgate.spark.files.errors import SourceMissing, SourceUnreadable
from epochgate.spark.files.layout import UNFINISHED_SUFFIXES

HIDDEN: Final = "hidden"
UNFINISHED: Final = "unfinished"
EMPTY: Final = "empty"
LINKED_DIRECTORY: Final = "link to a directory"
DANGLING: Final = "link to nothing"
DIRECTORY: Final = "directory"
NO_FILE: Final = "neither file nor directory"
OTHER_TIME: Final = "modified at another time"
ADVICE: Final = {
    HIDDEN: "its name begins with '.' or '_'",
    UNFINISHED: f"its name ends with one of {', '.join(UNFINISHED_SUFFIXES)}",
    EMPTY: "it has no byte",
    LINKED_DIRECTORY: "links to directories are not followed; move the files, mount the directory "
    "there, or ingest it as a source of its own",
    DANGLING: "what it refers to is not there",
    DIRECTORY: "the pattern matches the directory, not what is in it; `**` stands for any depth",
    NO_FILE: "it is a pipe, a socket or a device",
    OTHER_TIME: "--modified-after (modified_after) or --modified-before (modified_before) "
    "leaves it out",
}


class Listing(NamedTuple):
    """The files that count, in order, with stamps where the listing tells them, and the other
    paths with the reason, a key of `ADVICE`; files that count may be empty, or gone by now.
    """

    files: dict[str, Stamp | None]
    unread: dict[str, str]


class NameUnusable(UsageError):
    """The name of a source is no UTF-8: the name, escaped."""

    def __str__(self) -> str:
        return f"source {self.args[0]!r} has bytes in its name that are no UTF-8. Rename it."


def absolute_source(source: str) -> str:
    """The source as it is known everywhere: an absolute path, or a URL without a last slash.

    Raises NameUnusable.
    """
    if not is_utf_8(source):
        raise NameUnusable(escaped(source))
    return source.rstrip("/") if is_remote(source) else os.path.abspath(source)


def is_utf_8(path: str) -> bool:
    """Return whether the name of a file can be written down; Python keeps other bytes as
    surrogates.
    """
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def escaped(path: str) -> str:
    r"""A name that is no UTF-8 as text.

    >>> escaped("caf\udce9.csv")
    'caf\\xe9.csv'
    """
    return os.fsencode(path).decode(errors="backslashreplace")


def find_files(source: str, *, may_be_none: bool) -> Listing:
    """Return the files that are there. may_be_none: whether a pattern may match no file.

    Raises SourceMissing or SourceUnreadable.
    """
    try:
        if os.path.isdir(source):
            return _listing(_walk(source))
        if os.path.lexists(source):
            return _listing([(source, None)])
        if not glob.has_magic(source):
            raise SourceMissing(source)
        root = _literal_root(source)
        if not os.path.isdir(root):
            raise SourceMissing(source)
        # glob ignores what it may not list; the user has to know.
        os.listdir(root)
    except OSError as error:
        raise SourceUnreadable(error.filename or source, error.strerror) from error
    listing = _listing(_matches(source, root))
    if not listing.files and not may_be_none:
        raise SourceMissing(source, told(Counter(listing.unread.values())))
    return listing


def told(unread: Mapping[str, int]) -> str:
    """Count the paths that are not read, by reason.

    >>> told({"hidden": 2, "empty": 1})
    '1 empty, 2 hidden'
    """
    return ", ".join(f"{count:,} {reason}" for reason, count in sorted(unread.items()))


def _listing(found: Iterator[tuple[str, str | None]] | list[tuple[str, str | None]]) -> Listing:
    listing = Listing({}, {})
    for path, reason in sorted(found):
        if reason is None:
            listing.files[path] = None
        else:
            listing.unread[path] = reason
    return listing


def _walk(directory: str) -> Iterator[tuple[str, str | None]]:
    below = [directory]
    while below:
        with os.scandir(below.pop()) as entries:
            for entry in entries:
                reason = reason_not_to_read(entry.name)
                if reason is None and entry.is_dir(follow_symlinks=False):
                    below.append(entry.path)
                elif reason is None and not entry.is_file():
                    yield entry.path, _reason_of_no_file(entry.path)
                else:
                    yield entry.path, reason


def _matches(pattern: str, root: str) -> Iterator[tuple[str, str | None]]:
    for path in glob.iglob(pattern, recursive=True):
        reason = reason_not_to_read(os.path.relpath(path, root))
        if reason is None and not os.path.isfile(path):
            reason = _reason_of_no_file(path)
            if reason == DIRECTORY and "**" in pattern:
                continue
        yield path, reason


def is_file_of(source: str, path: str) -> bool:
    """Return whether `find_files` would have this path among its files: by its name, and by what is
    there now.
    """
    if path == source:
        return os.path.isfile(path)
    is_pattern = not os.path.isdir(source)
    root = _literal_root(source) if is_pattern else source
    parts = os.path.relpath(path, root).split(os.sep)
    if parts[0] == os.pardir or reason_not_to_read(os.sep.join(parts)) is not None:
        return False
    if is_pattern:
        wanted = os.path.relpath(source, root).split(os.sep)
        return matches_names(wanted, parts) and os.path.isfile(path)
    folders = (os.path.join(root, *parts[:n]) for n in range(1, len(parts)))
    return not any(map(os.path.islink, folders)) and os.path.isfile(path)


def matches_names(pattern: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether a path is meant, name by name; `**` stands for any number of folders, also
    none.

    >>> matches_names(["in", "**", "*.csv"], ["in", "a.csv"])
    True
    >>> matches_names(["in", "*"], ["in", "b", "a"])
    False
    """
    if not pattern:
        return not names
    first, rest = pattern[0], pattern[1:]
    if first == "**":
        return matches_names(rest, names) or (bool(names) and matches_names(pattern, names[1:]))
    return bool(names) and fnmatch.fnmatchcase(names[0], first) and matches_names(rest, names[1:])


def _reason_of_no_file(path: str) -> str:
    if os.path.isdir(path):
        return LINKED_DIRECTORY if os.path.islink(path) else DIRECTORY
    return NO_FILE if os.path.exists(path) else DANGLING


def reason_not_to_read(path: str) -> str | None:
    """Return the reason why a file does not count, by its name alone; `path` is relative to the
    source.
    """
    if any(part.startswith((".", "_")) for part in path.split(os.sep)):
        return HIDDEN
    return UNFINISHED if path.endswith(UNFINISHED_SUFFIXES) else None


def _literal_root(pattern: str) -> str:
    root = pattern
    while glob.has_magic(root):
        root = os.path.dirname(root)
    return root
