"""Batches as they were read of a file, made into the columns of the source: by name, in one order,
of one type each.

Decides: a column that the file lacks has no values; one of a narrower type is widened without loss;
one that a directory's name holds is the same in every row; what says where a row comes from is
added; new fields come last. Runs in a task.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa

from epochgate.spark.files.evolution import wider
from epochgate.spark.files.layout import describe
from epochgate.spark.files.partitions import partition_value
from epochgate.spark.files.source_columns import (
    Facts,
    SourceColumnInFile,
    require_apart,
    schema_of,
)
from epochgate.spark.files.split import FileSplit, SourceLayout


class Conformer:
    """Makes batches of one split have the columns of the layout."""

    def __init__(self, layout: SourceLayout, split: FileSplit) -> None:
        self._layout, self._schema, self._path = layout, layout.own_schema, split.path
        self._constant = {
            field.name: partition_value(split.path, field) for field in layout.partitions
        }
        self._required = [field.name for field in self._schema if not field.nullable]
        self._facts = Facts(layout.added, split) if layout.added else None
        self._added = list(schema_of(layout.added))

    def conform(self, batch: pa.RecordBatch, first_row: int) -> pa.RecordBatch:
        """The batch with exactly the source's columns, order and types, and new fields behind.
        `first_row`: the number of its first row in the file, from 1; counts if it is asked for.

        Raises ValueError for a type that cannot be widened without loss, and for a new field of an
        added column's name.
        """
        columns = [self._column(batch, field) for field in self._schema]
        fields = [
            # Types that only name what is inside of a map or a list in another way are equal.
            field if column.type == field.type else field.with_type(column.type)
            for field, column in zip(self._schema, columns, strict=True)
        ]
        if self._facts is not None:
            fields += self._added
            columns += self._facts.columns(first_row, batch.num_rows)
        if self._layout.takes_new_fields and self._layout.projection is None:
            try:
                require_apart(self._path, self._layout.added, batch.schema.names)
            except SourceColumnInFile as error:
                raise ValueError(str(error)) from error
            for field in batch.schema:
                if field.name not in self._schema.names and not pa.types.is_null(field.type):
                    fields.append(field)
                    columns.append(batch.column(field.name))
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))

    def runs(self, batch: pa.RecordBatch) -> Iterator[tuple[int, int, str | None]]:
        """Rows from the first to before the second number that have all the values they need; and
        each row that lacks one, with the column.
        """
        lacking: dict[int, str] = {}
        for name in self._required:
            column = batch.column(name)
            if column.null_count:
                for row in column.is_null().to_numpy(zero_copy_only=False).nonzero()[0].tolist():
                    lacking.setdefault(row, name)
        first = 0
        for row, name in sorted(lacking.items()):
            if row > first:
                yield first, row, None
            yield row, row + 1, name
            first = row + 1
        if first < batch.num_rows:
            yield first, batch.num_rows, None

    def _column(self, batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
        if field.name in self._constant:
            return pa.repeat(self._constant[field.name], batch.num_rows)
        index = batch.schema.get_field_index(field.name)
        if index < 0:
            return pa.nulls(batch.num_rows, field.type)
        column, kind = batch.column(index), field.type
        if column.type == kind:
            return column
        if self._layout.takes_new_fields:
            # A struct may have new fields, too.
            kind = wider(kind, column.type, "add") or kind
        try:
            return column.cast(kind)
        except pa.ArrowException as error:
            raise ValueError(
                f"expected {describe(self._schema)}, found {describe(batch.schema)}: {error}"
            ) from error


def row_as_json(batch: pa.RecordBatch, row: int) -> str:
    """A row of a file that is no text, for a person and for a script."""
    return json.dumps(batch.slice(row, 1).to_pylist()[0], default=str, ensure_ascii=False)
