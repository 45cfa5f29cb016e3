"""The files that every loader is given, the places that they load into, and what is there after it.

Decides what counts as lost and as doubled: each row has a number of its own, and a reader that is
none of the loaders' counts these numbers. Runs in the process of the benchmark.
"""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from psycopg import sql

from epochgate.benchmarks.postgres_server import PostgresServer

Kind = Literal["parquet", "csv"]
SCHEMA, TABLE = "loaded", "events"
WORDS = ("delivered", "pending", "returned", "lost", "in transit", "refused", "stored", "sorted")
BEGIN_US = 1_700_000_000_000_000
COLUMNS = "id bigint, at_us bigint, customer text, amount double precision, status text"


@dataclass(frozen=True)
class Source:
    """Files of one kind, each with a time stamp of its own, an hour old at least."""

    folder: Path
    kind: Kind
    files: int
    rows_per_file: int

    @property
    def rows(self) -> int:
        """Of all files."""
        return self.files * self.rows_per_file

    def write(self) -> Source:
        """Write them; returns itself."""
        self.folder.mkdir(parents=True)
        chance, now_s = np.random.default_rng(7), time.time()
        for number in range(self.files):
            begin = number * self.rows_per_file
            table = _rows(begin, self.rows_per_file, chance)
            path = self.folder / f"part-{number:05}.{self.kind}"
            if self.kind == "parquet":
                pq.write_table(table, path)
            else:
                pc.write_csv(table, path)
            stamp_s = now_s - 3600 - self.files + number
            os.utime(path, (stamp_s, stamp_s))
        return self


def _rows(begin: int, count: int, chance: np.random.Generator) -> pa.Table:
    ids = np.arange(begin, begin + count)
    return pa.table(
        {
            "id": ids,
            "at_us": BEGIN_US + ids * 1_000_003,
            "customer": [f"customer {one}" for one in chance.integers(0, 100_000, count)],
            "amount": chance.integers(1, 100_000, count) / 100,
            "status": pa.array([WORDS[one] for one in chance.integers(0, len(WORDS), count)]),
        }
    )


class Found(NamedTuple):
    """The rows that a reader finds, and how many different numbers they have."""

    rows: int
    numbers: int

    def lost(self, source: Source) -> int:
        """The rows of the source that are not there."""
        return source.rows - self.numbers

    @property
    def doubled(self) -> int:
        """The rows that are there once more."""
        return self.rows - self.numbers


@dataclass(frozen=True)
class Place:
    """A folder for what one loader keeps, and the table that it loads into."""

    folder: Path
    server: PostgresServer | None = None

    @property
    def state(self) -> Path:
        """A directory for what the loader remembers."""
        return self.folder / "state"

    @property
    def delta(self) -> Path:
        """The Delta table: of dlt, `SCHEMA/TABLE` below the directory of a destination."""
        return self.folder / "lake" / SCHEMA / TABLE

    @property
    def url(self) -> str:
        """Of the database."""
        assert self.server is not None
        return self.server.url

    def begin(self, *, makes_table: bool) -> None:
        """Empty it; makes_table: also make the table of the database."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.state.mkdir(parents=True)
        if self.server is None:
            return
        with psycopg.connect(self.url, autocommit=True) as connection:
            for schema in (SCHEMA, f"{SCHEMA}_staging"):
                connection.execute(
                    sql.SQL("drop schema if exists {} cascade").format(sql.Identifier(schema))
                )
            connection.execute(f"create schema {SCHEMA}")
            if makes_table:
                connection.execute(f"create table {SCHEMA}.{TABLE} ({COLUMNS})")

    def found(self) -> Found:
        """Count what is there; nothing where there is no table."""
        if self.server is not None:
            query = f"select count(*), count(distinct id) from {SCHEMA}.{TABLE}"
            with psycopg.connect(self.url) as connection:
                row = connection.execute("select to_regclass(%s)", [f"{SCHEMA}.{TABLE}"]).fetchone()
                if row is None or row[0] is None:
                    return Found(0, 0)
                counted = connection.execute(query).fetchone()
        elif (self.delta / "_delta_log").exists():
            files = [str(self.delta / one) for one in _files(self.delta)]
            if not files:
                return Found(0, 0)
            query = "select count(*), count(distinct id) from read_parquet(?)"
            with duckdb.connect() as reader:
                (counted,) = reader.execute(query, [files]).fetchall()
        else:
            return Found(0, 0)
        assert counted is not None
        return Found(int(counted[0]), int(counted[1]))


def _files(table: Path) -> list[str]:
    """The files of the newest version, as the log has them."""
    paths: list[str] = pa.table(DeltaTable(table).get_add_actions(flatten=True))["path"].to_pylist()
    return paths
