"""The sink, frames and `once` through a server of Spark Connect, which pyspark brings:
`python connect_program.py ROOT`. Writes what it has seen as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from epochgate.spark.streaming import DirectoryLedger, NoQuery, once, register
from tests.spark.streaming.queries import Numbers

STARTS = 6
"""On a busy machine a worker of the server misses Spark's ten seconds."""


def main(root: Path) -> None:
    spark: Any = SparkSession.builder.remote("local[2]").getOrCreate()
    register(spark)
    query = Numbers(root, "delta")
    query.add_files(2)
    seen: dict[str, Any] = {"batches": [query.run(spark)]}
    query.forget_end(1)
    query.add_files(1)
    seen["batches"].append(query.run(spark))
    seen["is_once"] = query.rows() == query.expected

    target = str(root / "frames")
    writer = spark.range(3).write.format("epochgate").option("sink", "parquet")
    writer.mode("append").save(target)
    seen["frames"] = spark.read.parquet(target).count()

    sums, checkpoint = str(root / "sums"), str(root / "of_sums")

    def add_up(df: Any, batch: int) -> None:
        df.groupBy().sum("id").write.mode("append").json(sums)

    def run(function: Any) -> list[int]:
        batches = query.frame(spark).writeStream.foreachBatch(function)
        batches = batches.option("checkpointLocation", checkpoint).trigger(availableNow=True)
        started = start(batches)
        started.awaitTermination()
        return [progress["batchId"] for progress in started.recentProgress]

    ledger = DirectoryLedger(str(root / "ledger"))
    guarded = once(ledger, add_up, query="sums", checkpoint=checkpoint)
    seen["calls"] = [run(guarded)]
    for file in (root / "of_sums" / "commits").glob("*2*"):
        file.unlink()
    seen["calls"].append(run(guarded))
    lines = [line for file in Path(sums).glob("*.json") for line in file.read_text().split()]
    seen["sums"] = sorted(lines)
    query.add_files(1)
    try:
        run(once(ledger, add_up))
    except PySparkException as error:
        seen["without a name"] = NoQuery.__name__ in str(error)
    (root / "seen.json").write_text(json.dumps(seen))
    spark.stop()


def start(writer: Any) -> Any:
    """Start it, again where a worker of the server has come too late."""
    for _ in range(STARTS - 1):
        try:
            return writer.start()
        except PySparkException as error:
            if "failed to connect back" not in str(error):
                raise
    return writer.start()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
