"""Targets whose rows lie in partitions by the values of a column, which each table draws."""

from __future__ import annotations

import contextlib
import datetime as dt
import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import ValidationError
from pyiceberg.io.pyarrow import UnsupportedPyArrowTypeException
from pyiceberg.transforms import parse_transform

from epochgate.spark.ingest.options import IngestOptions
from tests.spark.tables import delta_replay, iceberg_replay
from tests.spark.tables.test_iceberg_partitions import manifested
from tests.spark.values.cells import Cell, Rows, of_row, of_scalar, of_table, of_value
from tests.spark.values.targets import Delta, Iceberg, Parquet

MISSING = "__HIVE_DEFAULT_PARTITION__"
TRANSFORMS = {
    "int64": ("identity", "bucket[3]", "truncate[10]"),
    "int32": ("identity", "bucket[5]", "truncate[7]"),
    "string": ("identity", "bucket[2]", "truncate[1]"),
    "bool": ("identity",),
    "date32[day]": ("identity", "year", "month", "day", "bucket[4]"),
    "timestamp[us]": ("identity", "year", "month", "day", "hour"),
    "timestamp[us, tz=UTC]": ("bucket[3]", "year", "month", "day", "hour"),
    "decimal128(9, 2)": ("identity", "bucket[2]", "truncate[50]"),
    "binary": ("bucket[2]", "truncate[1]"),
}


def drawn_column(schema: pa.Schema, is_taken: Callable[[pa.DataType], bool]) -> pa.Field | None:
    """One of those columns that can be taken; none if there are none, or no other one is left."""
    taken = [one for one in schema if is_taken(one.type)] if len(set(schema.names)) > 1 else []
    return random.Random(str(schema)).choice(taken) if taken else None


def is_told_in_names(kind: pa.DataType) -> bool:
    """Return whether the name of a directory can tell all values."""
    is_whole = pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    return bool(is_whole or pa.types.is_date(kind) or kind == pa.string())


def is_told_in_log(kind: pa.DataType) -> bool:
    """Return whether an entry of a Delta log can tell all values."""
    return is_told_in_names(kind) or bool(pa.types.is_timestamp(kind))


def value_of(text: str | None, kind: pa.DataType) -> Any:
    """The value of a partition that is written so."""
    if text is None or kind == pa.string():
        return text
    if pa.types.is_boolean(kind):
        return {"true": True, "false": False}[text]
    return dt.date.fromisoformat(text) if pa.types.is_date(kind) else int(text)


class ParquetPartitions(Parquet):
    """Directories in Hive's manner."""

    lacks_types = True
    evolutions = ("none",)
    by, kind = "", pa.string()

    def prepare(self, table: pa.Table, *, is_inferred: bool = False) -> None:
        if field := drawn_column(table.schema, is_told_in_names):
            self.by, self.kind = field.name, field.type

    def options(self, **changes: Any) -> IngestOptions:
        return super().options(partition_by=(self.by,) if self.by else (), **changes)

    def rows(self) -> Rows:
        if not self.by:
            return super().rows()
        found = Rows()
        for path in filter(Path.is_file, sorted((self.place / "out").rglob("*.parquet"))):
            table = pq.ParquetFile(path).read()
            name, text = map(unquote, path.parent.name.split("=", 1))
            assert name == self.by not in table.column_names
            value = of_value(value_of(None if text == MISSING else text, self.kind))
            for cells, count in of_table(table).items():
                found[of_row([*cells, (name, value)])] += count
        return found


class DeltaPartitions(Delta):
    """A Delta table, whose log tells the values."""

    evolutions = ("none",)
    by = ""

    def prepare(self, table: pa.Table, *, is_inferred: bool = False) -> None:
        if field := drawn_column(table.schema, is_told_in_log):
            self.by = field.name

    def options(self, **changes: Any) -> IngestOptions:
        return super().options(partition_by=(self.by,) if self.by else (), **changes)

    def rows(self) -> Rows:
        found = super().rows()
        if found:
            count = sum(pq.ParquetFile(one).metadata.num_rows for one in self._files())
            assert count == found.total(), "the log's reader and the library's find other rows"
            assert DeltaTable(self.place / "out").metadata().partition_columns == (
                [self.by] if self.by else []
            )
        return found

    def _files(self) -> list[Path]:
        return delta_replay.active_files(self.place / "out")


class IcebergPartitions(Iceberg):
    """A table that another client has made; a type that it has no such table of leaves none."""

    lacks_types = True
    evolutions = ("none",)
    by = transform = ""

    def prepare(self, table: pa.Table, *, is_inferred: bool = False) -> None:
        schema = table.schema
        field = drawn_column(schema, lambda kind: str(kind) in TRANSFORMS)
        if is_inferred or field is None:
            return
        self.by = field.name
        self.transform = random.Random(str(schema)).choice(TRANSFORMS[str(field.type)])
        known = load_catalog("lake", **iceberg_replay.catalog(self.place))
        with contextlib.suppress(UnsupportedPyArrowTypeException, ValidationError, ValueError):
            known.create_namespace("sales")
            made = known.create_table("sales.events", schema)
            with made.update_spec() as update:
                update.add_field(self.by, parse_transform(self.transform), "part")
        known.close()

    def rows(self) -> Rows:
        """Raises AssertionError for a file whose rows are not of its partition."""
        is_made = self.transform == "identity" and iceberg_replay.snapshots(self.place)
        for file, partition in manifested(self.place) if is_made else ():
            cells = {of_scalar(one) for one in pq.ParquetFile(file).read()[self.by]}
            assert cells == {_cell_of(partition["part"], cells)}, (self.by, partition, cells)
        return super().rows()


def _cell_of(value: Any, like: set[Cell]) -> Cell:
    """The cell of a value in a manifest, which has numbers for days and clocks, and bytes for
    decimals.
    """
    kinds = {cell[0] for cell in like if cell is not None}
    if value is None or not kinds:
        return of_value(value)
    if isinstance(value, bytes) and kinds == {"number"}:
        return "number", Fraction(int.from_bytes(value, "big", signed=True), 100)
    if kinds <= {"wall", "moment"}:
        return kinds.pop(), value * 1000
    return ("day", value) if kinds == {"day"} else of_value(value)
