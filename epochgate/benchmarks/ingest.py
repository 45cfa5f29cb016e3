"""How fast an ingestion is, against a plain Spark job that reads, maps and writes the same files.

Both run the same Python function over Arrow batches of the same size, in turn, in one session; the
plain job has no coordination and no checkpoints. The session's JVM optimises as it does by default,
not as in short runs of the command line, since the plain job reads and writes in it.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from epochgate.benchmarks.figures import Table, number, percentile, spread
from epochgate.errors import EpochgateError
from epochgate.spark.ingest.options import BATCH_ROWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from epochgate.spark.ingest.run import IngestResult

RUNS = 3
ROWS = 60_000_000
FILES = 32
PARALLELISM = 4
CHECKPOINT_EVERY_S = 2.0
ROW_GROUP_ROWS = 524_288
TIMEOUT_S = 600.0
WORDS = ("delivered", "pending", "returned", "lost", "in transit", "refused", "stored", "sorted")
SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.driver.memory": "3g",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_ROWS),
}
OUTPUT_COLUMNS = "id long, customer int, amount double, status string, cents long, is_open boolean"


class RowsMissing(EpochgateError):
    """What was measured did not do its work."""


def cleaning_step() -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """Return what both jobs do to each batch: add two columns.

    A nested function, because only such travel to the tasks by themselves: the benchmarks are not
    part of what they are sent.
    """

    def enrich(batch: pa.RecordBatch) -> pa.RecordBatch:
        cents = pc.cast(pc.round(pc.multiply(batch.column("amount"), 100.0)), pa.int64())
        is_open = pc.is_in(batch.column("status"), value_set=pa.array(["pending", "in transit"]))
        return pa.RecordBatch.from_arrays(
            [*batch.columns, cents, is_open], names=[*batch.schema.names, "cents", "is_open"]
        )

    return enrich


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
    """Make the session that both jobs run in."""
    from epochgate.spark import local_session

    with local_session(master, app_name="epochgate bench", settings=SETTINGS) as spark:
        spark.sparkContext.setLogLevel("ERROR")
        yield spark


def run_plain(spark: SparkSession, source: Path, target: Path) -> float:
    """Return the seconds of the plain job."""
    started_s = time.perf_counter()
    enrich = cleaning_step()

    def enrich_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield enrich(batch)

    mapped = spark.read.parquet(str(source)).mapInArrow(enrich_all, OUTPUT_COLUMNS)
    mapped.write.parquet(str(target))
    return time.perf_counter() - started_s


def run_ingest(spark: SparkSession, source: Path, target: Path) -> tuple[float, IngestResult]:
    """Return the seconds of the ingestion, and its result; IngestFailed unless it finishes."""
    from epochgate.spark.ingest.options import IngestOptions
    from epochgate.spark.ingest.run import IngestFailed, start_ingest

    started_s = time.perf_counter()
    options = IngestOptions(
        str(source),
        str(target),
        parallelism=PARALLELISM,
        checkpoint_every_s=CHECKPOINT_EVERY_S,
        transform=cleaning_step(),
    )
    with start_ingest(spark, options) as handle:
        result = handle.wait(TIMEOUT_S)
    seconds = time.perf_counter() - started_s
    if not result.is_success():
        raise IngestFailed(f"the ingestion has {result.state}: {result.reason}", result)
    return seconds, result


def measure(
    runs: int = RUNS,
    rows: int = ROWS,
    files: int = FILES,
    note: Callable[[str], None] = lambda text: None,
) -> Table:
    """Run both jobs in turn, `runs` times, after one of each that does not count."""
    plain, ingest, ratios, checkpoints_ms = [], [], [], []
    with tempfile.TemporaryDirectory(prefix="epochgate-bench-") as name:
        folder = Path(name)
        note(f"writing {rows:,} rows")
        write_source(folder / "source", rows, files)
        write_source(folder / "small", rows // 20, PARALLELISM)
        with bench_session(f"local[{PARALLELISM}]") as spark:
            run_plain(spark, folder / "small", folder / "small-plain")
            run_ingest(spark, folder / "small", folder / "small-ingest")
            for run in range(runs):
                note(f"run {run + 1} of {runs}")
                plain.append(rows / run_plain(spark, folder / "source", folder / "plain"))
                seconds, result = run_ingest(spark, folder / "source", folder / "ingest")
                if result.rows_committed != rows:
                    raise RowsMissing(f"{result.rows_committed} of {rows} rows were committed")
                ingest.append(rows / seconds)
                ratios.append(ingest[-1] / plain[-1])
                done = [one for one in result.report.checkpoints if one.is_completed]
                checkpoints_ms += [one.duration_s * 1000 for one in done]
                for left in folder.glob("*plain*"), folder.glob("*ingest*"):
                    for path in left:
                        shutil.rmtree(path)
    return Table(
        question="ingest",
        title=f"Ingestion of Parquet files at parallelism {PARALLELISM}",
        header=("", "median (least to greatest)", "aim"),
        rows=(
            ("rows/s of the ingestion", spread(ingest), ""),
            ("rows/s of plain `mapInArrow`", spread(plain), ""),
            ("ingestion against plain, run by run", spread(ratios), "0.9"),
            ("duration of a checkpoint, p50, ms", number(percentile(checkpoints_ms, 50)), ""),
            ("duration of a checkpoint, p99, ms", number(percentile(checkpoints_ms, 99)), ""),
        ),
        notes=(
            f"{runs} runs of each in turn over {rows:,} rows in {files} files, in one "
            f"`local[{PARALLELISM}]` session; a checkpoint every {CHECKPOINT_EVERY_S:g} s "
            f"({len(checkpoints_ms)} in all), the last one and its commit included."
        ),
    )
