"""Writes a subtask's output to staged Parquet files that are not read before their commit.

Decides: when a row group and a file end, and what a file is called. Leaves to others: the barrier
that calls `prepare_commit`, carrying committables to the driver, and showing them (`target`).
Runs in a task, on its data thread; one writer per subtask attempt.

    write write write | prepare_commit(7): close, fsync, hand over | write | prepare_commit(8) ...

After an error the writer is useless: the attempt fails, the next one continues from the checkpoint
with a writer of its own, and the files left behind are orphans that the target removes at its next
claim.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

import pyarrow as pa

from epochgate.errors import EpochgateError
from epochgate.runtime.filesystem import AnyPath, LocalFileSystem, WrittenOnce
from epochgate.spark.files.layout import describe
from epochgate.spark.parquet_sink.committable import (
    Committable,
    footer_crc32,
    require_readable_columns,
    schema_id,
    staged_path,
)
from epochgate.spark.parquet_sink.dictionaries import Dictionaries
from epochgate.spark.parquet_sink.errors import (
    FULL,
    CommittableDamaged,
    DiskFull,
    OutputSchemaChanged,
)
from epochgate.spark.parquet_sink.open_file import COMPRESSION, ROW_GROUP_BYTES, OpenFile
from epochgate.spark.parquet_sink.partitions import (
    partitioned,
    require_partitionable,
    without,
)
from epochgate.spark.values.errors import RowsUnwritable

ROLL_BYTES = 256 << 20
Split = Callable[[pa.Table], Iterable[tuple[str, pa.Table]]]
NEVER_WRITTEN = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError)
"""What the library raises for rows that it cannot write, whichever attempt has them."""


class StagingWriterBroken(EpochgateError):
    """The writer has failed or was abandoned before, so its files cannot be completed."""


class StagingWriter:
    """Stages the output of one subtask attempt.

    working_directory: the target's (`ParquetTarget.working_directory`). run_id: letters, digits and
    '-'. attempt: unique within the run. schema: what the target's files already have, or none if
    this writer's first batch is to fix it. roll_bytes: a file ends once it has that many bytes.
    row_group_bytes: so much of Arrow data is gathered for a row group. in_place: files have the
    names that they keep when they are committed; "below partitions" for those in the directories of
    their partitions. partition_by: columns whose values are in the names of directories, and not in
    the files; or split: names the parts of a table for each of which there is a file.
    """

    def __init__(
        self,
        working_directory: AnyPath,
        run_id: str,
        subtask: int,
        attempt: int,
        *,
        schema: pa.Schema | None = None,
        files: WrittenOnce | None = None,
        roll_bytes: int = ROLL_BYTES,
        row_group_bytes: int = ROW_GROUP_BYTES,
        compression: str = COMPRESSION,
        in_place: bool | Literal["below partitions"] = False,
        partition_by: Sequence[str] = (),
        split: Split | None = None,
    ) -> None:
        staged_path(run_id, subtask, attempt, 0)
        self._working_directory = os.fspath(working_directory)
        self._run_id = run_id
        self._subtask = subtask
        self._attempt = attempt
        self._schema = schema
        self._files: WrittenOnce = LocalFileSystem() if files is None else files
        self._roll_bytes = roll_bytes
        self._row_group_bytes = row_group_bytes
        self._compression = compression
        self._in_place = in_place
        self._partition_by, self._split = tuple(partition_by), split

        self._sequence = 0
        self._gathered: list[pa.RecordBatch] = []
        self._gathered_bytes = 0
        self._dictionaries = Dictionaries()
        self._open: dict[str, OpenFile] = {}
        """By the partition's directory."""
        self._finished: list[Committable] = []
        self._broken = ""

    @property
    def schema(self) -> pa.Schema | None:
        """The output's schema; none before the first batch."""
        return self._schema

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The types of the output's columns, by name."""
        return {one.name: one.type for one in self._schema or ()}

    def write(self, batch: pa.RecordBatch) -> None:
        """Add a batch, of the schema of those before.

        Raises `OutputSchemaChanged`, `RowsUnwritable`, `DiskFull` or `CommittableDamaged` (a file
        is not as it was written), which leave the writer useless, and `StagingWriterBroken` when it
        is; and
        `ReservedColumn` or `PartitionUnusable` for a first batch that no target can hold.
        """
        self._require_usable()
        if self._schema is None:
            require_readable_columns(batch.schema)
            require_partitionable(batch.schema, self._partition_by)
            self._schema = batch.schema
        elif schema_id(batch.schema) != schema_id(self._schema):
            self._broken = "it was given a batch of another schema"
            where = f"subtask {self._subtask}, attempt {self._attempt}"
            raise OutputSchemaChanged(describe(self._schema), describe(batch.schema), where)
        if batch.num_rows == 0:
            return
        self._gathered.append(batch)
        self._gathered_bytes += batch.nbytes
        if self._gathered_bytes >= self._row_group_bytes:
            with self._failing():
                self._write_row_group()

    def change_schema(self, schema: pa.Schema) -> None:
        """Finish the files that are being written, and take batches of this schema from now on.

        Raises `DiskFull`, `RowsUnwritable` or `CommittableDamaged`, which leave the writer useless,
        and `StagingWriterBroken` when it is.
        """
        self._require_usable()
        with self._failing():
            self._finish_files()
        self._schema, self._dictionaries = schema, Dictionaries()

    def prepare_commit(self, checkpoint: int) -> list[Committable]:
        """Finish the files written since the last call, durably, and hand them over; maybe none.

        Raises `DiskFull`, `RowsUnwritable` or `CommittableDamaged`, which leave the writer useless,
        and `StagingWriterBroken` when it is.
        """
        self._require_usable()
        with self._failing():
            self._finish_files()
            if self._finished:
                self._files.fsync_directory(self._staging_directory())
        handed_over, self._finished = self._finished, []
        return handed_over

    def _finish_files(self) -> None:
        if self._gathered:
            self._write_row_group()
        for directory in list(self._open):
            self._finish_file(directory)

    def abandon(self) -> None:
        """Close and remove what has not been handed over; errors of removing do not matter."""
        self._broken = self._broken or "it was abandoned"
        left = [committable.path for committable in self._finished]
        for file in self._open.values():
            left.append(file.path)
            with contextlib.suppress(OSError):
                file.drop()
        for path in left:
            with contextlib.suppress(OSError):
                self._files.remove(os.path.join(self._working_directory, path))
        self._open, self._finished, self._gathered = {}, [], []

    def _write_row_group(self) -> None:
        """Write what was gathered: one row group for each partition that is in it."""
        schema = self._gathered[0].schema
        # Whether values may be missing is not part of the agreed schema, so any may be.
        bare = pa.schema([pa.field(field.name, field.type) for field in schema])
        table = pa.Table.from_batches(
            [pa.RecordBatch.from_arrays(batch.columns, schema=bare) for batch in self._gathered]
        )
        parts = self._split(table) if self._split else partitioned(table, self._partition_by)
        for directory, part in parts:
            if directory not in self._open:
                self._open[directory] = self._start_file(bare, directory)
            file = self._open[directory]
            file.write_table(part)
            if file.size_bytes >= self._roll_bytes:
                self._finish_file(directory)
        self._gathered, self._gathered_bytes = [], 0

    def _start_file(self, schema: pa.Schema, directory: str) -> OpenFile:
        self._files.make_directory(self._staging_directory())
        number = self._sequence
        # Names that `split` makes are no directories.
        is_below = self._in_place == "below partitions" and self._split is None
        path = staged_path(
            self._run_id,
            self._subtask,
            self._attempt,
            number,
            in_place=bool(self._in_place),
            directory=directory if is_below else "",
        )
        self._sequence += 1
        absolute = os.path.join(self._working_directory, path)
        file = self._files.open_for_writing(absolute)
        try:
            written = without(schema, self._partition_by)
            return OpenFile(
                path, number, file, written, schema, self._dictionaries, self._compression
            )
        except Exception:
            file.close()
            with contextlib.suppress(OSError):
                self._files.remove(absolute)
            raise

    def _finish_file(self, directory: str) -> None:
        file = self._open[directory]
        file.finish()
        del self._open[directory]
        absolute = os.path.join(self._working_directory, file.path)
        size_bytes = self._files.size(absolute)
        crc32 = footer_crc32(self._files, absolute, size_bytes)
        if crc32 is None or size_bytes != file.size_bytes:
            raise CommittableDamaged(
                absolute, f"{file.size_bytes} bytes and a footer", f"{size_bytes} bytes"
            )
        self._finished.append(
            Committable(
                self._subtask,
                self._attempt,
                file.number,
                file.path,
                file.rows,
                size_bytes,
                crc32,
                schema_id(file.agreed),
                "" if self._split else directory,
            )
        )

    def _staging_directory(self) -> str:
        return os.path.join(self._working_directory, "staged", self._run_id)

    def _require_usable(self) -> None:
        if self._broken:
            raise StagingWriterBroken(
                f"the writer of subtask {self._subtask}, attempt {self._attempt} cannot go on: "
                f"{self._broken}. Start a new attempt from the last checkpoint."
            )

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self._broken = f"{type(error).__name__}: {error}"
            if isinstance(error, OSError) and error.errno in FULL:
                raise DiskFull(self._staging_directory(), str(error)) from error
            if isinstance(error, NEVER_WRITTEN):
                where = f"subtask {self._subtask}, attempt {self._attempt}"
                raise RowsUnwritable(str(error), where) from error
            raise
