"""An Iceberg table into which rows are merged, instead of added: the same claims and properties,
with another snapshot for a checkpoint.

Decides which rows of the table go: those of a key that came, unless they are newer. Files that have
such rows are written again without them, and the rows that came into further ones; one snapshot
takes the old files out and the new ones in, or the catalog refuses it since main has changed, and
it is made again from the newest. Runs on the driver, which reads the files that may have keys.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from epochgate.runtime.filesystem import LocalFileSystem, WrittenOnce
from epochgate.runtime.objects.client import is_url
from epochgate.runtime.objects.files import ObjectFiles
from epochgate.spark.iceberg_sink.errors import TableOvertaken
from epochgate.spark.iceberg_sink.target import IcebergTarget
from epochgate.spark.parquet_sink.committable import Committable
from epochgate.spark.parquet_sink.staging import StagingWriter
from epochgate.spark.tables.errors import TableUnusable
from epochgate.spark.tables.last_rows import NUMBER, LastRows, without_mark
from epochgate.spark.tables.merge import DELETED, Merge
from epochgate.spark.tables.staged import working_of
from epochgate.spark.tables.transforms import split_by
from epochgate.spark.tables.types import bare

SUBTASK: Final = 99_999
"""In the names of files that the driver writes."""
_ROW: Final = "epochgate_row"


class MergingIcebergTarget(IcebergTarget):
    """The table as one run of one job merges rows into it; `claim` it first."""

    def __init__(self, *of: Any, merge: Merge, **given: Any) -> None:
        """Raises what `open_table` raises."""
        super().__init__(*of, **given)
        self._merge, self._writes = merge, 0

    def require_one_schema(self, committables: Sequence[Committable]) -> None:
        """In addition KeyAmbiguous, for rows of a key of which none is the last."""
        super().require_one_schema(committables)
        if committables:
            self._rows(committables).require_clear()

    def _open(self, restored_checkpoint: int | None) -> None:
        super()._open(restored_checkpoint)
        names = self._table.schema().names
        if names and (lacks := [name for name in self._merge.columns if name not in names]):
            found = f"it has no column {lacks[0]!r}, by which rows are to be merged"
            way_on = "Name its columns in --merge-on and --merge-order (merge_on and merge_order)."
            raise TableUnusable(self._shown, found, way_on)
        self._require_readable()

    def _require_readable(self) -> None:
        if self._table.has_equality_deletes():
            found = "it has rows that are deleted by their values, which the library does not read"
            raise TableUnusable(self._shown, found, "Let an engine rewrite its data files before.")

    def _rows(self, files: Sequence[Committable]) -> LastRows:
        return LastRows(self._staged, files, self._merge, self._shown)

    def _schema_of(self, file: Committable) -> pa.Schema:
        return without_mark(super()._schema_of(file))

    def _put(self, files: list[Committable], checkpoint: int, *, replaces: bool) -> None:
        if not files:
            super()._put(files, checkpoint, replaces=replaces)
            return
        self._staged.look(files, checkpoint)
        rows = self._rows(files)
        rows.require_clear()
        self._require_readable()
        columns = [] if self._table.schema().names else [self._schema_of(files[0])]
        going = Going(self._table, rows.keys, self._merge)
        new = going.coming.filter(pc.invert(going.coming[DELETED]))
        came = (batch.drop_columns([DELETED]) for batch in rows.batches(new))
        written = self._written([*going.kept(), came], columns)
        self._staged.move_into_place(written, checkpoint)
        try:
            self._commit_files(written, columns, checkpoint, removed=going.files)
        except TableOvertaken:
            with contextlib.suppress(OSError):
                self._staged.remove(written)
            raise

    def _written(
        self, parts: Sequence[Iterator[pa.RecordBatch]], columns: Sequence[pa.Schema]
    ) -> list[Committable]:
        """Write rows into files, each of one partition."""
        schema = bare(columns[0] if columns else self._table.schema())
        self._writes += 1
        is_object = is_url(self.directory)
        files: WrittenOnce = (
            ObjectFiles(self._open_objects(self.directory))
            if is_object
            else self._given_files or LocalFileSystem.of_table(self.directory)
        )
        writer = StagingWriter(
            "" if is_object else working_of(self.directory),
            self._run_id,
            SUBTASK,
            self._writes,
            schema=schema,
            files=files,
            in_place="below partitions" if is_object else False,
            split=partial(split_by, self._transforms),
        )
        try:
            for part in parts:
                for batch in part:
                    writer.write(batch.select(schema.names).cast(schema))
            return writer.prepare_commit(0)
        except BaseException:
            writer.abandon()
            raise


class Going:
    """The rows of a table that go for the rows of `keys`: of which files they are, and what stays
    of these. `coming`: those of `keys` for which the table has no newer row.
    """

    def __init__(self, table: Any, keys: pa.Table, merge: Merge) -> None:
        self._table, self._merge = table, merge
        found, newer = [], []
        for task in table.with_keys([(name, *_ends(keys[name])) for name in merge.on]):
            numbers = []
            for batch in table.read(task, merge.columns):
                pairs = self._pairs(batch, keys)
                is_newer = self._newer(pairs)
                newer.append(pairs[NUMBER].filter(is_newer))
                numbers.append(pairs[NUMBER])
            found.append((task, numbers))
        stays = pa.chunked_array([chunk for one in newer for chunk in one.chunks], pa.int64())
        is_beaten = pc.is_in(keys[NUMBER], value_set=stays.combine_chunks())
        self.coming = keys.filter(pc.invert(is_beaten))
        alive = self.coming[NUMBER].combine_chunks()
        self._tasks = [
            task
            for task, numbers in found
            if any(pc.any(pc.is_in(one, value_set=alive)).as_py() for one in numbers)
        ]
        self.files = [task.file for task in self._tasks]

    def kept(self) -> Iterator[Iterator[pa.RecordBatch]]:
        """The rows that stay of each file that goes."""
        for task in self._tasks:
            yield (self._staying(batch) for batch in self._table.read(task))

    def _staying(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = self._pairs(batch, self.coming)[_ROW].combine_chunks()
        numbers = pa.array(range(batch.num_rows), pa.int64())
        return batch.filter(pc.invert(pc.is_in(numbers, value_set=rows)))

    def _pairs(self, batch: pa.RecordBatch, keys: pa.Table) -> pa.Table:
        """Rows of the table, each with the row that came for its key."""
        on, numbers = list(self._merge.on), pa.array(range(batch.num_rows), pa.int64())
        known = {name: batch.column(name).cast(keys.schema.field(name).type) for name in on}
        of_order = {
            _known(name): batch.column(name).cast(keys.schema.field(name).type)
            for name in self._merge.order
        }
        return pa.table({**known, **of_order, _ROW: numbers}).join(keys, on, join_type="inner")

    def _newer(self, pairs: pa.Table) -> Any:
        """Of each pair, whether the row of the table is newer; not if that is not known."""
        newer = pa.chunked_array([pa.array([False] * pairs.num_rows, pa.bool_())])
        for name in reversed(self._merge.order):
            known, given = pairs[_known(name)], pairs[name]
            later = pc.and_kleene(pc.equal(known, given), newer)
            newer = pc.or_kleene(pc.greater(known, given), later)
        return pc.fill_null(newer, False)


def _known(name: str) -> str:
    return f"epochgate_known_{name}"


def _ends(values: pa.ChunkedArray) -> tuple[Any, Any]:
    """The least and the greatest value."""
    ends = pc.min_max(values).as_py()
    return ends["min"], ends["max"]
