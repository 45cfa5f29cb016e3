"""Reads a target again and again, while the target is exchanged at each of the reader's looks.

python -m tests.spark.compaction.straddled_reader READER BEFORE AFTER

Run by test_straddling with straddling.c loaded. BEFORE and AFTER are two trees of one target. Each
read begins with a copy of BEFORE in STRADDLED and one of AFTER in OTHER. Prints a line of JSON: how
often the exchange happened, how often it ended in an error, and every wrong result.
"""

from __future__ import annotations

import json
import mmap
import os
import shutil
import struct
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

SESSIONS = ExitStack()
STRADDLED, OTHER = os.environ["STRADDLED"], os.environ["OTHER"]


def of_duckdb(where: str) -> Callable[[str], list[int]]:
    """DuckDB's rows."""
    import duckdb

    def read(path: str) -> list[int]:
        files = f"read_parquet('{path}/**', hive_partitioning=true)"
        found = duckdb.connect().execute(f"select x from {files} where {where or 'true'}")
        return [row[0] for row in found.fetchall()]

    return read


def of_pyarrow(where: str) -> Callable[[str], list[int]]:
    """The rows of pyarrow."""
    import pyarrow.parquet as pq

    filters = [("country", "=", "DE")] if where else None
    return lambda path: list(pq.read_table(path, filters=filters)["x"].to_pylist())


def of_pandas(where: str) -> Callable[[str], list[int]]:
    """The rows of pandas."""
    import pandas as pd

    filters = [("country", "=", "DE")] if where else None
    return lambda path: list(pd.read_parquet(path, filters=filters)["x"])


def of_polars(where: str) -> Callable[[str], list[int]]:
    """The rows of polars."""
    import polars as pl

    def read(path: str) -> list[int]:
        frame = pl.scan_parquet(path)
        frame = frame.filter(pl.col("country") == "DE") if where else frame
        return list(frame.select("x").collect()["x"])

    return read


def of_spark(where: str) -> Callable[[str], list[int]]:
    """The rows of Spark, on a session that tries no task again."""
    from pyspark.sql import SparkSession

    from epochgate.spark.java import use_java

    use_java()
    spark = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    )
    SESSIONS.callback(spark.stop)
    spark.sparkContext.setLogLevel("OFF")

    def read(path: str) -> list[int]:
        frame = spark.read.parquet(path)
        frame = frame.where(where) if where else frame
        return [row.x for row in frame.select("x").collect()]

    return read


def of_epochgate(where: str) -> Callable[[str], list[int]]:
    """The rows that epochgate.read finds, which looks again."""
    import epochgate

    return lambda path: list(epochgate.read(path)["x"].to_pylist())


READERS = {
    "epochgate": of_epochgate,
    "duckdb": of_duckdb,
    "pyarrow": of_pyarrow,
    "pandas": of_pandas,
    "polars": of_polars,
    "spark": of_spark,
}


class Counts:
    """The counts of straddling.c."""

    def __init__(self) -> None:
        with open(os.environ["COUNTS"], "r+b") as file:
            self._map = mmap.mmap(file.fileno(), 12)

    def exchange_at(self, look: int) -> None:
        """Begin to count."""
        self._map[:] = struct.pack("3i", look, 0, 0)

    @property
    def looks(self) -> int:
        """So far."""
        return int(struct.unpack("3i", self._map[:])[1])

    def is_exchanged(self) -> bool:
        """Return whether it has happened."""
        return bool(struct.unpack("3i", self._map[:])[2])


def lay_out(before: str, after: str) -> None:
    """Begin from the tree before."""
    for tree, place in ((before, STRADDLED), (after, OTHER)):
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(tree, place)


def main(reader: str, before: str, after: str) -> dict[str, Any]:
    """Read once to count the looks, and then once for each."""
    name, _, where = reader.partition(":")
    read = READERS[name](where)
    counts = Counts()
    lay_out(before, after)
    expected = sorted(read(STRADDLED))
    counts.exchange_at(0)
    assert sorted(read(STRADDLED)) == expected
    looks = counts.looks
    exchanged, errors, wrong = 0, 0, []
    for look in range(1, looks + 1):
        counts.exchange_at(0)
        lay_out(before, after)
        counts.exchange_at(look)
        try:
            found = sorted(read(STRADDLED))
        except Exception:  # noqa: BLE001  each reader has an error of its own
            errors += 1
            found = expected
        if found != expected:
            wrong.append([look, found])
        exchanged += counts.is_exchanged()
    return {"rows": expected, "exchanged": exchanged, "errors": errors, "wrong": wrong}


if __name__ == "__main__":
    with SESSIONS:
        sys.stdout.write(json.dumps(main(*sys.argv[1:])) + "\n")
