"""ORC, Avro and JSON documents, as other programs write them, and compressed texts."""

from __future__ import annotations

import bz2
import gzip
import io
import random
import zipfile
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import zstandard
from pyarrow import orc

from tests.spark.values.texts import BYTE_ORDER_MARK, Style, write_jsonl


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
    path = stem.with_suffix(".avro")
    fields = [
        {"name": field.name, "type": ["null", _avro_type(field.type)]} for field in table.schema
    ]
    schema = {"type": "record", "name": "row", "fields": fields}
    columns = [_plain(column.combine_chunks()) for column in table.columns]
    rows = [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]
    codec = chance.choice(["null", "deflate", "bzip2", "xz"])
    try:
        with path.open("wb") as file:
            fastavro.writer(file, schema, rows, codec=codec, sync_interval=chance.choice([1, 999]))
    except (ValueError, TypeError, fastavro.schema.SchemaParseException) as error:
        raise Unwritable(str(error)) from error
    return path


def _avro_type(kind: pa.DataType) -> Any:
    if pa.types.is_decimal(kind):
        sizes = {"precision": kind.precision, "scale": kind.scale}
        return {"type": "bytes", "logicalType": "decimal", **sizes}
    if pa.types.is_list(kind):
        return {"type": "array", "items": ["null", _avro_type(kind.value_type)]}
    if kind not in AVRO:
        raise Unwritable(f"{kind} has no type of Avro here")
    return AVRO[kind]


def _plain(array: pa.Array) -> list[Any]:
    """Numbers for dates and times."""
    if pa.types.is_date32(array.type):
        return list(array.cast(pa.int32()).to_pylist())
    if pa.types.is_timestamp(array.type):
        return list(array.cast(pa.int64()).to_pylist())
    if pa.types.is_list(array.type) and not pa.types.is_decimal(array.type.value_type):
        return [None if not one.is_valid else _plain(one.values) for one in array]
    return list(array.to_pylist())


def write_documents(stem: Path, table: pa.Table, chance: random.Random, style: Style) -> Path:
    """The objects of JSON lines as an array, or one after the other, and compressed."""
    lines_path = write_jsonl(stem, table, chance, style)
    data = lines_path.read_bytes()
    lines_path.unlink()
    if lines_path.suffix == ".gz":
        data = gzip.decompress(data)
    text = data.decode(style.encoding).removeprefix(BYTE_ORDER_MARK)
    lines = [line for line in text.replace("\r\n", "\n").split("\n") if line]
    text = "[" + chance.choice([",", " ,\r\n"]).join(lines) + "\n]"
    if chance.random() < 0.3:
        text = "\n".join(lines)
    path, data = stem.with_suffix(".json"), text.encode(style.encoding)
    ending = chance.choice(["", "", ".bz2", ".zst", ".lz4", ".zip"])
    path = path.with_name(path.name + ending)
    path.write_bytes(_compressed(data, ending))
    return path


def _compressed(data: bytes, ending: str) -> bytes:
    packed = io.BytesIO()
    if ending == ".bz2":
        return bz2.compress(data)
    if ending == ".zst":
        return zstandard.compress(data)
    if ending == ".lz4":
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, "lz4") as file:
            file.write(data)
        return bytes(sink.getvalue())
    if ending == ".zip":
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("inner.json", data)
        return packed.getvalue()
    return data
