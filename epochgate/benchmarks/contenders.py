"""The ways to bring Parquet files into Parquet files that are measured beside each other.

All add the same two columns: by one Python function over Arrow batches of the same size, or by the
functions of Spark's SQL that come to the same values. All write Snappy, which is the default of
each. The session's JVM optimises as it does by default, not as in short runs of the command line,
since most of them read and write in it.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from epochgate.errors import EpochgateError
from epochgate.spark.ingest.options import BATCH_ROWS
from epochgate.spark.parquet_sink.open_file import ROW_GROUP_BYTES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from epochgate.spark.ingest.run import IngestResult

PARALLELISM = 4
CHECKPOINT_EVERY_S = 2.0
FILES_PER_MICRO_BATCH = 4
ROW_GROUP_ROWS = 524_288
TIMEOUT_S = 600.0
WORDS = ("delivered", "pending", "returned", "lost", "in transit", "refused", "stored", "sorted")
OPEN_WORDS = ("pending", "in transit")
SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.driver.memory": "3g",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_ROWS),
}
OUTPUT_COLUMNS = "id long, customer int, amount double, status string, cents long, is_open boolean"

Run = Callable[["SparkSession", Path, Path], "IngestResult | None"]


class RowsMissing(EpochgateError):
    """A run that was measured did not do its work."""


@dataclass(frozen=True)
class Contender:
    """One way: `run` brings a directory of files into another; the ingestion returns its result."""

    title: str
    run: Run


def cleaning_step() -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """Return what is done to each batch: two columns are added.

    A nested function, because only such travel to the tasks by themselves: the benchmarks are not
    part of what they are sent.
    """
    open_words = pa.array(OPEN_WORDS)

    def enrich(batch: pa.RecordBatch) -> pa.RecordBatch:
        cents = pc.cast(pc.round(pc.multiply(batch.column("amount"), 100.0)), pa.int64())
        is_open = pc.is_in(batch.column("status"), value_set=open_words)
        return pa.RecordBatch.from_arrays(
            [*batch.columns, cents, is_open], names=[*batch.schema.names, "cents", "is_open"]
        )

    return enrich


def enriched(frame: DataFrame) -> DataFrame:
    """Return the same by Spark's functions; `rint` rounds halves as pyarrow does."""
    from pyspark.sql import functions

    cents = functions.rint(functions.col("amount") * 100.0).cast("long")
    is_open = functions.col("status").isin(*OPEN_WORDS)
    return frame.withColumns({"cents": cents, "is_open": is_open})


def write_source(folder: Path, rows: int, files: int) -> None:
    """Write `rows` rows of four columns as Parquet files."""
    folder.mkdir()
    chance = np.random.default_rng(7)
    words = pa.array(WORDS)
    bounds = np.linspace(0, rows, files + 1, dtype=np.int64)
    for file, (first, last) in enumerate(itertools.pairwise(bounds)):
        count = int(last - first)
        table = pa.table(
            {
                "id": pa.array(np.arange(first, last)),
                "customer": pa.array(chance.integers(0, 1_000_000, count, dtype=np.int32)),
                "amount": pa.array(np.round(chance.random(count) * 1000, 2)),
                "status": words.take(pa.array(chance.integers(0, len(WORDS), count))),
            }
        )
        pq.write_table(table, folder / f"part-{file:05}.parquet", row_group_size=ROW_GROUP_ROWS)


@contextmanager
def bench_session(master: str) -> Iterator[SparkSession]:
    """Make the session that all run in."""
    from epochgate.spark import local_session

    with local_session(master, app_name="epochgate bench", settings=SETTINGS) as spark:
        spark.sparkContext.setLogLevel("ERROR")
        yield spark


def sums_of(folder: Path) -> tuple[int, int, int]:
    """Return how many rows the files below `folder` have, the sum of their cents, and how many of
    them are open: the same for all that do the same.
    """
    rows = cents = are_open = 0
    dataset = ds.dataset(folder, format="parquet", exclude_invalid_files=False)
    for batch in dataset.to_batches(columns=["cents", "is_open"]):
        rows += batch.num_rows
        cents += pc.sum(batch.column("cents")).as_py() or 0
        are_open += pc.sum(batch.column("is_open")).as_py() or 0
    return rows, cents, are_open


def sums_of_source(folder: Path) -> tuple[int, int, int]:
    """Return what `sums_of` should find in a target of `folder`."""
    enrich = cleaning_step()
    rows = cents = are_open = 0
    for batch in ds.dataset(folder, format="parquet").to_batches():
        if batch.num_rows:
            done = enrich(batch)
            rows += done.num_rows
            cents += pc.sum(done.column("cents")).as_py()
            are_open += pc.sum(done.column("is_open")).as_py()
    return rows, cents, are_open


