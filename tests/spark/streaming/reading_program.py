"""A driver whose query reads files by our source, which the test kills: reading_program.py FOLDER.

Each batch is written into a directory of its own, replaced as a whole when it runs again.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from epochgate.spark.session import local_session
from epochgate.spark.streaming import register


def run_query(spark: Any, folder: Path) -> None:
    """Run the query until what is there now is processed."""
    register(spark)

    def write(frame: Any, batch: int) -> None:
        frame.write.mode("overwrite").parquet(str(folder / "out" / f"{batch:03}"))
        sys.stdout.write(f"batch {batch}\n")
        sys.stdout.flush()

    reader = spark.readStream.format("epochgate").option("source", str(folder / "landing"))
    reader = reader.option("state", str(folder / "state")).option("settle", "0")
    query = (
        reader.option("maxSplitsPerBatch", "2")
        .load()
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    with local_session("local[1]") as session:
        run_query(session, Path(sys.argv[1]))
