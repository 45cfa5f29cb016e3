"""The files below the working directory of a target that no checkpoint refers to, and their
removal.

Decides where such files lie: staged by writers, or gathered by a commit that was interrupted. Lives
on the driver, on the thread that claims and commits.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from epochgate.runtime.filesystem import FileSystem
from epochgate.spark.parquet_sink.committable import STAGED_SUFFIX
from epochgate.spark.parquet_sink.tree import walk


def remove_staged(
    files: FileSystem, working: str, run_id: str, is_orphan: Callable[[str], bool]
) -> list[str]:
    """Remove the files whose names `is_orphan` says to be; returns their paths. Raises OSError."""
    removed: list[str] = []
    for area in ("staged", "prepared"):
        parent = os.path.join(working, area)
        if not files.exists(parent):
            continue
        for directory in files.list_directory(parent):
            directory_path = os.path.join(parent, directory)
            for relative in list(walk(files, directory_path)):
                path = os.path.join(directory_path, relative)
                name = os.path.basename(relative).removesuffix(STAGED_SUFFIX)
                if is_orphan(name) and files.remove(path):
                    removed.append(path)
            # A directory of this run may be in use by a writer that has just made it.
            if directory != run_id:
                _remove_empty(files, directory_path)
    return removed


def _remove_empty(files: FileSystem, directory: str) -> None:
    """Remove a directory and those below it, unless there is a file: a task of a driver that was
    replaced may just have moved one there, of a checkpoint that goes on.
    """
    for name in files.list_directory(directory):
        below = os.path.join(directory, name)
        if files.is_directory(below):
            _remove_empty(files, below)
    with contextlib.suppress(OSError):
        files.remove_empty_directory(directory)