def run_ingest(spark: SparkSession, source: Path, target: Path) -> IngestResult:
    """Ingest; IngestFailed unless it finishes."""
    from epochgate.spark.ingest.options import IngestOptions
    from epochgate.spark.ingest.run import IngestFailed, start_ingest

    options = IngestOptions(
        str(source),
        str(target),
        parallelism=PARALLELISM,
        checkpoint_every_s=CHECKPOINT_EVERY_S,
        transform=cleaning_step(),
    )
    with start_ingest(spark, options) as handle:
        result = handle.wait(TIMEOUT_S)
    if not result.is_success():
        raise IngestFailed(f"the ingestion has {result.state}: {result.reason}", result)
    return result


def run_in_tasks(spark: SparkSession, source: Path, target: Path) -> None:
    """Let the tasks of a plain job read and write with pyarrow, a file at a time.

    Row groups are as large as those of the ingestion. Nothing else is done: a task that dies leaves
    half a file in the target.
    """
    target.mkdir()
    enrich, folder = cleaning_step(), str(target)

    def rewrite(path: str) -> int:
        rows = gathered_bytes = 0
        gathered: list[pa.RecordBatch] = []
        writer = None
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=BATCH_ROWS, use_threads=False):
                done = enrich(batch)
                rows += done.num_rows
                gathered.append(done)
                gathered_bytes += done.nbytes
                if writer is None:
                    name = os.path.join(folder, os.path.basename(path))
                    writer = pq.ParquetWriter(name, done.schema)
                if gathered_bytes >= ROW_GROUP_BYTES:
                    writer.write_table(pa.Table.from_batches(gathered))
                    gathered, gathered_bytes = [], 0
        if writer is not None:
            if gathered:
                writer.write_table(pa.Table.from_batches(gathered))
            writer.close()
        return rows

    paths = sorted(map(str, source.iterdir()))

    def rewrite_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = [rewrite(paths[file]) for file in batch.column("id").to_pylist()]
            yield pa.record_batch({"rows": pa.array(rows, pa.int64())})

    # A partition for each file, so that a slot which is done takes the next.
    files = spark.range(0, len(paths), 1, len(paths))
    files.mapInArrow(rewrite_all, "rows long").collect()


def run_map_in_arrow(spark: SparkSession, source: Path, target: Path) -> None:
    """Read and write by DataFrames, with the Python function between them."""
    enrich = cleaning_step()

    def enrich_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield enrich(batch)

    mapped = spark.read.parquet(str(source)).mapInArrow(enrich_all, OUTPUT_COLUMNS)
    mapped.write.mode("overwrite").parquet(str(target))


def run_frame(spark: SparkSession, source: Path, target: Path) -> None:
    """Read and write by DataFrames, with Spark's functions between them."""
    enriched(spark.read.parquet(str(source))).write.mode("overwrite").parquet(str(target))


def run_streaming(files_per_micro_batch: int | None) -> Run:
    """Return a query that takes what is there, with a checkpoint for each micro-batch.

    None: all files in one, which is Spark's default.
    """

    def run(spark: SparkSession, source: Path, target: Path) -> None:
        options: dict[str, Any] = {}
        if files_per_micro_batch is not None:
            options["maxFilesPerTrigger"] = files_per_micro_batch
        schema = spark.read.parquet(str(source)).schema
        frame = spark.readStream.schema(schema).options(**options).parquet(str(source))
        query = (
            enriched(frame)
            .writeStream.format("parquet")
            .option("path", str(target))
            .option("checkpointLocation", f"{target}.checkpoints")
            .trigger(availableNow=True)
            .start()
        )
        if not query.awaitTermination(int(TIMEOUT_S)):
            query.stop()
            raise RowsMissing(f"the streaming query has not ended within {TIMEOUT_S:g} s")

    return run


CONTENDERS = {
    "ingest": Contender("`epochgate ingest`, with a Python function", run_ingest),
    "in tasks": Contender("pyarrow in the tasks of `mapInArrow`, the same function", run_in_tasks),
    "map": Contender("`read`, `mapInArrow` with the same function, `write`", run_map_in_arrow),
    "frame": Contender("`read`, functions of Spark, `write`", run_frame),
    "one batch": Contender(
        "Structured Streaming, functions of Spark, one micro-batch", run_streaming(None)
    ),
    "batches": Contender(
        f"Structured Streaming, functions of Spark, micro-batches of {FILES_PER_MICRO_BATCH} files",
        run_streaming(FILES_PER_MICRO_BATCH),
    ),
}
"""By short name; the first is measured against the others."""
