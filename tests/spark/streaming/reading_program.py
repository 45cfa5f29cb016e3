"""A driver whose query reads files by our source, which the test kills: reading_program.py FOLDER.

Each batch is written into a directory of its own, replaced as a whole when it runs again, and told.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from epochgate.spark.session import local_session
from epochgate.spark.streaming import register

Told = Callable[[int], None]


def say(line: str) -> None:
    """To the test, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def nothing(batch: int) -> None:
    """Leave it at that."""


def run_query(
    spark: Any,
    folder: Path,
    options: Mapping[str, str],
    *,
    schema: str | None = None,
    before: Told = nothing,
    after: Told = nothing,
) -> None:
    """Run the query until what is there now is processed; `before` and `after` are told the number
    of each batch that is written.
    """
    register(spark)

    def write(frame: Any, batch: int) -> None:
        before(batch)
        frame.write.mode("overwrite").parquet(str(folder / "out" / f"{batch:03}"))
        after(batch)

    reader = spark.readStream.format("epochgate").options(**options)
    query = (
        (reader if schema is None else reader.schema(schema))
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
        run_query(session, Path(sys.argv[1]), {}, after=lambda batch: say(f"batch {batch}"))
