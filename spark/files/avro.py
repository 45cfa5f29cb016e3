"""Avro files as columns: types from the writer's schema, and values of them from its records.

Decides which Arrow type an Avro type is, and which are refused by name: a union of several types
has no column. A uuid is its canonical text. fastavro (`epochgate[avro]`) reads the records. Runs in
a task, and on the driver for the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, BinaryIO, Final
from uuid import UUID

import pyarrow as pa

from epochgate.errors import UsageError
from epochgate.spark.files.parquet_values import BATCH_BYTES

_PLAIN: Final = MappingProxyType(
    {
        "null": pa.null(),
        "boolean": pa.bool_(),
        "int": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "bytes": pa.binary(),
        "string": pa.string(),
        "enum": pa.string(),
    }
)
_TIMES: Final = MappingProxyType(
    {
        ("int", "date"): pa.date32(),
        ("int", "time-millis"): pa.time32("ms"),
        ("long", "time-micros"): pa.time64("us"),
        ("long", "timestamp-millis"): pa.timestamp("ms", tz="UTC"),
        ("long", "timestamp-micros"): pa.timestamp("us", tz="UTC"),
        ("long", "timestamp-nanos"): pa.timestamp("ns", tz="UTC"),
        ("long", "local-timestamp-millis"): pa.timestamp("ms"),
        ("long", "local-timestamp-micros"): pa.timestamp("us"),
        ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
    }
)
_DIGITS_MAX: Final = 38


class AvroMissing(UsageError):
    """The package that reads Avro is not installed."""

    def __str__(self) -> str:
        return "Avro files need the package fastavro: `pip install epochgate[avro]`"


class AvroChunks:
    """The records of one file, as one chunk."""

    unit, count = "file", 1

    def __init__(self, file: BinaryIO) -> None:
        try:
            import fastavro
        except ImportError as error:
            raise AvroMissing from error
        self._file = file
        try:
            written = fastavro.reader(file).writer_schema
        except (TypeError, KeyError, IndexError, fastavro.schema.SchemaParseException) as error:
            raise ValueError(
                f"it has no header of Avro: {type(error).__name__}: {error}"
            ) from error
        kind = _Types().of(written)
        if not pa.types.is_struct(kind):
            raise ValueError(f"an Avro file of records is read, and this one has values of {kind}")
        if not kind.num_fields:
            raise ValueError("its records have no field, so that no row could be told of them")
        self.schema = pa.schema(list(kind))

    def rows_before(self, chunk: int) -> None:
        """None is told."""

    def rows_in(self, chunk: int) -> None:
        """None is told."""

    def batches(
        self, chunk: int, columns: Sequence[str], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """In the order of the file, fewer rows to a batch where they are long. Raises ValueError,
        and what fastavro raises.
        """
        import fastavro

        self._file.seek(0)
        # A batch without a column has no rows.
        names = list(columns) or self.schema.names[:1]
        schema = pa.schema([self.schema.field(name) for name in names])
        makers = [_maker(field.type) for field in schema]
        try:
            rows: list[Any] = []
            for block in fastavro.block_reader(self._file):
                content = block.bytes_.getbuffer()  # type: ignore[attr-defined]  # not in its stub
                mean = max(1, content.nbytes // max(1, block.num_records))
                content.release()
                at_once = min(batch_rows, max(1, BATCH_BYTES // mean))
                for row in block:
                    rows.append(row)
                    if len(rows) >= at_once:
                        yield _batch(rows, schema, makers).select(list(columns))
                        rows = []
            if rows:
                yield _batch(rows, schema, makers).select(list(columns))
        except (TypeError, IndexError, KeyError, OverflowError, ArithmeticError) as error:
            raise ValueError(f"a record cannot be read: {type(error).__name__}: {error}") from error

    def close(self) -> None:
        self._file.close()


def _batch(
    rows: Sequence[Mapping[str, Any]], schema: pa.Schema, makers: Sequence[Callable[[Any], Any]]
) -> pa.RecordBatch:
    arrays = [
        pa.array([maker(row[field.name]) for row in rows], field.type)
        for field, maker in zip(schema, makers, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


class _Types:
    """The types of one schema, in which a name stands for the type that it was given to."""

    def __init__(self) -> None:
        self._named: dict[str, pa.DataType | None] = {}

    def of(self, schema: Any) -> pa.DataType:
        """Raises ValueError for what no column holds."""
        if isinstance(schema, list):
            kinds = [one for one in schema if one != "null"]
            if len(kinds) > 1:
                raise ValueError(f"a union of {len(kinds)} types, {kinds}, is no column's type")
            return self.of(kinds[0]) if kinds else pa.null()
        if isinstance(schema, str):
            if schema in _PLAIN:
                return _PLAIN[schema]
            if (known := self._named.get(schema)) is None:
                raise ValueError(f"the type {schema!r} is within itself, which no column is")
            return known
        kind, name = schema["type"], schema.get("name")
        if name is not None:
            self._named[name] = None
        found = self._complex(kind, schema)
        if name is not None:
            self._named[name] = found
        return found

    def _complex(self, kind: Any, schema: Mapping[str, Any]) -> pa.DataType:
        said = schema.get("logicalType")
        if kind in ("record", "error"):
            return pa.struct([(one["name"], self.of(one["type"])) for one in schema["fields"]])
        if kind == "array":
            return pa.list_(self.of(schema["items"]))
        if kind == "map":
            return pa.map_(pa.string(), self.of(schema["values"]))
        if said == "decimal" and kind in ("bytes", "fixed"):
            digits, scale = schema["precision"], schema.get("scale", 0)
            if digits > _DIGITS_MAX:
                raise ValueError(f"a decimal of {digits} digits; {_DIGITS_MAX} are the most")
            return pa.decimal128(digits, scale)
        if kind == "fixed":
            return pa.binary(schema["size"])
        return _TIMES.get((str(kind), str(said))) or self.of(kind)


def _maker(kind: pa.DataType) -> Callable[[Any], Any]:
    """Makes what Arrow takes of a value: pairs of a map, and the text of a uuid."""
    if pa.types.is_string(kind):
        return lambda value: str(value) if isinstance(value, UUID) else value
    if pa.types.is_map(kind):
        inner = _maker(kind.item_type)
        return lambda value: value and [(key, inner(one)) for key, one in value.items()]
    if pa.types.is_list(kind):
        item = _maker(kind.value_type)
        return lambda value: value and [item(one) for one in value]
    if not pa.types.is_struct(kind):
        return lambda value: value
    makers = {one.name: _maker(one.type) for one in kind}
    return lambda value: value and {name: make(value[name]) for name, make in makers.items()}
