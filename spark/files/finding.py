"""Which paths of a source are files that count; nothing is read of them.

Those below a directory (links to directories are not followed), those that match a pattern, or the
one named. Not: names beginning with '.' or '_', also of directories below the source, and endings
of unfinished files (`UNFINISHED_SUFFIXES`). Runs on the driver.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable

from epochgate.runtime.objects.client import is_remote
from epochgate.spark.files.errors import SourceMissing, SourceUnreadable
from epochgate.spark.files.layout import UNFINISHED_SUFFIXES


def absolute_source(source: str) -> str:
    """The source as it is known everywhere: an absolute path, or a URL without a last slash."""
    return source.rstrip("/") if is_remote(source) else os.path.abspath(source)


def find_files(source: str, *, may_be_none: bool) -> list[str]:
    """The paths, in order; they may be empty files, or gone by now.

    `may_be_none`: whether a pattern may match no file. Raises SourceMissing or SourceUnreadable.
    """
    try:
        if os.path.isdir(source):
            return sorted(_walk(source))
        if os.path.lexists(source):
            return [source]
        if not glob.has_magic(source):
            raise SourceMissing(source)
        root = _literal_root(source)
        if not os.path.isdir(root):
            raise SourceMissing(source)
        # glob ignores what it may not list; the user has to know.
        os.listdir(root)
    except OSError as error:
        raise SourceUnreadable(error.filename or source, error.strerror) from error
    matches = [
        path
        for path in glob.glob(source, recursive=True)
        if os.path.isfile(path) and counts(os.path.relpath(path, root))
    ]
    if not matches and not may_be_none:
        raise SourceMissing(source)
    return sorted(matches)


def _walk(directory: str) -> Iterable[str]:
    def refuse(error: OSError) -> None:
        raise error

    for parent, directories, names in os.walk(directory, onerror=refuse):
        directories[:] = [name for name in directories if counts(name)]
        yield from (os.path.join(parent, name) for name in names if counts(name))


def counts(path: str) -> bool:
    """Whether a file counts; `path` is relative to the source."""
    hidden = any(part.startswith((".", "_")) for part in path.split(os.sep))
    return not hidden and not path.endswith(UNFINISHED_SUFFIXES)


def _literal_root(pattern: str) -> str:
    root = pattern
    while glob.has_magic(root):
        root = os.path.dirname(root)
    return root
