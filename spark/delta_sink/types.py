"""Which Arrow types a Delta table has, and batches made to fit them.

Decides the conversions that lose nothing: whole numbers without a sign become wider ones with it,
times of day and durations are refused. Runs in the task; imports nothing of Delta.
"""

from __future__ import annotations

import pyarrow as pa

from epochgate.spark.delta_sink.errors import TypeNotInDelta, ValueDoesNotFit, ValueMissing
from epochgate.spark.files.layout import describe
from epochgate.spark.parquet_sink.errors import OutputSchemaChanged

_SAME = (
    pa.types.is_boolean,
    pa.types.is_signed_integer,
    pa.types.is_float32,
    pa.types.is_float64,
    pa.types.is_date32,
    pa.types.is_decimal128,
    pa.types.is_string,
    pa.types.is_binary,
)
_OTHER = (
    (pa.types.is_null, pa.string()),
    (pa.types.is_uint8, pa.int16()),
    (pa.types.is_uint16, pa.int32()),
    (pa.types.is_uint32, pa.int64()),
    (pa.types.is_uint64, pa.decimal128(20, 0)),
    (pa.types.is_float16, pa.float32()),
    (pa.types.is_date64, pa.date32()),
    (pa.types.is_large_string, pa.string()),
    (pa.types.is_string_view, pa.string()),
    (pa.types.is_large_binary, pa.binary()),
    (pa.types.is_binary_view, pa.binary()),
    (pa.types.is_fixed_size_binary, pa.binary()),
)


def delta_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of a Delta table for such batches, in which every value may be missing.

    Raises TypeNotInDelta.

    >>> delta_schema(pa.schema([("n", pa.uint8()), ("at", pa.timestamp("ns"))])).types
    [DataType(int16), TimestampType(timestamp[us])]
    """
    return pa.schema([pa.field(field.name, delta_type(field.name, field.type)) for field in schema])


def delta_type(name: str, kind: pa.DataType) -> pa.DataType:
    """The type of a Delta column, `name`, for such values. Raises TypeNotInDelta."""
    if any(is_it(kind) for is_it in _SAME):
        return kind
    for is_it, other in _OTHER:
        if is_it(kind):
            return other
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    return _of_others(name, kind)


def _of_others(name: str, kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return delta_type(name, kind.value_type)
    if pa.types.is_map(kind):
        return pa.map_(delta_type(name, kind.key_type), delta_type(name, kind.item_type))
    if pa.types.is_struct(kind):
        fields = [kind.field(number) for number in range(kind.num_fields)]
        return pa.struct([pa.field(f.name, delta_type(f"{name}.{f.name}", f.type)) for f in fields])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(pa.field("element", delta_type(name, kind.value_type)))
    raise TypeNotInDelta(name, str(kind))


def conformed(batch: pa.RecordBatch, agreed: pa.Schema, where: str) -> pa.RecordBatch:
    """`batch` with the table's types.

    Raises OutputSchemaChanged for other columns, ValueMissing, and ValueDoesNotFit for values that
    the table's type does not hold.
    """
    if batch.schema.names != agreed.names:
        raise OutputSchemaChanged(describe(agreed), describe(batch.schema), where)
    columns = []
    for field, column in zip(agreed, batch.columns, strict=True):
        if column.null_count and not field.nullable:
            raise ValueMissing(field.name, where)
        try:
            columns.append(column.cast(field.type))
        except pa.ArrowException as error:
            raise ValueDoesNotFit(field.name, str(field.type), str(error), where) from error
    bare = pa.schema([pa.field(field.name, field.type) for field in agreed])
    return pa.RecordBatch.from_arrays(columns, schema=bare)
