"""Files as other programs write them: Parquet by pyarrow and DuckDB, CSV and JSON lines by hand."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from tests.spark.values.containers import (
    Unwritable,
    write_avro,
    write_documents,
    write_orc,
    write_whole,
)
from tests.spark.values.texts import Style, style_of, write_csv, write_jsonl, write_text

Format = Literal[
    "parquet", "parquet by DuckDB", "csv", "jsonl", "json", "orc", "avro", "text", "binary"
]
TEXTS: tuple[Format, ...] = ("csv", "jsonl", "json")
PLAIN: tuple[Format, ...] = ("text", "binary")
"""Those of a single column."""
FORMATS: tuple[Format, ...] = tuple(one for one in get_args(Format) if one not in PLAIN)


@dataclass
class Source:
    """Files with the rows of a table, and the options to read them with."""

    format: Format
    table: pa.Table
    files: list[Path] = field(default_factory=list)
    """One for each part of the table, in their order."""
    options: dict[str, Any] = field(default_factory=dict)


def write(
    folder: Path,
    table: pa.Table,
    parts: Sequence[pa.Table],
    kind: Format,
    chance: random.Random,
    *,
    needs_header: bool = True,
) -> Source:
    """Write the parts of the table, each with an order of columns of its own if a header tells it.

    Raises Unwritable.
    """
    folder.mkdir()
    source = Source(kind, table)
    may_be_int96 = not any(text in str(table.schema) for text in ("tz=", "[ns"))
    style = Style(
        stores_schema=chance.random() < 0.5, has_int96=may_be_int96 and chance.random() < 0.2
    )
    if kind in (*TEXTS, "text"):
        style = style_of(table, chance, needs_header)
        source.options = style.options(kind == "csv")
    if kind in ("json", *PLAIN):
        source.options |= {"format": kind}
    for number, part in enumerate(parts):
        order = list(range(part.num_columns))
        if style.has_header:
            chance.shuffle(order)
        source.files.append(
            WRITERS[kind](folder / f"part-{number}", part.select(order), chance, style)
        )
    return source


def _parquet(stem: Path, table: pa.Table, chance: random.Random, style: Style) -> Path:
    path = stem.with_suffix(".parquet")
    try:
        pq.write_table(
            table,
            path,
            compression=chance.choice(["none", "snappy", "zstd", "gzip", "lz4", "brotli"]),
            row_group_size=chance.choice([1, 2, 100]),
            use_dictionary=chance.random() < 0.5,
            data_page_version=chance.choice(["1.0", "2.0"]),
            write_statistics=chance.random() < 0.7,
            store_schema=style.stores_schema,
            use_deprecated_int96_timestamps=style.has_int96,
        )
    except pa.ArrowException as error:
        raise Unwritable(str(error)) from error
    return path


def _duckdb(stem: Path, table: pa.Table, chance: random.Random, _: Style) -> Path:
    if len({name.lower() for name in table.column_names}) < table.num_columns:
        raise Unwritable("DuckDB renames columns of the same name")
    if "fixed_size_binary" in str(table.schema):
        raise Unwritable("DuckDB takes those below a struct that is null for the next ones")
    path = stem.with_suffix(".parquet")
    compression = chance.choice(["uncompressed", "snappy", "zstd", "gzip", "lz4", "brotli"])
    with duckdb.connect() as connection:
        connection.register("part", table)
        try:
            connection.execute(f"copy part to '{path}' (format parquet, compression {compression})")
        except duckdb.Error as error:
            raise Unwritable(str(error)) from error
    return path


Writer = Callable[[Path, pa.Table, random.Random, Style], Path]
WRITERS: Mapping[Format, Writer] = {
    "parquet": _parquet,
    "parquet by DuckDB": _duckdb,
    "csv": write_csv,
    "jsonl": write_jsonl,
    "json": write_documents,
    "orc": write_orc,
    "avro": write_avro,
    "text": write_text,
    "binary": write_whole,
}
