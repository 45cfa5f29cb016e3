"""One source, one transform and one sink give one table as a resident job, a stream and a batch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from epochgate.spark.ingest import ingest
from epochgate.spark.streaming import register
from tests.spark.shared import session_of

pytestmark = [pytest.mark.spark, pytest.mark.extended, pytest.mark.slow]

FILES, ROWS = 5, 40


def keep(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows with an even id, and their doubled amount: the transform of all three."""
    kept = batch.filter(pc.equal(pc.bit_wise_and(batch["id"], 1), 0))
    return pa.record_batch({"id": kept["id"], "amount": pc.multiply(kept["amount"], 2)})


def kept_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return map(keep, batches)


def rows_in(table: Path) -> list[tuple[int, int]]:
    """Read without Spark."""
    read = pq.read_table(str(table), columns=["id", "amount"])
    return sorted(zip(read["id"].to_pylist(), read["amount"].to_pylist(), strict=True))


@pytest.mark.timeout(300)
def test_the_three_runtimes_write_the_same_rows(tmp_path: Path) -> None:
    spark: Any = session_of("tests/spark/streaming/test_three_runtimes.py")
    register(spark)
    landing = tmp_path / "landing"
    landing.mkdir()
    for number in range(FILES):
        ids = pa.array(range(number * ROWS, (number + 1) * ROWS), pa.int64())
        pq.write_table(pa.table({"id": ids, "amount": ids}), landing / f"{number}.parquet")

    ingest(spark, str(landing), str(tmp_path / "resident"), parallelism=2, transform=keep)

    stream = spark.readStream.format("epochgate").option("source", str(landing))
    stream = stream.option("state", str(tmp_path / "state")).option("settle", "0")
    (
        stream.option("maxSplitsPerBatch", "2")
        .load()
        .mapInArrow(kept_of, "id long, amount long")
        .writeStream.format("epochgate")
        .option("sink", "parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "stream"))
        .awaitTermination()
    )

    read = spark.read.parquet(str(landing)).mapInArrow(kept_of, "id long, amount long")
    batch = read.write.format("epochgate").option("sink", "parquet").mode("append")
    batch.save(str(tmp_path / "batch"))

    expected = [(one, 2 * one) for one in range(0, FILES * ROWS, 2)]
    assert rows_in(tmp_path / "resident") == expected
    assert rows_in(tmp_path / "stream") == expected
    assert rows_in(tmp_path / "batch") == expected
