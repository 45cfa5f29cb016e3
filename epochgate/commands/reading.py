"""The options of `epochgate ingest` on how files are read, and what happens to what is bad."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

FORMATS = ("parquet", "orc", "avro", "csv", "jsonl", "json", "xml", "excel", "text", "binary")


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Declare how files are read."""
    group = parser.add_argument_group("how files are read")
    add = group.add_argument
    _add_columns(add)
    add(
        "--delimiter",
        default=",",
        metavar="CHAR",
        help="between the fields of CSV files, such as ';' or the word tab (default: ',')",
    )
    add(
        "--quote",
        default='"',
        metavar="CHAR",
        help="around fields of CSV files; '' if none are quoted (default: '\"')",
    )
    add(
        "--escape",
        default="",
        metavar="CHAR",
        help="before a quote within quotes of CSV files, such as '\\' (default: none; a quote is "
        "doubled)",
    )
    add("--no-header", action="store_true", help="CSV files and sheets have no header")
    add(
        "--null",
        action="append",
        metavar="TEXT",
        help="a CSV field with this text is null; may be given several times (default: an empty "
        "field, NA, null and the like, except in text columns)",
    )
    add("--row-tag", default="", metavar="NAME", help="the element of XML files that is a row")
    add(
        "--sheet",
        default="",
        metavar="NAME",
        help="the sheet of a workbook, by its name or its number from 1 (default: the first)",
    )
    add(
        "--encoding",
        default="utf-8",
        metavar="NAME",
        help="of CSV and JSON lines files, such as latin-1 or cp1252 (default: utf-8)",
    )
    add(
        "--on-bad-row",
        choices=("fail", "reject", "rescue"),
        default="fail",
        help="fail: a bad row makes its file bad; reject: write it to the table TARGET.rejected, "
        "and read the rest of the file; rescue: put values that do not fit into the column "
        "_rescued, and reject what is no row (default: fail)",
    )
    add(
        "--on-bad-file",
        choices=("fail", "skip"),
        default="fail",
        help="fail: end the job at a file that cannot be read; skip: record it in "
        "TARGET.bad-files.jsonl and continue (default: fail)",
    )


def _add_columns(add: Callable[..., Any]) -> None:
    add("--format", choices=FORMATS, help="of the files (default: by their extension)")
    add(
        "--schema",
        metavar="DDL",
        help="columns and types as in Spark, such as 'id BIGINT NOT NULL, price DECIMAL(10,2)' "
        "(default: inferred from a sample of the files)",
    )
    add(
        "--schema-hints",
        metavar="DDL",
        help="types of some columns, such as 'amount DECIMAL(10,2), at TIMESTAMP'; those of the "
        "others are inferred",
    )
    add(
        "--schema-evolution",
        choices=("none", "add", "widen"),
        default="none",
        help="none: refuse files with other columns; add: add new columns, and read missing ones "
        "as null; widen: also widen types, such as INT to BIGINT (default: none)",
    )
    add("--columns", metavar="A,B,...", help="read these columns only")
    add(
        "--add-column",
        action="append",
        default=[],
        metavar="[NAME=]FACT",
        help="add a column that says where each row comes from, such as source_file=file.path; "
        "facts: file.path, file.name, file.size, file.modified, file.row; may be given several "
        "times",
    )


def reading_from(arguments: argparse.Namespace) -> dict[str, Any]:
    """Those options as `IngestOptions` takes them."""
    from epochgate.spark.files.dialect import delimiter_named

    columns = arguments.columns
    return {
        "format": arguments.format,
        "schema": arguments.schema,
        "schema_hints": arguments.schema_hints,
        "schema_evolution": arguments.schema_evolution,
        "columns": None if columns is None else tuple(one.strip() for one in columns.split(",")),
        "add_columns": tuple(arguments.add_column),
        "delimiter": delimiter_named(arguments.delimiter),
        "quote": arguments.quote,
        "escape": arguments.escape,
        "header": not arguments.no_header,
        "null": None if arguments.null is None else tuple(arguments.null),
        "row_tag": arguments.row_tag,
        "sheet": arguments.sheet,
        "encoding": arguments.encoding,
        "on_bad_row": arguments.on_bad_row,
        "on_bad_file": arguments.on_bad_file,
    }
