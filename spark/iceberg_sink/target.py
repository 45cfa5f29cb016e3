"""An Iceberg table as the target of one run of one job: who may commit, and what was committed.

Decides every rule of the commit, by two numbers in the table's properties: that of the job's last
checkpoint, and that of its driver. Each commit carries both and adds a snapshot to the branch main
as it was read, or fails. So of two drivers one is refused by the catalog, whichever is late. They
are properties and not only in the snapshots' summaries, since snapshots expire. Runs on the driver.

    claim: driver 4 -> 5            a snapshot without files; main as driver 4 has read it is over
    commit(7): checkpoint 6 -> 7    with the files and their columns, in one commit, or not at all
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from epochgate.runtime import RetryLater, SinkStart
from epochgate.runtime.filesystem import FileSystem, LocalFileSystem
from epochgate.runtime.objects.client import ObjectStore, is_url, open_url
from epochgate.spark.files.evolution import SchemaEvolution, can_hold, merged
from epochgate.spark.files.layout import describe
from epochgate.spark.iceberg_sink.errors import OutcomeUnknown, TableOvertaken, TableRolledBack
from epochgate.spark.iceberg_sink.table import IcebergTable
from epochgate.spark.parquet_sink.committable import Committable
from epochgate.spark.parquet_sink.errors import OutputSchemaChanged, TargetUnreachable
from epochgate.spark.tables.errors import TableAhead, TableBehind, TableTakenOver, TableUnusable
from epochgate.spark.tables.staged import RUNS_REMEMBERED, Staged, StagedFiles
from epochgate.spark.tables.staged_objects import StagedObjects
from epochgate.spark.tables.transforms import require_transformable, transforms_of
from epochgate.spark.tables.types import bare, hindrance_of_growth
from epochgate.spark.values.formats import ICEBERG

_log = logging.getLogger(__name__)

_RESTORED = "Restore the table to which it has committed"
CLAIMS_MAX = 5
"""How often a start looks at the table again that others write to."""
EXPIRE_EVERY = 50
"""Commits after which old snapshots are expired, of which twice as many go at a time at most: a
commit reads and writes an entry of each snapshot.
"""
DATA = "data"
"""The directory of a table's files, below its own."""


@dataclass(frozen=True)
class Ledger:
    """The word of a table on a job; `checkpoint`: the newest whose rows are in main; `said`: the
    newest that was committed, which main may lack since it was set back.
    """

    driver: int = 0
    checkpoint: int | None = None
    runs: tuple[str, ...] = ()
    said: int | None = None


