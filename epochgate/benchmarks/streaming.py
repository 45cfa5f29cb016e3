"""The cost of a batch of a streaming query through this sink, and through what a user would pick.

One session. The contenders run in turn, several rounds of them, each a query that reads the same
files, one in each batch, into a target of its own. Spark says how long each batch took; the first
one of a query is left out, in which processes start and code is compiled. What is there in the end
is counted.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epochgate.benchmarks.contenders import RowsMissing, bench_session
from epochgate.benchmarks.figures import Table, number, percentile, spread

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MASTER = "local[2]"
ROUNDS = 3
BATCHES = 20
ROWS_PER_BATCH = 200_000
NOTES = """\
By `epochgate bench streaming`: {batches} batches of {rows} rows in each of {rounds} rounds, one \
file in each batch, two cores for tasks. The time is Spark's `triggerExecution`, from the look at \
the source to the end of its log of commits; the first batch of each query is left out."""


@dataclass(frozen=True)
class Contender:
    """A way of writing a stream, and how its rows are counted."""

    title: str
    start: Callable[[DataFrame, Path], Any]
    count: Callable[[SparkSession, Path], int]


def _sink(kind: str) -> Callable[[DataFrame, Path], Any]:
    def start(stream: DataFrame, target: Path) -> Any:
        options = {"sink": kind, "path": str(target)}
        return stream.writeStream.format("epochgate").options(**options)

    return start


def _files(stream: DataFrame, target: Path) -> Any:
    return stream.writeStream.format("parquet").option("path", str(target))


def _deltalake(stream: DataFrame, target: Path) -> Any:
    """A function as one writes it without a guard: rows are there twice after a replay."""

    def write(df: DataFrame, batch: int) -> None:
        import deltalake

        deltalake.write_deltalake(str(target), df.toArrow(), mode="append")

    return stream.writeStream.foreachBatch(write)


def _guarded(stream: DataFrame, target: Path) -> Any:
    from epochgate.spark.streaming import DeltaLedger, DeltaTransaction, once

    def write(df: DataFrame, batch: int, transaction: DeltaTransaction) -> None:
        import deltalake

        deltalake.write_deltalake(
            str(target), df.toArrow(), mode="append", commit_properties=transaction.properties()
        )

    return stream.writeStream.foreachBatch(once(DeltaLedger(str(target)), write))


def _parquet_rows(spark: SparkSession, target: Path) -> int:
    return spark.read.parquet(str(target)).count()


def _delta_rows(spark: SparkSession, target: Path) -> int:
    import deltalake

    counted: int = deltalake.DeltaTable(str(target)).to_pyarrow_dataset().count_rows()
    return counted


CONTENDERS = (
    Contender("this sink, Parquet files", _sink("parquet"), _parquet_rows),
    Contender("Spark's file sink", _files, _parquet_rows),
    Contender("this sink, Delta Lake", _sink("delta"), _delta_rows),
    Contender("`foreachBatch` with deltalake", _deltalake, _delta_rows),
    Contender("the same in `once`", _guarded, _delta_rows),
)


def measure(
    note: Callable[[str], None] = lambda text: None,
    *,
    rounds: int = ROUNDS,
    batches: int = BATCHES,
    rows: int = ROWS_PER_BATCH,
) -> Table:
    """Run all in turn. Raises RowsMissing for a target that has not each row once."""
    from epochgate.spark.streaming import register

    seconds: dict[str, list[float]] = {one.title: [] for one in CONTENDERS}
    rates: dict[str, list[float]] = {one.title: [] for one in CONTENDERS}
    with tempfile.TemporaryDirectory() as folder, bench_session(MASTER) as spark:
        register(spark)
        source = Path(folder) / "source"
        for number_of in range(batches):
            first = number_of * rows
            made = spark.range(first, first + rows, numPartitions=1)
            made.selectExpr("id", "id % 97 as cents").write.parquet(str(source / str(number_of)))
        for turn in range(rounds):
            for one in CONTENDERS:
                taken, whole_s = _run(spark, one, source, Path(folder) / "target", batches, rows)
                seconds[one.title] += taken
                rates[one.title].append(batches * rows / whole_s)
                note(f"round {turn + 1}, {one.title}: {number(percentile(taken, 50))} s a batch")
    shown = tuple(
        (one.title, spread(seconds[one.title]), number(percentile(rates[one.title], 50)))
        for one in CONTENDERS
    )
    return Table(
        "streaming",
        "A batch of a streaming query",
        ("", "seconds a batch", "rows a second"),
        shown,
        NOTES.format(batches=batches, rows=f"{rows:,}", rounds=rounds),
    )


def _run(
    spark: SparkSession, one: Contender, source: Path, folder: Path, batches: int, rows: int
) -> tuple[list[float], float]:
    """The seconds of each batch but the first, and of the whole query."""
    target = folder / "out"
    stream = spark.readStream.schema("id long, cents long").option("maxFilesPerTrigger", 1)
    writer = one.start(stream.parquet(f"{source}/*"), target)
    begun_s = time.perf_counter()
    query = writer.option("checkpointLocation", str(folder / "c")).trigger(availableNow=True)
    query = query.start()
    query.awaitTermination()
    whole_s = time.perf_counter() - begun_s
    found = one.count(spark, target)
    shutil.rmtree(folder)
    if found != batches * rows:
        raise RowsMissing(f"{one.title}: {found} rows instead of {batches * rows}")
    taken = [progress["durationMs"]["triggerExecution"] for progress in query.recentProgress]
    return [ms / 1000 for ms in taken[1:]], whole_s
