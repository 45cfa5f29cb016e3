"""The task's side of a sink into a table: batches staged as Parquet files of the agreed schema.

Stages nothing before the sink's coordinator has told the schema that all subtasks write, and where
the table lies, if the task does not know that. Files are named by run, subtask and attempt, so a
zombie can never write over another's. One writer per subtask attempt, on the task's data thread.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa

from epochgate.runtime import OperatorContext, SinkWriter
from epochgate.runtime.filesystem import LocalFileSystem, WrittenOnce
from epochgate.runtime.objects.client import ObjectStore, is_url, open_url
from epochgate.runtime.objects.files import ObjectFiles
from epochgate.spark.files.evolution import SchemaEvolution, can_hold, wider
from epochgate.spark.parquet_sink.staging import Split, StagingWriter
from epochgate.spark.tables.staged import working_of
from epochgate.spark.tables.transforms import require_transformable, split_by
from epochgate.spark.tables.types import bare, conformed
from epochgate.spark.values.fitting import tried
from epochgate.spark.values.formats import TableTypes


class TableSinkWriter(SinkWriter):
    """Stages record batches below the table's working directory, or uploads them to where they
    stay, with the table's types.

    evolution: whether new columns become columns of the table, and types wider ones. open_objects:
    with what a table at a URL is opened. transforms: whether the coordinator tells, beside the
    table's directory or URL, transforms by which it is partitioned (`transforms`), instead of
    columns.
    """

    def __init__(
        self,
        types: TableTypes,
        context: OperatorContext,
        file_bytes: int,
        *,
        evolution: SchemaEvolution = "none",
        transforms: bool = False,
        open_objects: Callable[[str], ObjectStore] = open_url,
    ) -> None:
        self._open_objects, self._transforms = open_objects, transforms
        self._types, self._context = types, context
        self._file_bytes, self._evolution = file_bytes, evolution
        self._may_grow = evolution != "none"
        self._where = f"subtask {context.subtask}, attempt {context.attempt}"
        self._agreed: pa.Schema | None = None
        self._partition_by: list[str] = []
        self._staging: StagingWriter | None = None
        self._asked: pa.Schema | None = None
        self._fitting: pa.Schema | None = None

    def may_write(self, batch: pa.RecordBatch) -> bool:
        """Return whether a schema is agreed that holds `batch`; if not, ask for one that does: the
        answer is an event.

        Raises TypeNotInTable or NameTwice before one is asked for that no table can have.
        """
        if self._agreed is not None and self._is_held(self._agreed, batch.schema):
            return True
        if self._asked is None or (self._may_grow and batch.schema != self._asked):
            wish = self._wish(batch.schema)
            self._asked = batch.schema
            self._context.send_to_coordinator(["schema", wish.serialize().to_pybytes()])
        return False

    def _is_held(self, agreed: pa.Schema, schema: pa.Schema) -> bool:
        if not self._may_grow or schema == self._fitting:
            return True
        if can_hold(agreed, self._wish(schema), self._evolution, self._types.rules):
            self._fitting = schema
            return True
        return False

    def _wish(self, schema: pa.Schema) -> pa.Schema:
        """The table's schema for such batches; a column without a type waits for one, if it may."""
        if self._may_grow:
            schema = pa.schema([one for one in schema if not pa.types.is_null(one.type)])
        return self._types.schema(schema)

    def handle_event(self, event: Any) -> None:
        """The schema is agreed: begin files of this attempt's own, or other ones if it changes."""
        _, packed, table, *partition_by = event
        agreed = pa.ipc.read_schema(pa.py_buffer(packed))
        if self._staging is None:
            self._partition_by = [] if self._transforms else partition_by
            split = partial(split_by, partition_by) if self._transforms else None
            if self._transforms:
                require_transformable(agreed, partition_by)
            self._staging = self._begin(table, bare(agreed), split)
        elif self._may_grow and agreed != self._agreed:
            self._staging.change_schema(bare(agreed))
            self._asked = self._fitting = None
        else:
            return
        self._agreed = agreed

    def _begin(self, table: str, schema: pa.Schema, split: Split | None) -> StagingWriter:
        is_object = is_url(table)
        files: WrittenOnce = (
            ObjectFiles(self._open_objects(table)) if is_object else LocalFileSystem.of_table(table)
        )
        return StagingWriter(
            "" if is_object else working_of(table),
            self._context.run_id,
            self._context.subtask,
            self._context.attempt,
            schema=schema,
            files=files,
            roll_bytes=self._file_bytes,
            in_place="below partitions" if is_object else False,
            partition_by=self._partition_by,
            split=split,
        )

    def write(self, batch: pa.RecordBatch) -> None:
        """Stage one batch; OutputSchemaChanged, ValueMissing, ValueDoesNotFit and DiskFull end the
        job.
        """
        assert self._staging is not None, "may_write says when there is a schema"
        assert self._agreed is not None, "it comes with the first event"
        if self._may_grow:
            batch = padded(batch, self._agreed, self._types, self._where)
        self._staging.write(conformed(batch, self._agreed, self._where, self._partition_by))

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        """Finish the files."""
        if self._staging is None:
            return []
        return [c.to_list() for c in self._staging.prepare_commit(checkpoint_id)]

    def close(self) -> None:
        """Remove what was not handed over."""
        if self._staging is not None:
            self._staging.abandon()


def padded(
    batch: pa.RecordBatch, agreed: pa.Schema, types: TableTypes, where: str
) -> pa.RecordBatch:
    """The agreed columns, which can hold the batch, and the fields within them; null where it has
    none. Raises ValueDoesNotFit.

    >>> from epochgate.spark.values.formats import DELTA
    >>> struct = pa.struct({"a": pa.int64(), "b": pa.string()})
    >>> batch = pa.RecordBatch.from_pydict({"s": [{"a": 1}]})
    >>> padded(batch, pa.schema({"s": struct, "x": pa.int64()}), DELTA, "").to_pylist()
    [{'s': {'a': 1, 'b': None}, 'x': None}]
    """
    columns = []
    for name, kind in zip(agreed.names, agreed.types, strict=True):
        index = batch.schema.get_field_index(name)
        column = pa.nulls(batch.num_rows, kind) if index < 0 else batch.column(index)
        if pa.types.is_nested(kind) and column.type != kind:
            found = types.type(name, column.type)
            if wider(kind, found, "widen") == kind:  # so that no value can change
                column = tried(
                    column, name, str(kind), where, partial(pa.Array.cast, target_type=kind)
                )
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=agreed.names)
