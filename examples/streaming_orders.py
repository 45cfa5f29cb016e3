"""A streaming query into Parquet files, exactly once, and a function of foreachBatch beside it.

The driver is taken to have died after a commit that Spark has not logged: the batch is run again,
and its rows are there once. Run it from the checkout: `python examples/streaming_orders.py`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from epochgate.spark import local_session
from epochgate.spark.streaming import DirectoryLedger, once, register


def add_orders(landing: Path, first: int, count: int) -> None:
    """One file, which becomes one batch."""
    lines = [json.dumps({"id": n, "amount": 10 * n}) for n in range(first, first + count)]
    (landing / f"{first:06d}.json").write_text("\n".join(lines), encoding="utf-8")


def run(query: Any) -> list[int]:
    """The batches that a query has run, to the end of its input."""
    started = query.trigger(availableNow=True).start()
    started.awaitTermination()
    return [progress["batchId"] for progress in started.recentProgress]


def main(place: Path) -> int:
    """Run both queries twice. The number of rows that are not there once."""
    landing, target = place / "landing", place / "orders"
    landing.mkdir()
    add_orders(landing, 0, 100)
    add_orders(landing, 100, 100)
    counted: list[tuple[int, int]] = []

    def count(df: Any, batch: int) -> None:
        counted.append((batch, df.count()))

    with local_session("local[2]") as spark:
        register(spark)
        schema, one_file = "id long, amount long", {"maxFilesPerTrigger": "1"}
        orders = spark.readStream.schema(schema).options(**one_file).json(str(landing))
        checkpoint = place / "checkpoints"

        def to_parquet() -> Any:
            options = {"sink": "parquet", "path": str(target)}
            location = str(checkpoint / "orders")
            writer = orders.writeStream.format("epochgate").options(**options)
            return writer.option("checkpointLocation", location)

        def to_function() -> Any:
            location = str(checkpoint / "counts")
            ledger = DirectoryLedger(str(place / "ledger"))
            function = once(ledger, count, checkpoint=location)
            writer = orders.writeStream.foreachBatch(function)
            return writer.option("checkpointLocation", location)

        print("batches:", run(to_parquet()), run(to_function()))
        for query in ("orders", "counts"):
            for file in (checkpoint / query / "commits").glob("*1*"):
                file.unlink()
        print("batch 1 again:", run(to_parquet()), run(to_function()))
        rows = spark.read.parquet(str(target)).count()
    print(f"{rows} rows in {target.name}, batches counted: {counted}")
    return abs(rows - 200) + abs(len(counted) - 2)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(main(Path(folder)))
