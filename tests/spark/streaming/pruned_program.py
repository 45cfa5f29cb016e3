"""A driver whose query reads files that a control prunes, which the test kills: pruned_program.py
FOLDER BATCH.

Each batch is written into a directory of its own, replaced as a whole when it runs again. In BATCH
the driver says so and waits, between the plan and the first write, to be killed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from epochgate.spark.session import local_session
from epochgate.spark.streaming import Control, register

WHERE = "region IN :regions AND id >= :least"


def control_in(folder: Path) -> Control:
    """The control of the query in a folder."""
    return Control("reading", {"regions": None, "least": 0}, store=str(folder / "controls"))


def say(line: str) -> None:
    """To the test, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def run_query(spark: Any, folder: Path, *, waits_in: int = -1) -> None:
    """Run the query until what is there now is read or pruned."""
    register(spark)

    def write(frame: Any, batch: int) -> None:
        if batch == waits_in:
            say(f"batch {batch} is planned")
            time.sleep(100)
        frame.write.mode("overwrite").parquet(str(folder / "out" / f"{batch:03}"))

    query = (
        spark.readStream.format("epochgate")
        .options(**control_in(folder).source_options(WHERE))
        .schema("id long, region string")
        .option("source", str(folder / "landing"))
        .option("state", str(folder / "state"))
        .option("settle", "0")
        .option("maxSplitsPerBatch", "2")
        .load()
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    with local_session("local[1]") as session:
        run_query(session, Path(sys.argv[1]), waits_in=int(sys.argv[2]))
