"""Makes each checkpoint's staged files visible in the target directory by one atomic rename.

Decides: who may write to a target, and the order of a commit's steps. Leaves to others: when a
checkpoint may be committed (once it is durably complete), and how errors are handled.
Lives on the driver. A commit reads and renames files, so call it off the protocol thread, always on
the same one. The rules are those of a global committer: commits are idempotent, and a commit that
was interrupted anywhere is completed by asking for it again.

    TARGET/_common_metadata                      the schema of all files, once it has grown
    TARGET/checkpoint=000000000007/              what readers see: whole checkpoints only
        part-....parquet                         or country=DE/part-....parquet
    TARGET/_epochgate/                           empty: the target has a marker
    .TARGET.epochgate/                           beside the target: the working directory
        target.json                              the marker: job and format version
        lock  owner.json
        visible.lock                             while a commit or a compaction changes what is seen
        manifests/checkpoint-000000000007.json   what it has committed, written before it is visible
        trees/tree-000000000003.json             what a compaction has brought together
        staged/RUN/part-....parquet.staged       what writers have staged
        prepared/checkpoint-000000000008/        gathered, verified, next to be renamed
        prepared/checkpoint-000000000008-RUN/    the same, by tasks
        withdrawn/                               checkpoints taken back from the target
        replacing/  replaced/                    a tree on its way into the target's place, or out

In a target of version 2 marker and manifests lie among the data, which DuckDB and polars read for
Parquet files; one of version 1 has `checkpoint-000000000007`, which Spark does not find. The claim
renames both; a release that writes version 3 knows no compaction. The working directory lies beside
the target because not every reader leaves out directories with a leading '.' or '_' (DuckDB).
"""

from __future__ import annotations

import bisect
import os
from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa

from epochgate.runtime import SinkStart
from epochgate.runtime.filesystem import (
    TEMPORARY_SUFFIX,
    AnyPath,
    FileSystem,
    LocalFileSystem,
)
from epochgate.spark.files.checkpoint_directory import (
    checkpoint_name,
    checkpoint_of,
    earlier_checkpoint_name,
    earlier_checkpoint_of,
)
from epochgate.spark.files.evolution import have_common_types, merged
from epochgate.spark.files.layout import describe
from epochgate.spark.parquet_sink.commit_result import CommitResult, result_of_commit
from epochgate.spark.parquet_sink.committable import (
    Committable,
    require_intact,
    schema_id,
    shown_schema,
)
from epochgate.spark.parquet_sink.errors import (
    CommitConflict,
    CommitOutOfOrder,
    OutputSchemaChanged,
    TargetAhead,
    TargetCompacted,
    translating,
)
from epochgate.spark.parquet_sink.gathered import (
    GatheredPart,
    as_text,
    files_of,
    gathered_by_tasks,
    gathered_whole,
    schema_of_staged,
)
from epochgate.spark.parquet_sink.manifests import (
    EARLIER_MANIFEST_NAME,
    manifest_path,
    manifests_in,
    move_earlier_manifests,
    read_manifest,
    write_manifest,
)
from epochgate.spark.parquet_sink.orphans import remove_staged
from epochgate.spark.parquet_sink.ownership import TargetOwnership
from epochgate.spark.parquet_sink.partitions import columns_of
from epochgate.spark.parquet_sink.replacing import (
    COMMON_SCHEMA_NAME,
    end_replacement,
    note_schema,
    replace_all,
)
from epochgate.spark.parquet_sink.tree import Tree, nothing_changing, read_tree, walk


