"""ORC, Avro, JSON documents and whole files, as other programs write them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
from pyarrow import orc

from tests.spark.values.texts import PACKINGS, Style, jsonl_lines, packed


class Unwritable(Exception):
    """The writer itself refuses the table."""


AVRO: dict[pa.DataType, Any] = {
    pa.bool_(): "boolean",
    **dict.fromkeys((pa.int8(), pa.int16(), pa.int32()), "int"),
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.timestamp("us"): {"type": "long", "logicalType": "local-timestamp-micros"},
    pa.timestamp("ms"): {"type": "long", "logicalType": "local-timestamp-millis"},
    pa.timestamp("us", tz="UTC"): {"type": "long", "logicalType": "timestamp-micros"},
    pa.timestamp("ns"): {"type": "long", "logicalType": "local-timestamp-nanos"},
    pa.time32("ms"): {"type": "int", "logicalType": "time-millis"},
    pa.time64("us"): {"type": "long", "logicalType": "time-micros"},
}


def write_orc(stem: Path, table: pa.Table, chance: random.Random, _: Style) -> Path:
    """By Arrow, whose types are not all those of ORC. Its writer takes other values for those of a
    struct that is part of another table, so this part is made a table of its own.
    """
    path = stem.with_suffix(".orc")
    compression = chance.choice(["uncompressed", "zlib", "snappy", "zstd", "lz4"])
    table = table.take(pa.array(range(table.num_rows), pa.int64()))
    try:
        orc.write_table(table, path, compression=compression)
    except pa.ArrowException as error:
        raise Unwritable(str(error)) from error
    return path


def write_avro(stem: Path, table: pa.Table, chance: random.Random, _: Style) -> Path:
    """By fastavro, of the numbers that stand for dates and times."""
    path, numbers = stem.with_suffix(".avro"), itertools.count()
    fields = [
        {"name": field.name, "type": ["null", _avro_type(field.type, numbers)]}
        for field in table.schema
    ]
    schema = {"type": "record", "name": "row", "fields": fields}
    rows = [
        dict(zip(table.column_names, map(_plain, row), strict=True))
        for row in zip(*table.columns, strict=True)
    ]
    codec = chance.choice(["null", "deflate", "bzip2", "xz"])
    try:
        with path.open("wb") as file:
            fastavro.writer(file, schema, rows, codec=codec, sync_interval=chance.choice([1, 999]))
    except (ValueError, TypeError, fastavro.schema.SchemaParseException) as error:
        raise Unwritable(str(error)) from error
    return path


def _avro_type(kind: pa.DataType, numbers: Iterator[int]) -> Any:
    """Each type that has a name gets one of its own."""
    if pa.types.is_decimal(kind):
        sizes = {"precision": kind.precision, "scale": kind.scale}
        return {"type": "bytes", "logicalType": "decimal", **sizes}
    if pa.types.is_list(kind):
        return {"type": "array", "items": ["null", _avro_type(kind.value_type, numbers)]}
    if pa.types.is_map(kind):
        return {"type": "map", "values": ["null", _avro_type(kind.item_type, numbers)]}
    if pa.types.is_fixed_size_binary(kind):
        return {"type": "fixed", "name": f"fixed{next(numbers)}", "size": kind.byte_width}
    if pa.types.is_struct(kind):
        fields = [
            {"name": one.name, "type": ["null", _avro_type(one.type, numbers)]} for one in kind
        ]
        return {"type": "record", "name": f"record{next(numbers)}", "fields": fields}
    if kind not in AVRO:
        raise Unwritable(f"{kind} has no type of Avro here")
    return AVRO[kind]


def _plain(scalar: pa.Scalar) -> Any:
    """Numbers for dates and times."""
    kind = scalar.type
    if not scalar.is_valid:
        return None
    if pa.types.is_date32(kind) or pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return scalar.value
    if pa.types.is_list(kind):
        return list(map(_plain, scalar.values))
    if pa.types.is_map(kind):
        return {one["key"].as_py(): _plain(one["value"]) for one in scalar.values}
    if pa.types.is_struct(kind):
        return {name: _plain(scalar[name]) for name in scalar}
    return scalar.as_py()


def write_documents(stem: Path, table: pa.Table, chance: random.Random, style: Style) -> Path:
    """The objects of JSON lines as an array, or one after the other, and compressed."""
    lines = jsonl_lines(table, chance)
    text = "[" + chance.choice([",", " ,\r\n"]).join(lines) + "\n]"
    if chance.random() < 0.3:
        text = "\n".join(lines)
    ending = chance.choice(["", "", *PACKINGS])
    path = stem.with_suffix(f".json{ending}")
    path.write_bytes(packed(text.encode(style.encoding), ending))
    return path


def write_whole(stem: Path, table: pa.Table, chance: random.Random, _: Style) -> Path:
    """The bytes of the only value, in a file of any name."""
    path = stem.with_suffix(chance.choice(["", ".csv", ".parquet", ".gz", ".dat"]))
    path.write_bytes(table.column(0)[0].as_py())
    return path
