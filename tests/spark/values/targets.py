"""The places that rows are written to, and readers of them that are not epochgate's."""

from __future__ import annotations

import itertools
import os
import random
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from psycopg import sql

from epochgate.errors import EpochgateError
from epochgate.spark.files.evolution import SchemaEvolution
from epochgate.spark.ingest.options import IngestOptions
from tests.runtime.objects.stores import Memory
from tests.spark.ingest.simulated import SimulatedIngest, options_for
from tests.spark.sink.test_object_ingest import (
    TARGET as BUCKET,
    SimulatedObjectIngest,
    committed_files,
)
from tests.spark.tables import iceberg_replay
from tests.spark.values import inferred
from tests.spark.values.cells import Rows, of_row, of_table, of_value

RESTARTS_MAX = 3
ZONES = ("America/New_York", "Asia/Kolkata")
"""Of the process, and the other one of the databases that it writes to."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run: all rows arrived, or the reason that was told."""

    refusal: str = ""

    @property
    def has_arrived(self) -> bool:
        """True if nothing was refused."""
        return not self.refusal


class Target(ABC):
    """One place of a kind, empty at first."""

    takes_nested = True
    """Whether there are lists, structs and maps."""
    makes_itself = True
    """Whether the columns are those of the first rows."""
    lacks_types = False
    """Whether many types of Parquet files are refused."""
    takes_odd_paths = False
    """Whether the names above it may have any letters."""
    is_ingestion = True
    """Whether it has the options of one, and not those of a stream."""
    evolutions: tuple[SchemaEvolution, ...] = ("none",)

    def __init__(self, place: Path) -> None:
        self.place = place
        self.starts = itertools.count(1)

    def options(self, **changes: Any) -> IngestOptions:
        """The options of an ingestion into it; time goes by without work, so one checkpoint is the
        last one.
        """
        usual = {"split_bytes_target": 1 << 20, "batch_rows": 100, "checkpoint_every_s": 1.0}
        return options_for(self.place, **{**usual, **changes})

    def ingest(self, **options: Any) -> Outcome:
        """Read all files of `in` into it. Raises AssertionError for what is tried again and again,
        and what no ingestion should raise.
        """
        try:
            simulated = self.start(f"start{next(self.starts)}", **options)
        except EpochgateError as error:
            return Outcome(str(error))
        simulated.run()
        result = simulated.leave()
        if result.state == "finished":
            return Outcome()
        restarts = result.report.regional_restarts + result.report.global_restarts
        assert restarts <= RESTARTS_MAX, f"{restarts} restarts: {result.reason}"
        return Outcome(result.reason or "it has failed without a reason")

    def prepare(self, table: pa.Table, *, is_inferred: bool = False) -> None:
        """Make what has to be there before an ingestion of this table; of one that is inferred,
        types are found in texts.
        """

    def start(self, name: str, **changes: Any) -> SimulatedIngest:
        """Start an ingestion; raises what a start raises."""
        return SimulatedIngest(self.options(**changes), name=name)

    @abstractmethod
    def rows(self) -> Rows:
        """Return what is visible."""


@cache
def duckdb_elsewhere() -> duckdb.DuckDBPyConnection:
    """A connection whose session has a zone of its own."""
    connection = duckdb.connect()
    connection.execute("set timezone = 'Asia/Kathmandu'")
    return connection


def of_files(paths: list[Path]) -> Rows:
    """The rows of Parquet files, on which two readers agree."""
    found: Rows = Counter()
    for path in paths:
        table = pq.ParquetFile(path).read()
        names = [name.lower() for name in table.column_names]
        assert len(set(names)) == len(names), f"Spark has no two columns of one name: {names}"
        mine = of_table(table)
        quoted = str(path).replace("'", "''")
        query = f"from read_parquet('{quoted}', hive_partitioning = false)"
        assert of_table(duckdb_elsewhere().sql(query).to_arrow_table()) == mine, path
        found += mine
    return found


class Parquet(Target):
    """A directory."""

    takes_odd_paths = True
    evolutions: tuple[SchemaEvolution, ...] = ("none", "add", "widen")

    def rows(self) -> Rows:
        return of_files(sorted((self.place / "out").rglob("*.parquet")))