class ParquetTarget:
    """A target directory as seen by one run of one job; `claim` it first."""

    def __init__(
        self, path: AnyPath, job_id: str, run_id: str, *, files: FileSystem | None = None
    ) -> None:
        self._files: FileSystem = LocalFileSystem.of_table(path) if files is None else files
        self._ownership = TargetOwnership(path, job_id, run_id, self._files)
        self.path = self._ownership.path
        self.working_directory = self._ownership.working_directory
        self._run_id = run_id
        self._committed: list[int] = []
        self._tree = Tree()
        self._agreed: pa.Schema | None = None

    @property
    def last_committed(self) -> int | None:
        """The newest visible checkpoint; none if there is none."""
        return self._committed[-1] if self._committed else None

    def claim(
        self,
        restored_checkpoint: int | None,
        *,
        withdraw_newer: bool = False,
        epoch: int = 0,
        may_begin_late: bool = False,
        start: SinkStart | None = None,
    ) -> None:
        """Take the target for this run, which starts from `restored_checkpoint` (none: afresh).

        A missing or empty directory is created and marked. With `withdraw_newer`, checkpoints newer
        than the restored one are taken out of the target, newest first, each atomically. `epoch` is
        not needed: the lock keeps two drivers apart. With `may_begin_late`, the target may be new
        to a job that goes on from a checkpoint. `start`: says what the target has to hold.
        A target of an earlier version becomes one of this version, checkpoint by checkpoint.
        Raises `TargetNotEmpty`, `TargetOfAnotherJob`, `TargetVersionUnknown`, `TargetLocked`,
        `TargetAhead`, `TargetCompacted`, `TargetBehind`, `BehindCheckpoint`, `TargetNotWritable`,
        `OtherFileSystem`, `LocksRefused` or `DiskFull`; nothing is changed then.
        """
        with translating(self.path, self.working_directory, claims=True):
            self._ownership.acquire(restored_checkpoint, may_begin_late)
            try:
                with nothing_changing(self._files, self.working_directory):
                    self._enter(restored_checkpoint, withdraw_newer, may_begin_late, start)
            except BaseException:
                self._ownership.release()
                raise

    def _enter(
        self,
        restored_checkpoint: int | None,
        withdraw_newer: bool,
        may_begin_late: bool,
        start: SinkStart | None,
    ) -> None:
        end_replacement(self._files, self.path, self.working_directory)
        earlier = self._list(earlier_checkpoint_of)
        self._tree = read_tree(self._files, self.path, self.working_directory)
        self._committed = sorted({*self._list(checkpoint_of), *earlier, *self._tree.covered})
        known = -1 if restored_checkpoint is None else restored_checkpoint
        newer = [checkpoint for checkpoint in self._committed if checkpoint > known]
        if newer and not withdraw_newer:
            raise TargetAhead(self.path, newer[-1], restored_checkpoint)
        if self._tree.covered and self._tree.covered[-1] > known:
            raise TargetCompacted(self.path, self._tree.covered[-1], restored_checkpoint)
        if start is not None and (self._committed or not may_begin_late):
            self._require_held(known, start)
        self._ownership.enter()
        for checkpoint in earlier:
            self._rename_earlier(checkpoint)
        visible = {checkpoint: self._visible(checkpoint) for checkpoint in self._committed}
        move_earlier_manifests(self._files, self.working_directory, visible)
        for checkpoint in reversed(newer):
            self._withdraw(checkpoint)
        if start is not None:
            # A commit that is made again writes its manifest again.
            for checkpoint in manifests_in(self._files, self.working_directory) - set(
                self._committed
            ):
                self._files.remove(manifest_path(self.working_directory, checkpoint))

    def _require_held(self, known: int, start: SinkStart) -> None:
        """BehindCheckpoint where committed checkpoints are not visible any more.

        A manifest without its directory is that of a checkpoint that was removed, if it is not
        newer than what the job knows as committed: that of an unfinished commit is.
        """
        held = [checkpoint for checkpoint in self._committed if checkpoint <= known]
        newest = start.newest_committed
        bound = -1 if newest is None else min(newest, known)
        missing = {
            checkpoint
            for checkpoint in manifests_in(self._files, self.working_directory)
            if checkpoint <= bound
        }
        missing -= set(held)
        start.require_held(f"target {self.path!r}", held[-1] if held else None, missing)

    def release(self) -> None:
        """Give the target's lock back; the process's end does the same."""
        self._ownership.release()

    def schema(self) -> pa.Schema | None:
        """The Arrow schema of what is visible, for new writers to keep to; none if nothing is.

        Raises `TargetDamaged` for a manifest or a file that cannot be read.
        """
        with nothing_changing(self._files, self.working_directory):
            return self._schema()

    def _schema(self) -> pa.Schema | None:
        """The same; no compaction may move the files meanwhile."""
        common = os.path.join(self.path, COMMON_SCHEMA_NAME)
        if self._committed and self._files.exists(common):
            return shown_schema(common)
        tree = read_tree(self._files, self.path, self.working_directory)
        for file in tree.files:
            return shown_schema(self._visible(file.checkpoint, file.path))
        for checkpoint in reversed(self._committed):
            for committable in self._manifest(checkpoint)[1]:
                return shown_schema(self._visible(checkpoint, committable.visible_path))
        return None

    def partition_columns(self) -> list[str] | None:
        """The columns that the visible files are partitioned by; none if nothing is visible.

        Raises `TargetDamaged` for a manifest that cannot be read.
        """
        for checkpoint in reversed(self._committed):
            for committable in self._manifest(checkpoint)[1]:
                return columns_of(committable.directory)
        return None

    def require_one_schema(
        self, committables: Iterable[Committable], checkpoint: int | None = None
    ) -> pa.Schema | None:
        """The schema that holds these and what is visible; none if it is that of what is visible.

        `OutputSchemaChanged` if they could not be read together: a column has types of which
        neither holds the values of the other. Call it before their checkpoint completes: afterwards
        the job could only be stuck.
        """
        if self._agreed is None:
            self._agreed = self._schema()

        def schema_of(file: Committable) -> pa.Schema | None:
            return schema_of_staged(self._files, self.working_directory, file, checkpoint)

        grown, first = self._agreed, None
        expected = None if self._agreed is None else schema_id(self._agreed)
        for committable in committables:
            first = first or committable
            if committable.schema_id == (expected or first.schema_id):
                continue
            found = schema_of(committable)
            before = grown or schema_of(first)
            if before is None or found is None or not have_common_types(before, found):
                raise OutputSchemaChanged(
                    "unknown" if before is None else describe(before),
                    "unknown" if found is None else describe(found),
                    f"subtask {committable.subtask}, attempt {committable.attempt}",
                )
            grown = merged([before, found], "widen")
        return None if grown is self._agreed or grown == self._agreed else grown

    def commit(
        self,
        checkpoint: int,
        committables: Iterable[Committable],
        gathered: Sequence[GatheredPart] = (),
    ) -> CommitResult:
        """Make the files of a completed checkpoint visible, all at once; repeat it after any error.
        `gathered`: what tasks have passed on, in the place of committables.

        No committables: nothing becomes visible. Raises `TargetTakenOver`, `CommitConflict`,
        `CommitOutOfOrder`, `CommittableMissing`, `CommittableDamaged`, `OutputSchemaChanged`,
        `DiskFull`, `TargetNotWritable` or `OtherFileSystem`; the checkpoint is then not visible,
        and its files are all still there.
        """
        wanted = sorted(committables)
        with (
            translating(self.path, self.working_directory),
            nothing_changing(self._files, self.working_directory),
        ):
            self._ownership.require_owner()
            if self._is_known(checkpoint) or self._files.exists(self._visible(checkpoint)):
                return self._require_same(checkpoint, wanted or files_of(gathered))
            if not (wanted or gathered):
                return CommitResult(checkpoint, 0, 0, 0, already_committed=False)
            if self._committed and checkpoint < self._committed[-1]:
                raise CommitOutOfOrder(checkpoint, self._committed[-1])
            prepared = self._gathered(checkpoint, gathered)
            if prepared is None:
                prepared = self._prepare(checkpoint, wanted or files_of(gathered))
            self._ownership.require_owner()
            self._files.rename(prepared, self._visible(checkpoint))
            self._files.fsync_directory(self.path)
            self._files.fsync_directory(os.path.dirname(prepared))
            self._committed.append(checkpoint)
        return result_of_commit(checkpoint, wanted, already_committed=False, gathered=gathered)

    def replace(self, checkpoint: int, committables: Iterable[Committable]) -> None:
        """Make these files visible in the place of everything that is, all at once.

        Raises `CommitConflict` and whatever else `commit` and `replace_all` raise; the old files
        are then visible as before.
        """
        wanted = sorted(committables)
        with (
            translating(self.path, self.working_directory),
            nothing_changing(self._files, self.working_directory),
        ):
            self._ownership.require_owner()
            prepared = self._prepare(checkpoint, wanted) if wanted else None
            self._ownership.require_owner()
            self._tree = replace_all(
                self._files, self.path, self.working_directory, checkpoint, prepared
            )
            for old in self._committed:
                self._files.remove(manifest_path(self.working_directory, old))
            self._committed = [checkpoint] if wanted else []

    def discard_prepared(self, checkpoint: int, committables: Iterable[Committable]) -> None:
        """Remove what an interrupted commit of this checkpoint had gathered, where its rows were
        staged again, in files other than these; for use after `claim`, if it is not visible.
        """
        prepared = self._prepared(checkpoint)
        if self._files.exists(prepared):
            names = {committable.visible_path for committable in committables}
            if not names.issuperset(walk(self._files, prepared)):
                self._files.remove_tree(prepared)

    def committed(self) -> list[CommitResult]:
        """Every visible checkpoint of this target, oldest first, from the manifests; those that a
        compaction had brought together before the claim, under the newest of them.

        Raises `TargetDamaged` for one that cannot be read.
        """
        covered, together = self._tree.covered, self._tree.files
        rows, size_bytes = sum(f.rows for f in together), sum(f.size_bytes for f in together)
        return [
            CommitResult(checkpoint, len(together), rows, size_bytes, already_committed=True)
            for checkpoint in covered[-1:]
        ] + [
            result_of_commit(checkpoint, self._manifest(checkpoint)[1], already_committed=True)
            for checkpoint in self._committed[len(covered) :]
        ]

    def remove_orphans(self, keep: Iterable[Committable]) -> list[str]:
        """Remove every staged file that is not in `keep`; returns their paths.

        For use after `claim`, before any writer of this run exists; `keep` is what the restored
        checkpoint still has to commit. Files that a crashed commit had gathered are kept alike.
        """
        self._ownership.require_owner()
        kept = {committable.file_name for committable in keep}
        return remove_staged(
            self._files, self.working_directory, self._run_id, lambda name: name not in kept
        )

    def _is_known(self, checkpoint: int) -> bool:
        """Return whether it is visible as far as this run has seen."""
        place = bisect.bisect_left(self._committed, checkpoint)
        return self._committed[place : place + 1] == [checkpoint]

    def _list(self, number_of: Callable[[str], int | None]) -> list[int]:
        found = map(number_of, self._files.list_directory(self.path))
        return sorted(checkpoint for checkpoint in found if checkpoint is not None)

    def _rename_earlier(self, checkpoint: int) -> None:
        earlier = os.path.join(self.path, earlier_checkpoint_name(checkpoint))
        self._files.rename(earlier, self._visible(checkpoint))
        self._files.fsync_directory(self.path)

    def _visible(self, checkpoint: int, *names: str) -> str:
        return os.path.join(self.path, checkpoint_name(checkpoint), *names)

    def _prepared(self, checkpoint: int, *names: str) -> str:
        name = earlier_checkpoint_name(checkpoint)
        return os.path.join(self.working_directory, "prepared", name, *names)

    def _withdraw(self, checkpoint: int) -> None:
        withdrawn = os.path.join(self.working_directory, "withdrawn")
        self._files.make_directory(withdrawn)
        name = f"{earlier_checkpoint_name(checkpoint)}-{self._run_id}"
        self._files.rename(self._visible(checkpoint), os.path.join(withdrawn, name))
        self._files.fsync_directory(withdrawn)
        self._files.fsync_directory(self.path)
        self._committed.remove(checkpoint)

    def _prepare(self, checkpoint: int, wanted: list[Committable]) -> str:
        """Gather the files in one directory, durably; each step may have been done before."""
        prepared = self._prepared(checkpoint)
        self._files.make_directory(prepared)
        names = {committable.visible_path for committable in wanted}
        directories = {prepared}
        for name in walk(self._files, prepared):
            # An earlier version that was interrupted has left its manifest here.
            if name.endswith(TEMPORARY_SUFFIX) or name == EARLIER_MANIFEST_NAME:
                self._files.remove(os.path.join(prepared, name))
            elif name not in names:
                raise CommitConflict(checkpoint, "(unfinished)", f"{name} was to be part of it")
        self._note_schema(wanted, checkpoint)
        by_tasks = gathered_by_tasks(self._files, self.working_directory, checkpoint, wanted)
        for committable in wanted:
            gathered = self._prepared(checkpoint, committable.visible_path)
            self._files.make_directory(os.path.dirname(gathered))
            directories.add(os.path.dirname(gathered))
            if self._files.exists(gathered):
                require_intact(self._files, gathered, committable, checkpoint)
                continue
            staged = os.path.join(self.working_directory, committable.path)
            for directory in by_tasks:
                by_task = os.path.join(directory, committable.visible_path)
                staged = by_task if self._files.exists(by_task) else staged
            require_intact(self._files, staged, committable, checkpoint)
            self._files.rename(staged, gathered)
        text = as_text(wanted)
        write_manifest(self._files, self.working_directory, checkpoint, self._run_id, text)
        for directory in sorted(directories):
            self._files.fsync_directory(directory)
        return prepared

    def _gathered(self, checkpoint: int, parts: Sequence[GatheredPart]) -> str | None:
        """The directory in which tasks have gathered all files; none where not all are there."""
        directory = gathered_whole(self._files, self.working_directory, checkpoint, parts)
        if directory is None:
            return directory
        self._note_schema([one for part in parts for one in part.samples], checkpoint)
        text = ", ".join(part.text for part in parts)
        write_manifest(self._files, self.working_directory, checkpoint, self._run_id, text)
        return directory

    def _note_schema(self, files: Iterable[Committable], checkpoint: int) -> None:
        if (grown := self.require_one_schema(files, checkpoint)) is not None:
            note_schema(self._files, self.path, grown)
            self._agreed = grown

    def _require_same(self, checkpoint: int, wanted: list[Committable]) -> CommitResult:
        run, found = self._manifest(checkpoint)
        if sorted(found) != wanted:
            have = {committable.file_name for committable in found}
            want = {committable.file_name for committable in wanted}
            difference = f"it has {sorted(have - want)}, asked for {sorted(want - have)}"
            raise CommitConflict(checkpoint, run, difference)
        if not self._is_known(checkpoint):
            self._committed = sorted({*self._list(checkpoint_of), *self._tree.covered})
        # The crash may have come between the rename and this.
        self._files.fsync_directory(self.path)
        return result_of_commit(checkpoint, found, already_committed=True)

    def _manifest(self, checkpoint: int) -> tuple[str, list[Committable]]:
        return read_manifest(self._files, self.working_directory, checkpoint)
