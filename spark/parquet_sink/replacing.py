"""A checkpoint that takes the place of everything a directory shows, in one step.

Decides how readers learn the schema of all files, and the order of the steps on disk: a new tree is
made beside the target, durable, and then exchanged with it. A crash before the exchange leaves the
old rows, one after it the new ones, and beside the target a tree that the next claim removes.

    .TARGET.epochgate/replacing/     before the exchange the new tree, after it the old one
    .TARGET.epochgate/replaced/      the same, while it is removed

Lives on the driver, on the thread that commits, which holds the lock of what is visible.
"""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq

from epochgate.runtime.filesystem import TEMPORARY_SUFFIX, FileSystem
from epochgate.spark.files.checkpoint_directory import (
    checkpoint_name,
    checkpoint_of,
    earlier_checkpoint_name,
)
from epochgate.spark.parquet_sink.committable import with_written_schema
from epochgate.spark.parquet_sink.errors import TargetNotEmpty
from epochgate.spark.parquet_sink.ownership import MARKED_DIRECTORY
from epochgate.spark.parquet_sink.tree import (
    Tree,
    record_path,
    tree_name,
    tree_number,
    write_tree,
)

COMMON_SCHEMA_NAME = "_common_metadata"
"""A Parquet file without rows that has the schema of all, where files differ: Spark reads by it."""


def replace_all(
    files: FileSystem, target: str, working: str, checkpoint: int, prepared: str | None
) -> Tree:
    """Show `prepared`, the directory of a checkpoint, or nothing, in the place of what `target`
    shows; returns the tree that it is then.

    Raises TargetNotEmpty for files of others in the target, ExchangeRefused where directories
    cannot change places, and OSError.
    """
    _require_own(files, target)
    end_replacement(files, target, working)
    place, tree = _place(working), Tree(tree_number(files, target) + 1)
    marked = os.path.join(place, MARKED_DIRECTORY)
    files.make_directory(os.path.join(marked, tree_name(tree.number)))
    files.copy_mode(target, place)
    files.copy_mode(os.path.join(target, MARKED_DIRECTORY), marked)
    common = os.path.join(target, COMMON_SCHEMA_NAME)
    if files.exists(common):
        copy = os.path.join(place, COMMON_SCHEMA_NAME)
        files.write_bytes_durably(copy, files.read_bytes(common))
        files.copy_mode(common, copy)
    write_tree(files, working, tree)
    if prepared is not None:
        files.rename(prepared, os.path.join(place, checkpoint_name(checkpoint)))
    for directory in (marked, place, working):
        files.fsync_directory(directory)
    files.exchange(os.path.realpath(target), place)
    end_replacement(files, target, working)
    files.remove(record_path(working, tree.number - 1))
    return tree


def end_replacement(files: FileSystem, target: str, working: str) -> None:
    """Remove what `replace_all` has left beside the target: the old tree, or a new one that was
    never shown, whose checkpoint is then prepared as it was before. Raises OSError.
    """
    place, replaced = _place(working), os.path.join(working, "replaced")
    if files.exists(place):
        if tree_number(files, place) > tree_number(files, target):
            _take_back(files, place, working)
        else:
            # Without this the old tree, whose files go now, could be the target after a power cut.
            for directory in (os.path.dirname(os.path.realpath(target)), working):
                files.fsync_directory(directory)
        # A tree that is half removed must not be taken for one of these two.
        files.remove_tree(replaced)
        files.rename(place, replaced)
    files.remove_tree(replaced)


def _take_back(files: FileSystem, place: str, working: str) -> None:
    for name in files.list_directory(place):
        checkpoint = checkpoint_of(name)
        if checkpoint is not None:
            prepared = os.path.join(working, "prepared", earlier_checkpoint_name(checkpoint))
            files.rename(os.path.join(place, name), prepared)


def _require_own(files: FileSystem, target: str) -> None:
    for name in files.list_directory(target):
        if (
            checkpoint_of(name) is None
            and name not in (MARKED_DIRECTORY, COMMON_SCHEMA_NAME)
            and not name.endswith(TEMPORARY_SUFFIX)
        ):
            raise TargetNotEmpty(target, name)


def _place(working: str) -> str:
    return os.path.join(working, "replacing")


def note_schema(files: FileSystem, target: str, schema: pa.Schema) -> None:
    """Let readers know a schema that holds all files, before those with more are visible."""
    sink = pa.BufferOutputStream()
    pq.write_metadata(schema.with_metadata(with_written_schema(schema)), sink)
    path = os.path.join(target, COMMON_SCHEMA_NAME)
    files.write_bytes_durably(path, sink.getvalue().to_pybytes())
