"""Files as other programs write them: Parquet by pyarrow and DuckDB, CSV and JSON lines by hand."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

Format = Literal["parquet", "parquet by DuckDB", "csv", "jsonl"]
FORMATS: tuple[Format, ...] = ("parquet", "parquet by DuckDB", "csv", "jsonl")
NULL = "\\N"
"""An unquoted field of a CSV file that is null."""


class Unwritable(Exception):
    """The writer itself refuses the table."""


@dataclass
class Source:
    """Files with the rows of a table, and the options to read them with."""

    format: Format
    table: pa.Table
    files: list[Path] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)


def write(folder: Path, table: pa.Table, kind: Format, seed: int, parts: int) -> Source:
    """Write the rows into `parts` files, each with an order of columns of its own.

    Raises Unwritable.
    """
    folder.mkdir()
    chance, source = random.Random(seed), Source(kind, table)
    for number in range(parts):
        begin, end = (table.num_rows * n // parts for n in (number, number + 1))
        order = chance.sample(table.column_names, table.num_columns)
        part = table.slice(begin, end - begin).select(order)
        source.files.append(WRITERS[kind](folder / f"part-{number}", part, chance, source.options))
    return source


def _parquet(stem: Path, table: pa.Table, chance: random.Random, options: dict[str, Any]) -> Path:
    path = stem.with_suffix(".parquet")
    may_be_int96 = not any(text in str(table.schema) for text in ("tz=", "[ns"))
    try:
        pq.write_table(
            table,
            path,
            compression=chance.choice(["none", "snappy", "zstd", "gzip", "lz4", "brotli"]),
            row_group_size=chance.choice([1, 2, 100]),
            use_dictionary=chance.random() < 0.5,
            data_page_version=chance.choice(["1.0", "2.0"]),
            write_statistics=chance.random() < 0.7,
            store_schema=chance.random() < 0.5,
            use_deprecated_int96_timestamps=may_be_int96 and chance.random() < 0.2,
        )
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise Unwritable(str(error)) from error
    return path


def _duckdb(stem: Path, table: pa.Table, chance: random.Random, options: dict[str, Any]) -> Path:
    path = stem.with_suffix(".parquet")
    compression = chance.choice(["uncompressed", "snappy", "zstd", "gzip"])
    with duckdb.connect() as connection:
        connection.register("part", table)
        try:
            connection.execute(f"copy part to '{path}' (format parquet, compression {compression})")
        except duckdb.Error as error:
            raise Unwritable(str(error)) from error
    return path


def _csv(stem: Path, table: pa.Table, chance: random.Random, options: dict[str, Any]) -> Path:
    delimiter = options.setdefault("delimiter", chance.choice([",", ";", "\t", "|"]))
    options["null"] = (NULL,)
    end = chance.choice(["\n", "\r\n"])
    needs = (delimiter, '"', "\n", "\r")

    def quoted(text: str) -> str:
        return '"' + text.replace('"', '""') + '"'

    def plain(text: str) -> str:
        must = any(one in text for one in needs) or text == NULL or text.startswith("\ufeff")
        return quoted(text) if must or chance.random() < 0.3 else text

    lines = [delimiter.join(quoted(name) for name in table.column_names)]
    for row in _texts(table):
        fields = [NULL if text is None else plain(text) for text in row.values()]
        lines.append(delimiter.join(fields))
    return _written(stem.with_suffix(".csv"), end.join(lines) + end, chance)


def _jsonl(stem: Path, table: pa.Table, chance: random.Random, options: dict[str, Any]) -> Path:
    ascii_only, end = chance.random() < 0.5, chance.choice(["\n", "\r\n"])
    lines = []
    for number, row in enumerate(_texts(table)):
        values = []
        for name, text in row.items():
            kind, told = table.schema.field(name).type, text
            if text is None:
                if chance.random() < 0.5:
                    continue
                told = "null"
            elif not _is_bare(kind):
                told = json.dumps(text, ensure_ascii=ascii_only)
            elif not pa.types.is_primitive(kind) and not pa.types.is_decimal(kind):
                told = json.dumps(table[name][number].as_py(), ensure_ascii=ascii_only)
            values.append(f"{json.dumps(name, ensure_ascii=ascii_only)}: {told}")
        lines.append("{" + ", ".join(values) + "}")
    return _written(stem.with_suffix(".jsonl"), end.join(lines) + end, chance)


def _is_bare(kind: pa.DataType) -> bool:
    """Whether JSON writes it without quotes."""
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return bool(is_number or kind == pa.bool_() or pa.types.is_nested(kind))


def _texts(table: pa.Table) -> list[dict[str, str | None]]:
    """Each value as a person would write it."""
    columns = {
        name: [None if not one.is_valid else text_of(one) for one in table[name]]
        for name in table.column_names
    }
    return [
        {name: column[number] for name, column in columns.items()}
        for number in range(table.num_rows)
    ]


def text_of(scalar: pa.Scalar) -> str:
    """A value in digits and letters, all of them."""
    kind = scalar.type
    if pa.types.is_boolean(kind):
        return "true" if scalar.as_py() else "false"
    if pa.types.is_decimal(kind):
        return f"{scalar.as_py():f}"
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return str(scalar.as_py().isoformat()).replace("+00:00", "Z")
    return str(scalar.as_py()) if kind == pa.string() else _number(scalar.as_py())


def _number(value: Any) -> str:
    return f"{value:f}" if isinstance(value, Decimal) else repr(value)


def _written(path: Path, text: str, chance: random.Random) -> Path:
    if chance.random() < 0.2:
        packed = path.with_name(f"{path.name}.gz")
        packed.write_bytes(gzip.compress(text.encode()))
        return packed
    path.write_bytes(text.encode())
    return path


Writer = Callable[[Path, pa.Table, random.Random, dict[str, Any]], Path]
WRITERS: Mapping[Format, Writer] = {
    "parquet": _parquet,
    "parquet by DuckDB": _duckdb,
    "csv": _csv,
    "jsonl": _jsonl,
}
