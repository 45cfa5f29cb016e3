"""The task's side of an upsert into a table of files: rows staged with a mark of those that delete.

Decides that staged rows are of the table's types, but for what a row that deletes leaves out, and
that they are handed over in a form that a committer which adds files refuses. Runs in a task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from epochgate.runtime import OperatorContext
from epochgate.runtime.objects.client import ObjectStore, open_url
from epochgate.spark.parquet_sink.committable import Committable
from epochgate.spark.parquet_sink.staging import Split, StagingWriter
from epochgate.spark.tables.merge import DELETED, Merge
from epochgate.spark.tables.types import conformed
from epochgate.spark.tables.writer import TableSinkWriter
from epochgate.spark.values.errors import ValueMissing
from epochgate.spark.values.formats import TableTypes

_TO_MERGE: Final = "merge"
_MARK: Final = pa.field(DELETED, pa.bool_())


class MergingWriter(TableSinkWriter):
    """Stages batches whose rows are to be merged; whichever partition they are of."""

    def __init__(
        self,
        types: TableTypes,
        context: OperatorContext,
        file_bytes: int,
        merge: Merge,
        *,
        transforms: bool = False,
        open_objects: Callable[[str], ObjectStore] = open_url,
    ) -> None:
        super().__init__(
            types, context, file_bytes, transforms=transforms, open_objects=open_objects
        )
        self._merge = merge

    def may_write(self, batch: pa.RecordBatch) -> bool:
        """As of a `TableSinkWriter`. Raises ColumnOfMergeMissing and KeyUnusable before a table is
        asked for.
        """
        self._merge.accepts(batch.schema, self._where)
        return super().may_write(batch)

    def _begin(self, table: str, schema: pa.Schema, split: Split | None) -> StagingWriter:
        self._merge.require_comparable(schema, self._where)
        # Of Iceberg, the transforms of columns are told, whose values are in no names.
        self._of_partitions = [one for one in self._partition_by if one in schema.names]
        self._partition_by = []
        return super()._begin(table, schema.append(_MARK), None)

    def write(self, batch: pa.RecordBatch) -> None:
        """Stage one batch; in addition KeyMissing ends the job."""
        assert self._staging is not None, "may_write says when there is a schema"
        assert self._agreed is not None, "it comes with the first event"
        marked = self._merge.marked(batch, self._agreed.names, self._where)
        deleted = marked.column(DELETED)
        rows = marked.select(marked.schema.names[:-1])
        may_lack = pa.schema([field.with_nullable(True) for field in self._agreed])
        rows = conformed(rows, may_lack, self._where, self._of_partitions)
        for field, column in zip(self._agreed, rows.columns, strict=True):
            lacking = pc.and_not(column.is_null(), deleted)
            if not field.nullable and pc.any(lacking).as_py():
                raise ValueMissing(field.name, pc.index(lacking, True).as_py(), self._where)
        schema = rows.schema.append(_MARK)
        self._staging.write(pa.RecordBatch.from_arrays([*rows.columns, deleted], schema=schema))

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        """Finish the files."""
        return [[_TO_MERGE, one] for one in super().prepare_commit(checkpoint_id)]


def to_be_merged(value: Sequence[Any]) -> Committable:
    """The file of a committable of `MergingWriter`; ValueError for one that is to be added."""
    kind, *rest = value
    if kind != _TO_MERGE:
        raise ValueError(
            "its rows were staged to be added, by a start without --merge-on (merge_on in Python); "
            "start once more as then, until the job has ended"
        )
    return Committable.from_list(*rest)