class Objects(Target):
    """A store of objects, in memory."""

    evolutions: tuple[SchemaEvolution, ...] = ("none", "add", "widen")

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.memory = Memory()

    def start(self, name: str, **changes: Any) -> SimulatedIngest:
        usual = {"split_bytes_target": 1 << 20, "batch_rows": 100, "checkpoint_every_s": 1.0}
        return SimulatedObjectIngest(self.place, self.memory, **{**usual, **changes})

    def rows(self) -> Rows:
        objects, found = self.memory.open(BUCKET), Rows()
        for key in committed_files(objects):
            found += of_table(pq.ParquetFile(pa.BufferReader(objects.get(key))).read())
        return found


class Delta(Target):
    """A Delta table."""

    lacks_types = takes_odd_paths = True
    evolutions: tuple[SchemaEvolution, ...] = ("none", "add")

    def options(self, **changes: Any) -> IngestOptions:
        return super().options(target=f"delta:{self.place / 'out'}", **changes)

    def rows(self) -> Rows:
        if not (self.place / "out" / "_delta_log").exists():
            return Counter()
        return of_table(DeltaTable(self.place / "out").to_pyarrow_table())


class Iceberg(Target):
    """An Iceberg table in a catalog of its own."""

    evolutions: tuple[SchemaEvolution, ...] = ("none", "add", "widen")

    def options(self, **changes: Any) -> IngestOptions:
        given = {
            f"PYICEBERG_CATALOG__LAKE__{name.upper()}": value
            for name, value in iceberg_replay.catalog(self.place).items()
        }
        with mock.patch.dict(os.environ, given):
            return super().options(
                target="iceberg:lake.sales.events",
                checkpoint_directory=str(self.place / "checkpoints"),
                **changes,
            )

    def start(self, name: str, **changes: Any) -> SimulatedIngest:
        os.environ.update(
            {
                f"PYICEBERG_CATALOG__LAKE__{key.upper()}": value
                for key, value in iceberg_replay.catalog(self.place).items()
            }
        )
        return super().start(name, **changes)

    def rows(self) -> Rows:
        found: Rows = Counter()
        for path in iceberg_replay.active_files(self.place):
            found += of_table(pq.ParquetFile(path).read())
        return found


class Postgres(Target):
    """A table of a database whose clocks go by another zone than ours."""

    takes_nested = makes_itself = False
    evolutions = ("none", "add", "widen")
    numbers = itertools.count()

    def __init__(self, place: Path, dsn: str) -> None:
        super().__init__(place)
        number = next(self.numbers)
        self.dsn, self.table = dsn, f"target_{number}"
        self.zone = ZONES[number % 2]
        self.schema, self.kinds = pa.schema([]), dict[str, str]()
        self.is_made = False

    def options(self, **changes: Any) -> IngestOptions:
        return super().options(
            target=f"postgres:{self.dsn}#{self.table}",
            checkpoint_directory=str(self.place / "checkpoints"),
            **changes,
        )

    def prepare(self, table: pa.Table, *, is_inferred: bool = False) -> None:
        schema = inferred.guessed(table) if is_inferred else table.schema
        kinds = _narrowed(schema)
        self.schema, self.kinds = schema, dict(zip(schema.names, kinds, strict=True))

    def start(self, name: str, **changes: Any) -> SimulatedIngest:
        if not self.is_made:
            self._make(grows=changes.get("schema_evolution", "none") != "none")
            self.is_made = True
        return super().start(name, **changes)

    def _make(self, *, grows: bool) -> None:
        """Make the table, without some of its columns if it is to grow."""
        chance = random.Random(str(self.schema))
        columns = [
            sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(kind))
            for number, (name, kind) in enumerate(self.kinds.items())
            if not (grows and number and chance.random() < 0.5)
        ]
        making = sql.SQL("create table {} ({})")
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            database = sql.Identifier(connection.info.dbname)
            zone = sql.SQL("alter database {} set timezone to {}")
            connection.execute(zone.format(database, sql.Literal(self.zone)))
            connection.execute(
                making.format(sql.Identifier(self.table), sql.SQL(", ").join(columns))
            )

    def rows(self) -> Rows:
        with psycopg.connect(self.dsn) as connection:
            connection.execute("set timezone = 'UTC'")
            # Of a `real`, text has the shortest digits, which are those of another double.
            cursor = connection.cursor(binary=True)
            cursor.execute(sql.SQL("select * from {}").format(sql.Identifier(self.table)))
            assert cursor.description is not None
            names = [column.name for column in cursor.description]
            grown = {one.name: one.type_display for one in cursor.description}
            kinds = {name: "real" if kind == "float4" else kind for name, kind in grown.items()}
            return Counter(
                of_row(
                    (name, as_given(self.schema.field(name).type, kinds[name], value))
                    for name, value in zip(names, row, strict=True)
                )
                for row in cursor.fetchall()
            )


