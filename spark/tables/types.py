"""Which Arrow types a format's tables have, and batches made to fit them.

Decides the conversions that lose nothing, as far as formats agree on them: what a format has of its
own stands with its sink. Runs in the task; imports nothing of any format.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from epochgate.spark.files.column_names import NameTwice, same_name
from epochgate.spark.files.layout import describe
from epochgate.spark.parquet_sink.errors import OutputSchemaChanged
from epochgate.spark.tables.errors import TypeNotInTable, ValueDoesNotFit, ValueMissing
from epochgate.spark.tables.fitting import IsKind, fitted, may_hold

_SAME: tuple[IsKind, ...] = (
    pa.types.is_boolean,
    pa.types.is_int32,
    pa.types.is_int64,
    pa.types.is_float32,
    pa.types.is_float64,
    pa.types.is_date32,
    pa.types.is_decimal128,
    pa.types.is_string,
    pa.types.is_binary,
)
_OTHER: tuple[tuple[IsKind, pa.DataType], ...] = (
    (pa.types.is_null, pa.string()),
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


@dataclass(frozen=True)
class TableTypes:
    """The types of a format, by its name: `same` are its own, `other` become one of these.
    `tells_capitals`: whether names that differ in capitals alone are two columns.
    """

    format: str
    same: tuple[IsKind, ...] = ()
    other: tuple[tuple[IsKind, pa.DataType], ...] = ()
    tells_capitals: bool = True

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """The schema of a table for such batches, in which every value may be missing.

        Raises TypeNotInTable or NameTwice.
        """
        self._require_apart(schema.names)
        return pa.schema([pa.field(one.name, self.type(one.name, one.type)) for one in schema])

    def type(self, name: str, kind: pa.DataType) -> pa.DataType:
        """The type of a column, `name`, for such values. Raises TypeNotInTable."""
        if any(is_it(kind) for is_it in (*_SAME, *self.same)):
            return kind
        for is_it, other in (*self.other, *_OTHER):
            if is_it(kind):
                return other
        if pa.types.is_timestamp(kind):
            return pa.timestamp("us", None if kind.tz is None else "UTC")
        return self._of_others(name, kind)

    def _of_others(self, name: str, kind: pa.DataType) -> pa.DataType:
        if pa.types.is_dictionary(kind):
            return self.type(name, kind.value_type)
        if pa.types.is_map(kind):
            return pa.map_(self.type(name, kind.key_type), self.type(name, kind.item_type))
        if pa.types.is_struct(kind):
            fields = [kind.field(number) for number in range(kind.num_fields)]
            self._require_apart([f"{name}.{field.name}" for field in fields])
            inner = [pa.field(f.name, self.type(f"{name}.{f.name}", f.type)) for f in fields]
            return pa.struct(inner)
        if (
            pa.types.is_list(kind)
            or pa.types.is_large_list(kind)
            or pa.types.is_fixed_size_list(kind)
        ):
            return pa.list_(pa.field("element", self.type(name, kind.value_type)))
        raise TypeNotInTable(self.format, name, str(kind))

    def _require_apart(self, names: list[str]) -> None:
        if both := same_name(names, tells_capitals=self.tells_capitals):
            raise NameTwice(self.format, *both)


def conformed(batch: pa.RecordBatch, agreed: pa.Schema, where: str) -> pa.RecordBatch:
    """`batch` with the table's types.

    Raises OutputSchemaChanged for other columns, ValueMissing, and ValueDoesNotFit for a type or a
    value that the table's type does not hold.
    """
    if batch.schema.names != agreed.names:
        raise OutputSchemaChanged(describe(agreed), describe(batch.schema), where)
    columns = []
    for field, column in zip(agreed, batch.columns, strict=True):
        if column.null_count and not field.nullable:
            raise ValueMissing(field.name, where)
        kind = str(field.type)
        if not may_hold(field.type, column.type):
            found = f"it is {column.type}, and would be converted"
            raise ValueDoesNotFit(field.name, kind, found, where)
        try:
            columns.append(fitted(column, field.type))
        except pa.ArrowException as error:
            raise ValueDoesNotFit(field.name, kind, str(error), where) from error
    return pa.RecordBatch.from_arrays(columns, schema=bare(agreed))


def bare(schema: pa.Schema) -> pa.Schema:
    """The names and types alone."""
    return pa.schema([pa.field(field.name, field.type) for field in schema])
