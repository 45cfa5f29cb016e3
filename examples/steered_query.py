"""A limit changes while a streaming query runs: each batch has one limit, and keeps it.

The query writes orders below a limit. The limit is lowered while it runs, and one batch fails after
that and runs again: it sees the limit that it saw before. Every row says with which limit it was
written, so the table shows from which batch on the new one was in force.

    python examples/steered_query.py
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import functions
from pyspark.sql.streaming.query import StreamingQuery

from epochgate.spark import local_session
from epochgate.spark.streaming import Control


class Orders:
    """The query: every order below the limit goes into a directory of its batch."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder, self.fails = spark, folder, False
        self.control = Control("pricing", {"limit": 900}, store=str(folder / "controls"))

    def start(self) -> StreamingQuery:
        orders = self.spark.readStream.format("rate").option("rowsPerSecond", 1000).load()
        query: StreamingQuery = (
            orders.withColumn("amount", functions.col("value") % 1000)
            .writeStream.foreachBatch(self.control.apply(self.write))
            .option("checkpointLocation", str(self.folder / "checkpoint"))
            .trigger(processingTime="500 milliseconds")
            .start()
        )
        return query

    def write(self, orders: Any, batch: int, rules: dict[str, Any]) -> None:
        kept = orders.where(orders.amount < rules["limit"])
        kept = kept.withColumn("limit", functions.lit(rules["limit"]))
        kept.write.mode("overwrite").parquet(str(self.folder / "out" / f"batch={batch}"))
        if self.fails:
            self.fails = False
            raise RuntimeError(f"batch {batch} is written with limit {rules['limit']}, and fails")


def run(folder: Path) -> tuple[int, list[tuple[int, list[int]]]]:
    """From which batch on the limit was lower, and the limits of each batch's rows."""
    with local_session("local[2]") as spark:
        orders = Orders(spark, folder)
        query = orders.start()
        first = orders.control.effective_from(0)
        print(f"batch {first} runs with limit 900")

        orders.fails = True
        try:
            query.awaitTermination()
        except StreamingQueryException:
            print("a batch has failed; the limit is lowered before it runs again")
        orders.control.update(limit=700)
        query = orders.start()
        since = orders.control.effective_from()
        while query.lastProgress is None or query.lastProgress.batchId < since + 2:
            query.awaitTermination(timeout=1)
        query.stop()
        rows = spark.read.parquet(str(folder / "out")).groupBy("batch")
        found = rows.agg(functions.collect_set("limit").alias("limits")).orderBy("batch")
        return since, [(row["batch"], sorted(row["limits"])) for row in found.collect()]


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        since, limits = run(folder)
    finally:
        shutil.rmtree(folder)
    print(f"limit 700 is in force from batch {since} on")
    for batch, of in limits:
        assert of == [700 if batch >= since else 900], (batch, of)
    print(f"{len(limits)} batches, each with one limit in all of its rows")


if __name__ == "__main__":
    main()
