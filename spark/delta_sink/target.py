"""A Delta table as the target of one run of one job: who may commit, and what was committed.

Decides what a commit writes, by two numbers that the table's log keeps for an application: that
of the last checkpoint, and that of the driver. Each commit carries both, on the snapshot in which
they were read, and the log refuses a second commit of one application on one snapshot. So of two
drivers one is refused by the table itself, whichever of them is late. Runs on the driver.

    claim: driver 4 -> 5            every commit on a snapshot with driver 4 fails from now on
    commit(7): checkpoint 6 -> 7    with the files, in one entry of the log, or not at all

Who owns the table, before there is one too, is decided by the rows of `table_owner` (`owner`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import pyarrow as pa

from epochgate.runtime import RetryLater, SinkStart
from epochgate.runtime.filesystem import FileSystem, LocalFileSystem
from epochgate.runtime.objects.client import ObjectStore, is_url, open_url
from epochgate.spark.delta_sink.errors import LogFailed, LogOvertaken, SchemaImpossible
from epochgate.spark.delta_sink.features import APPEND_ONLY, NEW_TABLE, PARTITIONED, hindrance
from epochgate.spark.delta_sink.log import DeltaLog, Files, refusal_of
from epochgate.spark.delta_sink.owner import Owner
from epochgate.spark.delta_sink.ownership import (
    DirectoryOwnership,
    ObjectOwnership,
    Ownership,
)
from epochgate.spark.delta_sink.place import place_of
from epochgate.spark.files.evolution import can_hold, have_common_types, merged
from epochgate.spark.files.layout import describe
from epochgate.spark.parquet_sink.committable import Committable, schema_id
from epochgate.spark.parquet_sink.errors import OutputSchemaChanged, TargetUnreachable, translating
from epochgate.spark.parquet_sink.partitions import PartitioningChanged, require_partitionable
from epochgate.spark.tables.errors import TableAhead, TableBehind, TableUnusable
from epochgate.spark.tables.staged import Staged, StagedFiles
from epochgate.spark.tables.staged_objects import StagedObjects
from epochgate.spark.tables.types import bare, hindrance_of_growth

_RESTORED = (
    "Restore the table to which it has committed (with its working directory, which lies beside it)"
)


class DeltaTarget:
    """The table in the directory or at the URL `path`; `claim` it first.

    open_objects: with what objects are opened, for tests. partition_by: the columns of a new
    table's partitions. may_grow: whether new columns become columns of the table.
    """

    def __init__(
        self,
        path: str,
        job_id: str,
        run_id: str,
        *,
        log: Callable[[str], DeltaLog] = DeltaLog,
        files: FileSystem | None = None,
        open_objects: Callable[[str], ObjectStore] = open_url,
        partition_by: Sequence[str] = (),
        may_grow: bool = False,
    ) -> None:
        """Raises TableUnusable for a URL that is of no object store, ObjectStoreUnusable and
        ExtraMissing.
        """
        self.path = place_of(path)
        self._shown = f"the Delta table {self.path!r}"
        self._job_id, self._run_id = job_id, run_id
        self._words = {"epochgate.run": run_id}
        self._log = log(self.path)
        self._staged: Staged
        self._own: Ownership
        if is_url(self.path):
            self._staged = StagedObjects(open_objects(self.path), self._log)
            self._own = ObjectOwnership(open_objects, self.path, self._shown, job_id)
        else:
            system: FileSystem = LocalFileSystem.of_table(path) if files is None else files
            self._staged = StagedFiles(system, self.path, self.path)
            self._own = DirectoryOwnership(system, self.path, self._shown, job_id)
        self._owner = Owner(self._own, self, self._shown, run_id)
        self._partition_by, self._may_grow = list(partition_by), may_grow
        self._restored: int | None = None
        self._is_shared = False
        self._seen = -1
        """The newest version of which it is known that no other writer has made it, or what it is.
        """
        self._checkpoints = ""
        self._agreed: pa.Schema | None = None

    def claim(self, restored_checkpoint: int | None, *, start: SinkStart | None = None) -> None:
        """Take the table for this run, which starts from `restored_checkpoint` (none: afresh);
        `start`: says what the table has to hold.

        A table that is there is written to; one that is not is made by the first commit of rows.
        Raises TargetLocked, TargetNotEmpty, TableUnusable, PartitioningChanged, PartitionUnusable,
        TableAhead, TableBehind, LocksRefused, BehindCheckpoint, TargetDamaged, TargetNotWritable,
        and TableTakenOver where others claim it all the time; the table is not changed then.
        """
        self._checkpoints = "" if start is None else start.checkpoints
        self._restored = restored_checkpoint
        with translating(self.path, self.path, claims=True):
            self._claim(restored_checkpoint, start)

    def _claim(self, restored_checkpoint: int | None, start: SinkStart | None) -> None:
        is_there = self._log.read()
        if is_there:
            self._require_usable()
        else:
            self._own.require_empty()
        self._own.prepare()
        self._own.begin()
        try:
            self._require_continued(restored_checkpoint, is_there=is_there)
            if start is not None:
                self._require_held(start, is_there=is_there)
            self._owner.start(is_there=is_there)
        except BaseException:
            self.release()
            raise

    def share(self, restored_checkpoint: int | None) -> None:
        """Instead of `claim`: take part in the table, and keep no other driver of this job from it;
        each of its checkpoints has the same rows, whichever driver commits it first.

        Raises TargetNotEmpty, TableUnusable, PartitioningChanged, PartitionUnusable or TableAhead;
        the table is not changed then.
        """
        if self._log.read():
            self._require_usable()
            last, _ = self._held()
            if last is not None and last > (restored_checkpoint or 0):
                raise TableAhead(self._shown, last, restored_checkpoint, "a new table.")
        else:
            self._own.require_empty()
        self._own.prepare()
        self._is_shared = True

    def release(self) -> None:
        """Let other drivers have it."""
        self._own.release()

    def schema(self) -> pa.Schema | None:
        """The table's schema, for new writers to keep to; none if there is no table."""
        return self._log.schema() if self._owner.number else None

    def told(self) -> tuple[str, ...]:
        """Return what tasks are told: the table's place, and the columns of its partitions."""
        return (self.path, *self._partition_by)

    def rows(self) -> int:
        """The rows that are visible."""
        return self._log.rows() if self._owner.number and self._log.read() else 0

    def remove_orphans(self, keep: Iterable[Committable]) -> list[str]:
        """Remove what earlier runs have staged and is not in `keep`; returns their paths.

        For use after `claim`; looks at several runs again, whose tasks may have written on since.
        Raises TargetUnreachable.
        """
        if not self._owner.number and is_url(self.path):
            return []  # a driver from before may be making the table of what it has staged
        try:
            return self._staged.remove_orphans(self._own.known["runs"][:-1], keep)
        except (OSError, LogFailed) as error:
            if not is_url(self.path):
                raise
            raise TargetUnreachable(self.path, str(error)) from error

    def discard(self, files: Iterable[Committable]) -> None:
        """Remove staged files to which the table does not refer. Raises OSError."""
        self._staged.discard(files)

    def require_one_schema(self, committables: Sequence[Committable]) -> None:
        """OutputSchemaChanged if these could not be committed together with what is visible, and
        SchemaImpossible if no table could hold them.

        Call it before their checkpoint completes: afterwards the job could only be stuck.
        """
        agreed = self._agreed or self.schema()
        of_each = {file.schema_id: file for file in reversed(committables)}
        for file in of_each.values():
            found = self._schema_of(file)
            if agreed is None:
                agreed = found
            elif self._may_grow and have_common_types(bare(agreed), found, "add"):
                agreed = merged([bare(agreed), found], "add")
            elif schema_id(found) != schema_id(agreed):
                where = f"subtask {file.subtask}, attempt {file.attempt}"
                raise OutputSchemaChanged(describe(agreed), describe(found), where)
        is_new = self._agreed is None and self.schema() is None
        if agreed is not None and (is_new or (self._may_grow and agreed != self._agreed)):
            self._require_possible(agreed)
        self._agreed = agreed

    def _require_possible(self, schema: pa.Schema) -> None:
        """SchemaImpossible if the first commit could not make the table: one is made elsewhere."""
        reason = refusal_of(schema, NEW_TABLE, self._partition_by)
        if reason is not None:
            alone = [field.name for field in schema if refusal_of(pa.schema([field]), NEW_TABLE)]
            raise SchemaImpossible(self.path, alone, reason)

    def commit(
        self,
        checkpoint: int,
        committables: Sequence[Committable],
        *,
        replaces: bool = False,
        are_moved: bool = False,
    ) -> bool:
        """Add a completed checkpoint's files to the table, all at once; false if that was done.
        With `replaces`, the rows that are there go in the same step. `are_moved`: tasks have looked
        at the files, and moved them.

        A checkpoint without files is recorded too, once there is a table. Raises TableTakenOver,
        TableUnusable for an overwrite of a table that is append-only, PartitioningChanged or
        OutputSchemaChanged for a table that others have made since the claim, BehindCheckpoint,
        TableAhead, CommittableMissing, CommittableDamaged, TargetDamaged, or RetryLater: who has
        come before, and whether a commit without an answer took effect, is what
        the next look tells.
        """
        try:
            files = sorted(committables)
            return self._commit(checkpoint, files, replaces=replaces, are_moved=are_moved)
        except (LogOvertaken, LogFailed, TargetUnreachable) as error:
            raise RetryLater(str(error)) from error
        except OSError as error:
            if not is_url(self.path):
                raise
            raise RetryLater(str(TargetUnreachable(self.path, str(error)))) from error

    def _commit(
        self, checkpoint: int, files: list[Committable], *, replaces: bool, are_moved: bool
    ) -> bool:
        is_there, is_changed = self._log.read(), False
        if is_there:
            self._require_removable(replaces=replaces)
            if not self._is_shared:
                is_changed = self._log.version() > self._seen
                self._require_driver(files)
                self._require_not_set_back(checkpoint)
            if (self._committed() or 0) >= checkpoint:
                return False
        else:
            make = partial(self._make, checkpoint, files, are_moved=are_moved) if files else None
            if not self._is_shared:
                self._owner.absent(make)
            elif make is not None:
                make()
            return True
        named = self._placed(checkpoint, files, are_moved=are_moved)
        numbers = {self._job_id: checkpoint}
        if not self._is_shared:
            numbers[self._driver_id] = self._owner.number
        metadata = self._metadata(checkpoint)
        self._require_fitting(files if is_changed else [])
        self._grow(files, metadata)
        self._put(files, named, numbers, metadata, replaces=replaces)
        self._seen += 1
        return True

    def _make(self, checkpoint: int, files: list[Committable], *, are_moved: bool) -> None:
        """Make the table of these files."""
        named = self._placed(checkpoint, files, are_moved=are_moved)
        self._create(checkpoint, files, named, {self._job_id: checkpoint})

    def _create(
        self,
        checkpoint: int,
        files: Sequence[Committable],
        named: Files,
        numbers: Mapping[str, int],
    ) -> None:
        """Make the table of the columns of files, with those that are named."""
        if not self._is_shared:
            numbers = {**numbers, self._driver_id: 1, self._maker_id: 1}
        self._log.create(
            merged(self._schemas(files), "add"),
            named,
            numbers,
            self._metadata(checkpoint),
            {} if self._is_shared else NEW_TABLE,
            self._partition_by,
        )

    def _metadata(self, checkpoint: int) -> dict[str, str]:
        return self._words | {"epochgate.checkpoint": str(checkpoint)}

    def _placed(self, checkpoint: int, files: Sequence[Committable], *, are_moved: bool) -> Files:
        """Move the files to where the log names them; return them by those names."""
        self._staged.move_into_place(files, checkpoint, are_moved=are_moved)
        return {self._staged.name(file): file for file in files}

    def _put(
        self,
        files: Sequence[Committable],
        named: Files,
        numbers: Mapping[str, int],
        metadata: Mapping[str, str],
        *,
        replaces: bool,
    ) -> None:
        """Let the table have the rows of these files, in one entry with these numbers."""
        write = self._log.replace if replaces else self._log.append
        write(named, numbers, metadata)

    def _require_fitting(self, files: Sequence[Committable]) -> None:
        """PartitioningChanged or OutputSchemaChanged if other writers have made the table one that
        these files were not written for; columns may have come.
        """
        columns, held = self._log.metadata().partition_columns, bare(self._log.schema())
        if columns != self._partition_by:
            raise PartitioningChanged(self.path, columns, self._partition_by)
        for found in self._schemas(files):
            if not have_common_types(held, found, "add"):
                raise OutputSchemaChanged(describe(held), describe(found), "files to be committed")

    def _schemas(self, files: Sequence[Committable]) -> list[pa.Schema]:
        """Of the files: each schema once."""
        of_each = {file.schema_id: file for file in reversed(files)}
        return [self._schema_of(file) for file in of_each.values()]

    def _schema_of(self, file: Committable) -> pa.Schema:
        return self._staged.schema_of(file)

    def _grow(self, files: Sequence[Committable], metadata: Mapping[str, str]) -> None:
        """Let the table have the columns of these files, by an entry before theirs: the library
        writes them in none together. Raises LogOvertaken or LogFailed.
        """
        if not (self._may_grow and files):
            return
        held = bare(self._log.schema())
        wanted = merged([held, *self._schemas(files)], "add")
        if not can_hold(held, wanted):
            assert not self._is_shared, "schemas of what several drivers share do not grow"
            new = [field for field in wanted if field not in held]
            self._log.add_columns(new, {self._driver_id: self._owner.number}, metadata)
            self._seen += 1
            self._log.read()
            self._require_named()

    @property
    def _driver_id(self) -> str:
        return f"{self._job_id}/driver"

    @property
    def _maker_id(self) -> str:
        """Tells a driver whose answer was lost that the table is of its own making."""
        return f"{self._job_id}/made-by/{self._run_id}"

    def enter(self) -> int:
        """As `Table.enter` says. Raises LogFailed and TableAhead, too, and PartitioningChanged or
        TableUnusable for a table that others have made since the claim.
        """
        columns = self._log.metadata().partition_columns
        if columns != self._partition_by:
            raise PartitioningChanged(self.path, columns, self._partition_by)
        self._require_usable()
        restored = self._restored or 0
        last, lost = self._held()
        if last is not None and last > restored:
            raise TableAhead(self._shown, last, self._restored, "a new table.")
        numbers = {self._driver_id: (self._log.transaction(self._driver_id) or 0) + 1}
        if any(number > restored for number in lost):
            # The job commits these numbers once more, with the same rows or others.
            numbers[self._job_id] = restored
        try:
            self._log.append({}, numbers, self._words)
        except LogOvertaken:
            self._log.read()
            raise
        return numbers[self._driver_id]

    def identity(self) -> str:
        """The text that tells this table from one of the same name."""
        return str(self._log.metadata().id)

    def _require_driver(self, files: Sequence[Committable]) -> None:
        """TableTakenOver unless the log names this driver as the last; OutputSchemaChanged, too,
        if these files are not for a table that others have made meanwhile.
        """
        before = self._owner.number
        self._require_named()
        if self._owner.number != before:
            self._agreed = None
            self.require_one_schema(files)
            self._log.read()
            self._require_named()

    def _require_named(self) -> None:
        is_maker = self._log.transaction(self._maker_id) is not None
        self._owner.present(self._log.transaction(self._driver_id) or 0, is_maker=is_maker)

    def _require_continued(self, restored_checkpoint: int | None, *, is_there: bool) -> None:
        if restored_checkpoint is None:
            return
        known = self._own.known
        table = known.get("table")
        is_ours = table is None or (is_there and self._log.metadata().id == table)
        has_entered = is_there and self._log.transaction(self._driver_id) is not None
        if not (known or has_entered) or not is_ours:
            raise TableBehind(self._shown, restored_checkpoint, _RESTORED)

    def _held(self) -> tuple[int | None, list[int]]:
        return self._log.held(self._job_id, self._driver_id)

    def _committed(self) -> int | None:
        """The newest checkpoint of the job; a driver that has claimed the table knows the rest."""
        return self._held()[0] if self._is_shared else self._log.transaction(self._job_id)

    def _require_held(self, start: SinkStart, *, is_there: bool) -> None:
        """BehindCheckpoint where the table lacks what was committed, as far as is not given up."""
        last, lost = self._held() if is_there else (None, [])
        start.require_held(self._shown, last, lost)

    def _require_not_set_back(self, checkpoint: int) -> None:
        """BehindCheckpoint if another writer has set the table back since the last commit."""
        version = self._log.version()
        if version > self._seen:
            _, lost = self._held()
            start = SinkStart(self._job_id, self._run_id, checkpoint, checkpoints=self._checkpoints)
            start.require_held(self._shown, None, lost)
        self._seen = version

    def _require_removable(self, *, replaces: bool) -> None:
        """TableUnusable if rows that are there should go from a table that is append-only."""
        if replaces and self._log.metadata().configuration.get(APPEND_ONLY) == "true":
            found = f"it is append-only ({APPEND_ONLY}), and an overwrite removes rows"
            raise TableUnusable(self._shown, found, "Append to it, or turn that property off.")

    def _require_partitions(self, columns: list[str]) -> None:
        """PartitioningChanged or PartitionUnusable unless the table is partitioned as asked."""
        if self._partition_by and columns != self._partition_by:
            raise PartitioningChanged(self.path, columns, self._partition_by)
        self._partition_by = columns
        require_partitionable(self._log.schema(), columns, PARTITIONED)

    def _require_usable(self) -> None:
        metadata = self._log.metadata()
        rules = {key for key in self._log.column_rules() if key.startswith("delta.")}
        hindered = hindrance(self._log.writer_features(), metadata.configuration, rules)
        if hindered is None and self._may_grow:
            hindered = hindrance_of_growth(self._log.schema())
        if hindered:
            raise TableUnusable(self._shown, *hindered)
        self._require_partitions(metadata.partition_columns)
