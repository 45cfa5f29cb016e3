"""Streaming queries over files of numbers, into each kind of target, and readers that are not the
sink's libraries.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.dataset

from tests.spark.tables import delta_replay, iceberg_replay

ROWS_PER_FILE = 10


@dataclass
class Numbers:
    """A query from a directory of files, one for each batch, into a target of the kind."""

    root: Path
    kind: str
    dsn: str = ""
    files: int = 0
    fault: Path = field(init=False)

    def __post_init__(self) -> None:
        self.source, self.checkpoint = self.root / "in", self.root / "checkpoint"
        self.target, self.fault = self.root / "out", self.root / "fault"
        self.source.mkdir(parents=True, exist_ok=True)
        if self.kind == "postgres":
            import psycopg

            with psycopg.connect(self.dsn) as connection:
                connection.execute("create table if not exists numbers (id bigint)")

    def add_files(self, count: int) -> None:
        """Files that the next batches read."""
        for number in range(self.files, self.files + count):
            first = number * ROWS_PER_FILE
            lines = [json.dumps({"id": n}) for n in range(first, first + ROWS_PER_FILE)]
            (self.source / f"{number:04d}.json").write_text("\n".join(lines))
        self.files += count

    @property
    def expected(self) -> list[int]:
        """Every row of the source once."""
        return list(range(self.files * ROWS_PER_FILE))

    def frame(self, spark: Any) -> Any:
        """The source as a stream, one file in each batch."""
        stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1)
        return stream.json(str(self.source))

    def options(self) -> dict[str, str]:
        """Of the sink."""
        if self.kind == "postgres":
            return {"sink": "postgres", "dsn": self.dsn, "table": "public.numbers"}
        if self.kind == "iceberg":
            place = self.root / "lake"
            place.mkdir(exist_ok=True)
            of_catalog = iceberg_replay.catalog(place).items()
            properties = {f"catalog.{key}": value for key, value in of_catalog}
            return {"sink": "iceberg", "table": "lake.sales.events", **properties}
        return {"sink": self.kind, "path": str(self.target)}

    def start(self, spark: Any, frame: Any = None, **options: str) -> Any:
        """Start the query; it ends once it has read what is there."""
        writer = (self.frame(spark) if frame is None else frame).writeStream
        for key, value in {**self.options(), **options}.items():
            writer = writer.option(key, value)
        form = "epochgate"
        if self.fault.exists():
            form = "faulty"
            writer = writer.option("fault", str(self.fault))
        checkpoint = options.get("checkpointLocation", str(self.checkpoint))
        return (
            writer.format(form)
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )

    def run(self, spark: Any, frame: Any = None, **options: str) -> list[int]:
        """To the end: the batches that ran. Raises what the query has failed with."""
        query = self.start(spark, frame, **options)
        query.awaitTermination()
        return [progress["batchId"] for progress in query.recentProgress]

    def rows(self) -> list[int]:
        """Return what a reader finds."""
        if self.kind == "postgres":
            import psycopg

            with psycopg.connect(self.dsn) as connection:
                return [n for (n,) in connection.execute("select id from numbers order by id")]
        if self.kind == "delta":
            return delta_replay.rows(self.target, "id")
        if self.kind == "iceberg":
            return iceberg_replay.rows(self.root / "lake", "id")
        found = pyarrow.dataset.dataset(str(self.target), format="parquet").to_table()
        return sorted(found["id"].to_pylist())

    def staged(self) -> list[Path]:
        """Files that wait for a commit, or for nothing."""
        places = [self.target / "_epochgate", self.root / ".out.epochgate"]
        return [path for place in places for path in place.glob("staged/*/*")]

    def forget_end(self, batch: int) -> None:
        """Let Spark's log of commits lack the batch, as if the driver had died before."""
        for path in (self.checkpoint / "commits").glob(f"*{batch}*"):
            path.unlink()

    def copy_checkpoint(self, name: str) -> Path:
        """A copy of the checkpoint location."""
        return Path(shutil.copytree(self.checkpoint, self.root / name))
