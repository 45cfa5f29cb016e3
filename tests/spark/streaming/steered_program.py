"""A driver with a steered query, which the test kills: python steered_program.py FOLDER BATCH
[MASTER].

It reads one file of numbers to a batch, and writes each with the limit that the batch has, through
Python workers. In BATCH it says so and waits to be killed, between the decision and the first
write.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql.functions import lit

from epochgate.spark.session import local_session
from epochgate.spark.streaming import Control
from tests.spark.shared import executor_settings


def control_in(folder: Path) -> Control:
    """The control of the query in a folder."""
    return Control("pricing", {"limit": 900}, store=str(folder / "controls"))


def say(line: str) -> None:
    """To the test, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def run_query(spark: Any, folder: Path, *, waits_in: int = -1) -> None:
    """Run the query until all files are processed."""

    def write(frame: Any, batch: int, values: dict[str, Any]) -> None:
        if batch == waits_in:
            say(f"batch {batch} has limit {values['limit']}")
            time.sleep(100)
        passed = frame.mapInArrow(lambda batches: batches, "id long")
        marked = passed.withColumn("limit", lit(values["limit"])).withColumn("batch", lit(batch))
        marked.write.mode("overwrite").parquet(str(folder / "out" / f"{batch:03}"))
        say(f"batch {batch} is written with limit {values['limit']}")

    numbers = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1)
    query = (
        numbers.parquet(str(folder / "landing"))
        .writeStream.foreachBatch(control_in(folder).apply(write))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    folder, waits_in, *master = sys.argv[1:]
    with local_session(*(master or ["local[1]"]), settings=executor_settings()) as session:
        run_query(session, Path(folder), waits_in=int(waits_in))
