"""Batches made to fit the columns of a table. Runs in the task; imports nothing of any format."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from epochgate.spark.files.layout import describe
from epochgate.spark.parquet_sink.errors import OutputSchemaChanged
from epochgate.spark.parquet_sink.partitions import require_told
from epochgate.spark.values.errors import ValueMissing
from epochgate.spark.values.fitting import fit, require_length, tried, values_in

OF_SPARK: Final = b"__CHAR_VARCHAR_TYPE_STRING"
"""Under which Spark keeps the type of a column that was declared with a length of its texts."""
LIMIT: Final = re.compile(r"(?P<kind>(var)?char)\((?P<length>[0-9]+)\)")


def conformed(
    batch: pa.RecordBatch, agreed: pa.Schema, where: str, partition_by: Collection[str] = ()
) -> pa.RecordBatch:
    """`batch` with the types of the table, which is partitioned by these columns.

    Raises OutputSchemaChanged for other columns, ValueMissing, ColumnNeverFits for a type and
    ValueDoesNotFit for a value that the table's type does not hold.
    """
    if batch.schema.names != agreed.names:
        raise OutputSchemaChanged(describe(agreed), describe(batch.schema), where)
    columns = []
    for field, column in zip(agreed, batch.columns, strict=True):
        if column.null_count and not field.nullable:
            raise ValueMissing(field.name, pc.index(column.is_null(), True).as_py(), where)
        made = fit(column, field.name, field.type, where)
        if has_required(field.type):
            made = tried(made, field.name, str(field.type), where, _whole)
        if limit := LIMIT.fullmatch((field.metadata or {}).get(OF_SPARK, b"").decode()):
            made = tried(made, field.name, limit[0], where, partial(_limited, limit=limit))
        columns.append(made)
    fitting = pa.RecordBatch.from_arrays(columns, schema=bare(agreed))
    require_told(fitting, partition_by, where)
    return fitting


def has_required(kind: pa.DataType) -> bool:
    """Return whether something within the values of a type is required."""
    return any(not one.nullable or has_required(one.type) for one in _fields(kind))


def _fields(kind: pa.DataType) -> list[pa.Field]:
    """The fields of what is within; not the keys of maps, which are required in every table."""
    if pa.types.is_map(kind):
        return [kind.item_field]
    return [kind.field(number) for number in range(kind.num_fields)]


def _whole(column: pa.Array) -> pa.Array:
    """The column. Raises pa.ArrowInvalid where something within it is required and missing."""
    fields = _fields(column.type)
    parts = values_in(column.drop_null())[-len(fields) :] if fields else []
    for field, part in zip(fields, parts, strict=True):
        if part.null_count and not field.nullable:
            raise pa.ArrowInvalid(f"{field.name!r} within it is required, and missing")
        _whole(part)
    return column


def hindrance_of_growth(schema: pa.Schema) -> tuple[str, str] | None:
    """Return why the columns of a table with this schema cannot grow, and the way on; None if they
    can.
    """
    for field in schema:
        if has_required(field.type):
            found = f"a field within {field.name!r} is required, and columns are to grow"
            return found, "Leave --schema-evolution (schema_evolution in Python) out."
    return None


def _limited(texts: pa.Array, limit: re.Match[str]) -> pa.Array:
    require_length(texts, int(limit["length"]), is_filled_up=limit["kind"] == "char")
    return texts


def bare(schema: pa.Schema) -> pa.Schema:
    """The names and types alone."""
    return pa.schema([pa.field(field.name, field.type) for field in schema])
