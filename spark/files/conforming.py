"""Batches as they were read of a file, made into the columns of the source: by name, in one order,
of one type each.

Decides: a column that the file lacks has no values; one of a narrower type is widened without loss;
one that a directory's name holds is the same in every row; new fields come last. Runs in a task.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa

from epochgate.spark.files.evolution import wider
from epochgate.spark.files.layout import describe
from epochgate.spark.files.partitions import partition_value
from epochgate.spark.files.split import SourceLayout


class Conformer:
    """Makes batches of one file, at `path`, have the columns of the layout."""

    def __init__(self, layout: SourceLayout, path: str) -> None:
        self._layout, self._schema = layout, layout.output_schema
        self._constant = {field.name: partition_value(path, field) for field in layout.partitions}
        self._required = [field.name for field in self._schema if not field.nullable]

    def conform(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with exactly the source's columns, order and types, and new fields behind.

        Raises ValueError for a type that cannot be widened without loss.
        """
        columns = [self._column(batch, field) for field in self._schema]
        fields = [
            # Types that only name what is inside of a map or a list in another way are equal.
            field if column.type == field.type else field.with_type(column.type)
            for field, column in zip(self._schema, columns, strict=True)
        ]
        if self._layout.takes_new_fields and self._layout.projection is None:
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
