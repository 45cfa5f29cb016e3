"""A driver whose control has a coordinator, which the test kills: python coordinated_program.py
FOLDER BATCH.

It reads one file of numbers to a batch, and writes each with the limit that the coordinator chose.
In BATCH it says so and waits, between the decision and the first write, to be killed. The
coordinator notes its calls in FOLDER/calls, one JSON to a line, with the batches that Spark had
logged as done.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from pyspark.sql.functions import lit

from epochgate.runtime import CoordinatorContext, CoordinatorProvider
from epochgate.spark.session import local_session
from epochgate.spark.streaming import BatchCoordinator, Control, NextBatch


class Lowering(BatchCoordinator):
    """Chooses a limit that is one lower in each batch."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._lowered = folder, 0

    def start(self) -> None:
        self._note("start", self._lowered)

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        self._lowered = int(state or b"0")

    def choose(self, next_batch: NextBatch) -> Mapping[str, Any]:
        self._lowered += 1
        self._note("choose", next_batch.batch, next_batch.returned)
        return {"limit": next_batch.values["limit"] - self._lowered}

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        result.set_result(str(self._lowered).encode())

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._note("complete", checkpoint_id)

    def close(self) -> None:
        self._note("close")

    def _note(self, *call: Any) -> None:
        done = [path.name for path in (self._folder / "checkpoint" / "commits").glob("[0-9]*")]
        with open(self._folder / "calls", "a") as file:
            file.write(json.dumps([list(call), sorted(map(int, done))]) + "\n")


class Provider(CoordinatorProvider):
    """Of the coordinator of a query in a folder."""

    operator_id = "lowering"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def create(self, context: CoordinatorContext) -> Lowering:
        return Lowering(self._folder)


def control_in(folder: Path) -> Control:
    """The control of the query in a folder."""
    store = str(folder / "controls")
    return Control("pricing", {"limit": 900}, store=store, coordinator=Provider(folder))


def say(line: str) -> None:
    """To the test, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def run_query(spark: Any, folder: Path, control: Control, *, waits_in: int = -1) -> None:
    """Run the query until all files are processed."""

    def write(frame: Any, batch: int, values: dict[str, Any]) -> int:
        if batch == waits_in:
            say(f"batch {batch} has limit {values['limit']}")
            time.sleep(100)
        marked = frame.withColumn("limit", lit(values["limit"])).withColumn("batch", lit(batch))
        marked.write.mode("overwrite").parquet(str(folder / "out" / f"{batch:03}"))
        rows: int = frame.count()
        return rows

    numbers = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1)
    query = (
        numbers.parquet(str(folder / "landing"))
        .writeStream.foreachBatch(control.apply(write))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    with local_session("local[1]") as session:
        of = Path(sys.argv[1])
        run_query(session, of, control_in(of), waits_in=int(sys.argv[2]))