def as_given(kind: pa.DataType, column: str, value: Any) -> Any:
    """The cell of a value whose column has a type that says as much in another way: a number by
    the shortest digits of a double, a day as its midnight, a wall clock as that of UTC.
    """
    cell = of_value(value)
    if pa.types.is_decimal(kind) and isinstance(value, float):
        held = pa.float32() if column == "real" else pa.float64()
        return of_value(Decimal(_digits(value, held)))
    if column == "jsonb" and pa.types.is_floating(kind) and value is not None:
        value = Decimal(str(value))
    if pa.types.is_floating(kind) and isinstance(value, Decimal):
        exact = pa.scalar(float(value), kind).as_py()
        is_short = not value.is_finite() or Decimal(_digits(exact, kind)) == value
        return of_value(exact) if is_short else cell
    if pa.types.is_date(kind) and cell is not None and cell[0] == "wall":
        return "day", Fraction(cell[1], 86_400 * 10**9)
    is_wall = pa.types.is_timestamp(kind) and kind.tz is None
    return ("wall", cell[1]) if is_wall and cell is not None else cell


def _digits(number: float, kind: pa.DataType) -> str:
    """The shortest that tell the number of its type."""
    digits: str = pa.array([number], kind).cast(pa.string())[0].as_py()
    return digits


POSTGRES = {
    "bool": "boolean",
    "int8": "smallint",
    "int16": "smallint",
    "int32": "integer",
    "int64": "bigint",
    "uint8": "smallint",
    "uint16": "integer",
    "uint32": "bigint",
    "uint64": "numeric(20)",
    "float": "real",
    "double": "double precision",
    "string": "text",
    "binary": "bytea",
    "date32[day]": "date",
    "timestamp[us]": "timestamp",
    "timestamp[ms]": "timestamp",
    "timestamp[ns]": "timestamp",
    "timestamp[us, tz=UTC]": "timestamptz",
    "time64[us]": "time",
}


NARROWER = {
    "bool": ("integer", "text", "smallint"),
    "int32": ("smallint", "numeric(3)", "real", "boolean"),
    "int64": ("integer", "numeric(7)", "double precision", "real", "text", "numeric", "oid"),
    "uint64": ("bigint", "double precision", "oid"),
    "float": ("numeric(9, 3)", "integer", "numeric", "double precision"),
    "double": ("real", "numeric(20, 2)", "numeric", "bigint", "money", "jsonb"),
    "string": ("varchar(4)", "char(3)", "time", "bytea", "integer", "name", "interval(0)"),
    "binary": ("text", "uuid"),
    "date32[day]": ("timestamp", "timestamptz", "timestamp(0)"),
    "timestamp[us]": ("timestamp(0)", "timestamp(3)", "date", "timestamptz", "timestamptz(3)"),
    "timestamp[ms]": ("timestamp(1)", "timestamp(3)", "timestamptz"),
    "timestamp[ns]": ("timestamp(3)", "timestamptz", "date"),
    "timestamp[us, tz=UTC]": ("timestamptz(0)", "timestamptz(3)", "timestamp", "date"),
    "time64[us]": ("time(0)", "time(3)", "timetz", "interval"),
    "decimal128(9, 2)": ("numeric(8, 2)", "numeric(9, 1)", "double precision", "money", "real"),
    "decimal128(18, 0)": ("bigint", "numeric(30, -2)", "double precision", "numeric(50, 20)"),
    "decimal128(38, 10)": ("numeric(38, 9)", "numeric(38, 12)", "real", "numeric"),
}
"""Types of columns that hold some of the values, none of them, or all in another way."""


def _narrowed(schema: pa.Schema) -> list[str]:
    """The types of a table that holds the schema's values, or, in a third of all cases, of one
    with a narrower column.
    """
    kinds = [_of_postgres(one.type) for one in schema]
    chance = random.Random(str(schema))
    at = chance.randrange(len(kinds))
    if narrower := NARROWER.get(str(schema.field(at).type)):
        kinds[at] = chance.choice((*narrower, *[kinds[at]] * 2 * len(narrower)))
    return kinds


def _of_postgres(kind: pa.DataType) -> str:
    """The type of PostgreSQL that holds all values of an Arrow type, or as many as any does."""
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision}, {kind.scale})"
    if pa.types.is_list(kind):
        return f"{_of_postgres(kind.value_type)}[]"
    return POSTGRES.get(str(kind), "jsonb")
