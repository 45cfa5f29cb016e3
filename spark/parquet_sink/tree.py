"""The tree that a compaction has made of a target, and the checkpoints whose files it has brought
together.

Decides how a tree of a target is told from the one before: by the name of an empty directory in it,
which changes together with everything else in the step that exchanges the whole target. What is in
the tree is written beside the target before that step, so it is never missing.

    TARGET/_epochgate/tree-000000000003/             this is tree 3
    .TARGET.epochgate/trees/tree-000000000003.json   its checkpoints and files

Leaves making and exchanging trees to `epochgate.spark.compaction`. Used on the driver and there.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from epochgate.runtime.filesystem import FileSystem
from epochgate.spark.parquet_sink.checked_json import checked, read_checked
from epochgate.spark.parquet_sink.errors import TargetDamaged
from epochgate.spark.parquet_sink.ownership import MARKED_DIRECTORY

VISIBLE_LOCK: Final = "visible.lock"
"""Held for as long as it takes to change what is visible: by a commit, or by an exchange."""
_NAME: Final = re.compile(r"tree-(\d{12,})")


@dataclass(frozen=True, order=True)
class VisibleFile:
    """A file that readers see: its checkpoint's directory, its partition's, its name (in an object
    store its key); and how to recognise it. The checksum is not known of objects.
    """

    checkpoint: int
    directory: str
    name: str
    rows: int
    size_bytes: int
    footer_crc32: int | None
    schema_id: str

    @property
    def path(self) -> str:
        """The path of the file in the directory of its checkpoint."""
        return f"{self.directory}/{self.name}" if self.directory else self.name


@dataclass(frozen=True)
class Tree:
    """One tree of a target: its number, 0 for one that was never compacted; the checkpoints whose
    files were brought together, oldest first; and these files, as they are now.
    """

    number: int = 0
    covered: tuple[int, ...] = ()
    files: tuple[VisibleFile, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        files = [list(vars(file).values()) for file in self.files]
        return {"tree": self.number, "covered": list(self.covered), "files": files}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Tree:
        """Inverse of `to_json`; KeyError, TypeError or ValueError for anything else."""
        files = tuple(VisibleFile(*one) for one in values["files"])
        return cls(int(values["tree"]), tuple(map(int, values["covered"])), files)


def tree_name(number: int) -> str:
    """Return the name of the directory and the record of a tree.

    >>> tree_name(3)
    'tree-000000000003'
    """
    return f"tree-{number:012d}"


def tree_of(name: str) -> int | None:
    """The inverse of `tree_name`; none for another name."""
    match = _NAME.fullmatch(name)
    return None if match is None else int(match[1])


def record_path(working_directory: str, number: int) -> str:
    """Return the path of the record of what is in a tree."""
    return os.path.join(working_directory, "trees", f"{tree_name(number)}.json")


def tree_number(files: FileSystem, target: str) -> int:
    """Return the number of the tree that the directory `target` is."""
    marked = os.path.join(target, MARKED_DIRECTORY)
    names = files.list_directory(marked) if files.exists(marked) else []
    return max((number for name in names if (number := tree_of(name)) is not None), default=0)


def read_tree(files: FileSystem, target: str, working_directory: str) -> Tree:
    """The tree that readers see now. Raises TargetDamaged for a record that is lost."""
    number = tree_number(files, target)
    if number == 0:
        return Tree()
    path, what = record_path(working_directory, number), "the record of a compaction"
    values = read_checked(files, path, what)
    try:
        return Tree.from_json(values)
    except (ValueError, KeyError, TypeError) as error:
        raise TargetDamaged(path, what, repr(error), "") from error


def write_tree(files: FileSystem, working_directory: str, tree: Tree) -> None:
    """Say durably what is in a tree, before readers see it."""
    path = record_path(working_directory, tree.number)
    files.make_directory(os.path.dirname(path))
    files.write_bytes_durably(path, checked(tree.to_json()))


@contextlib.contextmanager
def nothing_changing(files: FileSystem, working_directory: str) -> Iterator[None]:
    """Wait until nothing else changes what is visible, and keep it so meanwhile."""
    lock = files.wait_for_lock(os.path.join(working_directory, VISIBLE_LOCK))
    try:
        yield
    finally:
        lock.release()


def walk(files: FileSystem, directory: str, below: str = "") -> Iterator[str]:
    """The paths of the files below `directory`, relative to it."""
    for name in files.list_directory(os.path.join(directory, below)):
        path = os.path.join(below, name)
        if files.is_directory(os.path.join(directory, path)):
            yield from walk(files, directory, path)
        else:
            yield path
