"""Compacting a target that is a directory: a new tree beside it, exchanged with it in one step.

Decides the order of the steps on disk. Everything of the new tree is durable before the exchange,
and the exchange is durable before the old tree is removed, so that a crash at any moment leaves a
target of one tree, and beside it a tree that is not needed: one that was never shown, or one that
was replaced. Both look alike and are removed alike by the next compaction.

    .TARGET.epochgate/compacting/tree-000000000003/   before the exchange the new tree, after it
                                                      the old one
    .TARGET.epochgate/compacting.lock                 held for the whole compaction
    .TARGET.epochgate/visible.lock                    held for the exchange; commits wait for it

Leaves to the machine which step is next. Runs where the command runs, on one thread.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from epochgate.errors import EpochgateError
from epochgate.runtime.filesystem import FileLock, FileSystem, LocalFileSystem
from epochgate.spark.compaction.errors import (
    CompactionRunning,
    ForeignFile,
    NothingThere,
    RowsMissing,
    TargetTooOld,
)
from epochgate.spark.compaction.merging import Merger
from epochgate.spark.compaction.plan import Plan, Wanted, plan
from epochgate.spark.compaction.tree_builder import TreeBuilder, beside_checkpoints
from epochgate.spark.files.checkpoint_directory import checkpoint_name, checkpoint_of
from epochgate.spark.parquet_sink.committable import written_schema
from epochgate.spark.parquet_sink.manifests import read_manifest
from epochgate.spark.parquet_sink.ownership import (
    TARGET_VERSION,
    read_marker,
    working_directory_of,
)
from epochgate.spark.parquet_sink.partitions import columns_of
from epochgate.spark.parquet_sink.replacing import COMMON_SCHEMA_NAME
from epochgate.spark.parquet_sink.tree import (
    Tree,
    VisibleFile,
    nothing_changing,
    read_tree,
    tree_name,
    tree_number,
    tree_of,
    walk,
    write_tree,
)


@dataclass(frozen=True)
class Visible:
    """The part of a target that readers see: the tree, its checkpoints, oldest first, and the files
    by directory.
    """

    tree: Tree
    checkpoints: Sequence[int]
    files: Mapping[int, Sequence[VisibleFile]]


class DirectoryCompaction:
    """The steps of one compaction of one directory. `open` it first, and `close` it."""

    def __init__(self, target: str, wanted: Wanted, files: FileSystem | None = None) -> None:
        self.target = os.path.abspath(target)
        self._wanted = wanted
        self._files: FileSystem = LocalFileSystem.of_table(target) if files is None else files
        self._working = working_directory_of(target)
        self._compacting = os.path.join(self._working, "compacting")
        self._lock: FileLock | None = None
        self._seen = Visible(Tree(), (), {})
        self.planned = Plan()
        self.built: Sequence[VisibleFile] = ()

    @property
    def retired(self) -> int:
        """None: who has opened a file keeps it."""
        return 0

    def open(self) -> None:
        """Lock the target against other compactions.

        Raises NothingThere, TargetTooOld, CompactionRunning, TargetVersionUnknown, LocksRefused.
        """
        found = read_marker(self._files, self.target)
        if found is None:
            raise NothingThere(self.target)
        if found[0] < TARGET_VERSION:
            raise TargetTooOld(self.target, found[0])
        path = os.path.join(self._working, "compacting.lock")
        self._lock = self._files.try_lock(path)
        if self._lock is None:
            raise CompactionRunning(self.target, path)

    def close(self) -> None:
        """Let others compact; the process's end does the same."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def plan(self) -> Plan:
        """Look at the target. Raises ForeignFile, CommittableDamaged or OSError."""
        with nothing_changing(self._files, self._working):
            self._seen = self._look()
            self._require_no_foreign(self._seen)
        self.planned = plan(self._seen.files, self._seen.checkpoints, self._wanted)
        return self.planned

    def stage(self) -> bool:
        """Write the merged files of the new tree beside the target; false if it cannot be done
        because the target is not as it was planned.

        Raises ExchangeRefused, LinksRefused, RowsMissing, CommittableDamaged or OSError.
        """
        self._try_exchange()
        try:
            self._merge()
        except (EpochgateError, OSError, ValueError):
            # A job that goes back takes files away while they are read.
            with nothing_changing(self._files, self._working):
                if self._is_as_planned(self._look()):
                    raise
            return False
        return True

    def exchange(self) -> bool:
        """Let the new tree take the target's place; false if the target is not as it was planned.

        Raises ExchangeRefused, ForeignFile, LinksRefused, CommittableDamaged or OSError.
        """
        with nothing_changing(self._files, self._working):
            now = self._look()
            if not self._is_as_planned(now):
                return False
            number = self._seen.tree.number + 1
            # Not earlier: a write that replaces all rows makes a tree of the same number.
            tree = Tree(number, self.planned.covered, tuple(self.built))
            write_tree(self._files, self._working, tree)
            builder = self._builder()
            for checkpoint in now.checkpoints[len(self.planned.covered) :]:
                builder.add(checkpoint)
            builder.add_root()
            builder.make_durable()
            for directory in (self._staged(), self._compacting):
                self._files.fsync_directory(directory)
            self._files.exchange(os.path.realpath(self.target), self._staged())
            self._make_exchange_durable()
        return True

    def discard(self) -> None:
        """Remove the tree that was not shown. Raises OSError."""
        self._files.remove_tree(self._compacting)

    def clean(self) -> None:
        """Remove what is not needed: replaced trees, those of interrupted compactions, and their
        records. Raises OSError.
        """
        if self._files.exists(self._compacting):
            # A crash may have come between an exchange and this; without it the old tree, whose
            # files go now, could be the target again after a power cut.
            self._make_exchange_durable()
            self._files.remove_tree(self._compacting)
        records = os.path.join(self._working, "trees")
        with nothing_changing(self._files, self._working):
            number = tree_number(self._files, self.target)
            names = self._files.list_directory(records) if self._files.exists(records) else []
            for name in names:
                if tree_of(name.removesuffix(".json")) != number:
                    self._files.remove(os.path.join(records, name))

    def _merge(self) -> None:
        merger = Merger(
            self._files,
            self._schema(),
            columns_of(self.planned.merges[0].directory),
            self._wanted.file_bytes,
        )
        self.built = self._builder().build(self.planned, merger)
        expected = sum(
            file.rows for one in self.planned.covered for file in self._seen.files.get(one, ())
        )
        found = sum(file.rows for file in self.built)
        if found != expected:
            raise RowsMissing(self._staged(), expected, found)

    def _look(self) -> Visible:
        tree = read_tree(self._files, self.target, self._working)
        files: dict[int, list[VisibleFile]] = {}
        for file in tree.files:
            files.setdefault(file.checkpoint, []).append(file)
        names = self._files.list_directory(self.target)
        listed = {number for name in names if (number := checkpoint_of(name)) is not None}
        for checkpoint in sorted(listed - set(tree.covered)):
            committables = read_manifest(self._files, self._working, checkpoint)[1]
            files[checkpoint] = [
                VisibleFile(
                    checkpoint,
                    one.directory,
                    one.file_name,
                    one.rows,
                    one.size_bytes,
                    one.footer_crc32,
                    one.schema_id,
                )
                for one in committables
            ]
        return Visible(tree, sorted(listed | set(tree.covered)), files)

    def _is_as_planned(self, now: Visible) -> bool:
        covered = self.planned.covered
        return (
            now.tree.number == self._seen.tree.number
            and tuple(now.checkpoints[: len(covered)]) == covered
            and all(now.files.get(one) == self._seen.files.get(one) for one in covered)
        )

    def _require_no_foreign(self, seen: Visible) -> None:
        list(beside_checkpoints(self._files, self.target))  # for what it raises
        for checkpoint, files in seen.files.items():
            directory = os.path.join(self.target, checkpoint_name(checkpoint))
            known = {file.path for file in files}
            for path in walk(self._files, directory):
                if path not in known:
                    raise ForeignFile(os.path.join(directory, path))

    def _schema(self) -> pa.Schema:
        common = os.path.join(self.target, COMMON_SCHEMA_NAME)
        if self._files.exists(common):
            return written_schema(common)
        file = self.planned.merges[0].files[0]
        return written_schema(
            os.path.join(self.target, checkpoint_name(file.checkpoint), file.path)
        )

    def _try_exchange(self) -> None:
        """Find out, before anything is merged, whether directories can change places here."""
        self._files.remove_tree(self._compacting)
        tried = [os.path.join(self._compacting, name) for name in ("one", "other")]
        for path in tried:
            self._files.make_directory(path)
        self._files.exchange(*tried)
        for path in tried:
            self._files.remove_tree(path)

    def _builder(self) -> TreeBuilder:
        return TreeBuilder(self._files, self.target, self._staged(), self._seen.tree.number + 1)

    def _staged(self) -> str:
        return os.path.join(self._compacting, tree_name(self._seen.tree.number + 1))

    def _make_exchange_durable(self) -> None:
        for directory in (os.path.dirname(os.path.realpath(self.target)), self._compacting):
            self._files.fsync_directory(directory)
