"""Makes the tables of types by target in docs/ingest.md of the rules with which sinks convert.

python -m tests.spark.values.page --write
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from epochgate.spark.values.errors import TypeNotInTable
from epochgate.spark.values.formats import FORMATS, TableTypes
from epochgate.spark.values.relations import ColumnType, verdict
from tests.spark.values.samples import RELATIONS, VALUES

PAGE = Path(__file__).parents[3] / "docs" / "ingest.md"
START, END = "<!-- types:start -->", "<!-- types:end -->"
NAMES = {
    pa.float16(): "float16",
    pa.decimal256(39, 0): "decimal of more than 38 digits",
    pa.binary(16): "fixed_size_binary[n]",
    pa.uuid(): "uuid",
    pa.timestamp("us", "UTC"): "timestamp[us, UTC]",
    pa.timestamp("us", "Europe/Berlin"): "timestamp[us, another zone]",
    pa.timestamp("ns", "UTC"): "timestamp[ns, UTC]",
    pa.month_day_nano_interval(): "interval",
    pa.dictionary(pa.int8(), pa.string()): "dictionary of strings",
    pa.list_(pa.int64()): "list of int64",
    pa.struct([("a", pa.int64())]): "struct of int64",
    pa.map_(pa.string(), pa.int64()): "map to int64",
    pa.struct([]): "struct without fields",
    pa.list_(pa.time64("us")): "list of time64[us]",
}

OTHER_FORMS = (
    pa.null(),
    pa.large_string(),
    pa.string_view(),
    pa.large_binary(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.timestamp("us", "Europe/Berlin"),
)


def name(kind: pa.DataType) -> str:
    """Return what the guide calls a type."""
    return NAMES.get(kind, str(kind))


def cell(types: TableTypes, kind: pa.DataType) -> str:
    """Return what a new column of a format is for values of a type."""
    try:
        made = types.type("c", kind)
    except TypeNotInTable:
        return "refused"
    if made == kind:
        return "exact"
    told = "its values" if pa.types.is_dictionary(kind) else f"`{name(made)}`"
    return f"{told}, if it fits" if is_by_value(kind, made) else told


def is_by_value(kind: pa.DataType, made: pa.DataType) -> bool:
    """Return whether some values of a type have no equal of the other."""
    is_shorter = pa.types.is_temporal(kind) and getattr(kind, "unit", "") == "ns"
    return kind == pa.date64() or (is_shorter and made.unit == "us")


def takes(kind: ColumnType, wanted: str) -> list[pa.DataType]:
    """The types of which a column of PostgreSQL takes all values, or those that fit; of the forms
    of text and of bytes one.
    """
    return [one for one in VALUES if verdict(one, kind) == wanted and one not in OTHER_FORMS]


def tables() -> str:
    """Both tables."""
    formats = [
        [f"`{name(kind)}`", *(cell(types, kind) for types in FORMATS.values())] for kind in VALUES
    ]
    relations = [
        [f"`{kind.shown}`", *(_listed(takes(kind, wanted)) for wanted in ("exact", "by value"))]
        for kind in RELATIONS
    ]
    headers = ("column of a batch", "Parquet files, also in object stores", "Delta Lake", "Iceberg")
    return "\n\n".join(
        [
            _table(headers, formats),
            "A column of a PostgreSQL table takes these, and refuses all others:",
            _table(("column", "all values of", "those that fit of"), relations),
        ]
    )


def _listed(kinds: Iterable[pa.DataType]) -> str:
    return ", ".join(f"`{name(kind)}`" for kind in kinds) or "–"


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [header, ["---" for _ in header], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page(text: str) -> str:
    """The page with fresh tables."""
    before, rest = text.split(START)
    return f"{before}{START}\n{tables()}\n{END}{rest.split(END)[1]}"


def main() -> None:
    """Print the tables, or write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    if parser.parse_args().write:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(tables())  # noqa: T201


if __name__ == "__main__":
    main()