class IcebergTarget:
    """The table as seen by one run of one job; `claim` it first."""

    def __init__(
        self,
        open_table: Callable[[], IcebergTable],
        job_id: str,
        run_id: str,
        *,
        files: FileSystem | None = None,
        open_objects: Callable[[str], ObjectStore] = open_url,
        partition_by: Sequence[str] = (),
        evolution: SchemaEvolution = "none",
    ) -> None:
        """partition_by: of a new table, as users write transforms. Raises what `open_table` raises,
        and PartitionUnusable.
        """
        self._asked, self._evolution = transforms_of(partition_by), evolution
        self._table = open_table()
        self._shown = f"the Iceberg table {self._table.shown}"
        self._job_id, self._run_id = job_id, run_id
        self._given_files = files
        self._key = f"epochgate.{hashlib.sha256(job_id.encode()).hexdigest()[:16]}"
        self._driver, self._runs, self._identity = 0, tuple[str, ...](), ""
        self._commits = self._held = 0
        self._open_objects, self._transforms = open_objects, tuple[str, ...]()
        self._staged: Staged
        self.directory = ""

    def claim(self, restored_checkpoint: int | None, *, start: SinkStart | None = None) -> None:
        """Take the table for this run, which starts from `restored_checkpoint` (none: afresh);
        `start`: says what the table has to hold.

        A table that is not there is made, without columns. Raises TableUnusable, TableAhead,
        TableBehind, BehindCheckpoint, OutcomeUnknown, and TableTakenOver where others claim it all
        the time; nothing of the job is changed then.
        """
        self._open(restored_checkpoint)
        self._enter(restored_checkpoint, start)

    def share(self, restored_checkpoint: int | None) -> None:
        """Instead of `claim`: take part in the table, and keep no other driver of this job from it;
        each of its checkpoints has the same rows, whichever driver commits it first.

        Raises TableUnusable, TableAhead, TableBehind or TableTakenOver.
        """
        self._open(restored_checkpoint)
        ledger = self._ledger()
        if restored_checkpoint is not None and ledger.checkpoint is None:
            raise TableBehind(self._shown, restored_checkpoint, _RESTORED)
        if (ledger.checkpoint or 0) > (restored_checkpoint or 0):
            raise TableAhead(self._shown, ledger.checkpoint, restored_checkpoint, "a new table.")
        self._driver, self._runs = ledger.driver, ledger.runs
        self._held = restored_checkpoint or 0

    def _open(self, restored_checkpoint: int | None) -> None:
        if not self._table.load():
            if restored_checkpoint is not None:
                raise TableBehind(self._shown, restored_checkpoint, _RESTORED)
            self._table.create()
            if not self._table.load():
                raise TableTakenOver(self._shown, self._run_id)
        if demands := self._table.demands():
            raise TableUnusable(self._shown, demands, "Give another table.")
        if self._evolution != "none" and (hindered := hindrance_of_growth(self._table.schema())):
            raise TableUnusable(self._shown, *hindered)
        self.directory, self._identity = self._table.directory, self._table.identity
        self._transforms = self._transforms_now()
        if self._asked and self._transforms != self._asked:
            one, other = (", ".join(some) or "nothing" for some in (self._transforms, self._asked))
            raise TableUnusable(
                self._shown,
                f"it is partitioned by {one}, and this start asks for {other}",
                "Leave --partition-by (partition_by in Python) out, or give a new table.",
            )
        if is_url(self.directory):
            self._staged = StagedObjects(self._open_objects(self.directory), self._table)
            return
        data, given = os.path.join(self.directory, DATA), self._given_files
        files = LocalFileSystem.of_table(self.directory) if given is None else given
        self._staged = StagedFiles(files, self.directory, data)
        files.make_directory(data)

    def _transforms_now(self) -> tuple[str, ...]:
        """The transforms of the table; of one without columns, those that it is to have."""
        if not self._table.schema().names:
            self._table.partitions_when_made = self._asked
            return self._asked
        return tuple(self._table.transforms())

    def last_committed(self) -> int | None:
        """The job's newest checkpoint, without a claim; none if there is none, or no table."""
        return self._ledger().checkpoint if self._table.load() else None

    def prepare(self) -> None:
        """Make the table if there is none, for tasks that stage files before the claim.

        Raises TableUnusable or OutcomeUnknown.
        """
        if not self._table.load():
            self._table.create()
            self._table.load()
        self.directory = self._table.directory

    def release(self) -> None:
        """Close what is open; the next claim stops this one."""
        self._table.close()

    def schema(self) -> pa.Schema | None:
        """The table's columns, for writers to keep to; none before it has any."""
        return self._table.schema() if self._table.schema().names else None

    def told(self) -> tuple[str, ...]:
        """Return what tasks are told: the table's place, and the transforms of its partitions."""
        return (self.directory, *self._transforms)

    def rows(self) -> int:
        """The rows that are visible."""
        return self._table.rows()

    def remove_orphans(self, keep: Iterable[Committable]) -> list[str]:
        """Remove what earlier runs have staged and is not in `keep`; returns their paths.

        For use after `claim`; looks at several runs again, whose tasks may have written on since.
        Raises TargetUnreachable.
        """
        try:
            return self._staged.remove_orphans(self._runs[:-1], keep)
        except (OSError, OutcomeUnknown) as error:
            if not is_url(self.directory):
                raise
            raise TargetUnreachable(self.directory, str(error)) from error

    def discard(self, files: Iterable[Committable]) -> None:
        """Remove staged files to which the table does not refer. Raises OSError."""
        self._staged.discard(files)

    def require_one_schema(self, committables: Sequence[Committable]) -> None:
        """OutputSchemaChanged if these could not be committed together with what is visible, or
        PartitionUnusable if they could not be partitioned.

        Call it before their checkpoint completes: afterwards the job could only be stuck.
        """
        agreed = bare(self._table.schema())
        mode: SchemaEvolution = "widen" if self._evolution == "widen" else "add"
        for file, found in self._schemas(committables):
            grown = merged([agreed, found], mode, ICEBERG.rules)
            if not can_hold(grown, found):
                where = f"subtask {file.subtask}, attempt {file.attempt}"
                raise OutputSchemaChanged(describe(agreed), describe(found), where)
            agreed = grown
        if agreed.names:
            require_transformable(agreed, self._transforms)

    def commit(
        self, checkpoint: int, committables: Sequence[Committable], *, replaces: bool = False
    ) -> bool:
        """Add a completed checkpoint's files to the table, all at once; false if that was done.
        With `replaces`, the rows that are there go in the same step.

        A checkpoint without files is recorded too. Raises TableTakenOver, TableBehind,
        TableRolledBack, CommittableMissing, CommittableDamaged, TableUnusable for files that were
        written for another partitioning, or RetryLater: who has come before, and whether a commit
        without an answer took effect, is what the next look tells.
        """
        try:
            return self._commit(checkpoint, sorted(committables), replaces=replaces)
        except (TableOvertaken, OutcomeUnknown) as error:
            raise RetryLater(str(error)) from error
        except OSError as error:
            if not is_url(self.directory):
                raise
            raise RetryLater(str(TargetUnreachable(self.directory, str(error)))) from error

    def _commit(self, checkpoint: int, files: list[Committable], *, replaces: bool) -> bool:
        if not self._table.load() or self._table.identity != self._identity:
            raise TableBehind(self._shown, checkpoint, _RESTORED)
        ledger = self._ledger()
        if ledger.driver != self._driver:
            raise TableTakenOver(self._shown, self._run_id)
        if (ledger.checkpoint or 0) < self._held:
            raise TableRolledBack(self._table.shown, self._held)
        if (ledger.checkpoint or 0) >= checkpoint:
            return False
        if files:
            self._require_partitions(", ".join(self._transforms), self._transforms_now())
        self._put(files, checkpoint, replaces=replaces)
        self._held = checkpoint
        self._commits += 1
        if self._commits % EXPIRE_EVERY == 0:
            self.expire()
        return True

    def _put(self, files: list[Committable], checkpoint: int, *, replaces: bool) -> None:
        """Let the table have the rows of these files, in one snapshot of the checkpoint."""
        self._staged.move_into_place(files, checkpoint)
        held = self._table.schema()
        found = [schema for _, schema in self._schemas(files)]
        columns = [_demanding(one, held) for one in found if not can_hold(bare(held), one)]
        self._commit_files(files, columns, checkpoint, replaces=replaces)

    def _commit_files(
        self,
        files: Sequence[Committable],
        columns: Sequence[pa.Schema],
        checkpoint: int,
        *,
        replaces: bool = False,
        removed: Sequence[Any] = (),
    ) -> None:
        write = self._table.replace if replaces else self._table.commit
        if removed:
            write = partial(self._table.commit, removed=removed)
        write(
            [self._staged.final(file) for file in files],
            columns,
            {f"{self._key}.checkpoint": str(checkpoint)},
            self._summary() | {"epochgate.checkpoint": str(checkpoint)},
            f"{self._key}.snapshot",
        )

    def has_run(self, run_id: str) -> bool:
        """True if a snapshot that is kept is of this run. For use after `share` or `claim`."""
        return self._table.has_said("epochgate.run", run_id)

    def expire(self) -> None:
        """Let old snapshots go; what hinders it is no matter of the commit, which has been made."""
        try:
            self._table.expire(2 * EXPIRE_EVERY)
        except (TableOvertaken, OutcomeUnknown) as error:
            _log.warning(
                "old snapshots of %s were not expired, which %d commits later is tried again: %s",
                self._table.shown,
                EXPIRE_EVERY,
                error,
            )

    def _enter(self, restored_checkpoint: int | None, start: SinkStart | None) -> None:
        for _ in range(CLAIMS_MAX):
            ledger = self._ledger()
            if restored_checkpoint is not None and not ledger.driver:
                raise TableBehind(self._shown, restored_checkpoint, _RESTORED)
            if (ledger.checkpoint or 0) > (restored_checkpoint or 0):
                raise TableAhead(
                    self._shown, ledger.checkpoint, restored_checkpoint, "a new table."
                )
            self._require_held(
                ledger, start or SinkStart(self._job_id, self._run_id, restored_checkpoint)
            )
            if (ledger.checkpoint or 0) < (restored_checkpoint or 0):
                of_files = self._table.properties.get(f"{self._key}.partitions")
                if of_files is not None:
                    self._require_partitions(of_files, self._transforms)
            runs = (*ledger.runs, self._run_id)[-RUNS_REMEMBERED:]
            driver = ledger.driver + 1
            entry = {
                f"{self._key}.job": self._job_id,
                f"{self._key}.driver": str(driver),
                f"{self._key}.runs": " ".join(runs),
                f"{self._key}.partitions": ", ".join(self._transforms),
            }
            said = min(ledger.said or 0, restored_checkpoint or 0)
            if said != (ledger.said or 0):
                # The job commits the numbers that main lacks once more.
                entry[f"{self._key}.checkpoint"] = str(said)
            try:
                self._table.commit([], [], entry, self._summary(), f"{self._key}.snapshot")
            except TableOvertaken:
                self._table.load()
                continue
            self._driver, self._runs, self._held = driver, runs, said
            return
        raise TableTakenOver(self._shown, self._run_id)

    def _ledger(self) -> Ledger:
        found = self._table.properties
        snapshot = _number(found, f"{self._key}.snapshot")
        said = held = _number(found, f"{self._key}.checkpoint")
        if snapshot is not None and self._table.has_lost(snapshot):
            held = self._table.newest_said("epochgate.checkpoint", {"epochgate.job": self._job_id})
        return Ledger(
            _number(found, f"{self._key}.driver") or 0,
            held or None,
            tuple(found.get(f"{self._key}.runs", "").split()),
            said,
        )

    def _summary(self) -> dict[str, str]:
        """Return what a person finds in the snapshot."""
        return {"epochgate.job": self._job_id, "epochgate.run": self._run_id}

    def _require_partitions(self, written: str, transforms: Sequence[str]) -> None:
        """TableUnusable if files that are to be committed were written for other partitions."""
        if written != (now := ", ".join(transforms)):
            one, other = (text or "nothing" for text in (written, now))
            found = f"its files were written to be partitioned by {one}, and it is by {other} now"
            way_on = (
                "Set the partitioning (or --partition-by, partition_by in Python) back, start "
                "again and stop the job; then change it."
            )
            raise TableUnusable(self._shown, found, way_on)

    def _require_held(self, ledger: Ledger, start: SinkStart) -> None:
        """BehindCheckpoint where the table lacks what was committed, as far as is not given up."""
        held = ledger.checkpoint or 0
        lost = range(held + 1, (ledger.said or held) + 1)
        start.require_held(self._shown, ledger.checkpoint, lost)

    def _schemas(self, files: Sequence[Committable]) -> Iterator[tuple[Committable, pa.Schema]]:
        """Of the files: each schema once, with a file of it."""
        seen = set()
        for file in files:
            if file.schema_id not in seen:
                seen.add(file.schema_id)
                yield file, self._schema_of(file)

    def _schema_of(self, file: Committable) -> pa.Schema:
        return self._staged.schema_of(file)


def _demanding(schema: pa.Schema, held: pa.Schema) -> pa.Schema:
    """The columns of files, required as those of the table are, which stay so."""
    must = {field.name for field in held if not field.nullable}
    return pa.schema([field.with_nullable(field.name not in must) for field in schema])


def _number(properties: Mapping[str, str], key: str) -> int | None:
    return int(properties[key]) if key in properties else None
