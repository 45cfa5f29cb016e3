"""The doors of streaming queries, in one process: what Spark calls, in the order of a batch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from epochgate.errors import EpochgateError
from epochgate.spark.streaming.identity import BATCH_ID, QUERY_ID
from epochgate.spark.streaming.sink import Sink
from tests.spark.values.cells import Rows
from tests.spark.values.targets import Outcome, Target, of_files


def spelled(options: dict[str, Any]) -> dict[str, str]:
    """Options as Spark has them."""
    own = {key: str(value) for key, value in options.items()}
    if "null" in own:
        own["null"] = options["null"][0]
        own["header"] = own["header"].lower()
    return own


class Stream(Target):
    """Parquet files that a query fills."""

    lacks_types = True
    is_ingestion = False

    def ingest(self, *, schema: pa.Schema | None = None, **options: Any) -> Outcome:
        """One batch of all files; without a schema, of the columns that the files tell."""
        for of_ingestions in ("schema_evolution", "split_bytes_target"):
            options.pop(of_ingestions, None)
        given = spelled(options)
        given["batchRows"] = given.pop("batch_rows", "100")
        given |= {"source": str(self.place / "in"), "state": str(self.place / "state")}
        try:
            self._run_batch({**given, "settle": "0"}, schema)
        except EpochgateError as error:
            return Outcome(str(error))
        return Outcome()

    def rows(self) -> Rows:
        return of_files(sorted((self.place / "out").rglob("*.parquet")))

    def _run_batch(self, given: dict[str, str], schema: pa.Schema | None) -> None:
        door = Sink(given)
        columns = door.schema() if schema is None else from_arrow_schema(schema)
        reader = door.streamReader(StructType.fromJson(json.loads(columns.json())))
        try:
            begun = reader.initialOffset()
            planned = reader.latestOffset(begun, reader.getDefaultReadLimit())
            partitions = reader.partitions(begun, planned)
            to = {"sink": "parquet", "path": str(self.place / "out")}
            writing = Sink({**to, "checkpointLocation": str(self.place / "checkpoint")})
            writer = writing.streamWriter(columns, overwrite=False)
            messages = []
            for number, partition in enumerate(partitions):
                with in_task(number):
                    messages.append(writer.write(iter(reader.read(partition))))
            writer.commit(messages, 0)
        finally:
            reader.stop()


@contextmanager
def in_task(number: int) -> Iterator[None]:
    """Return what Spark's worker does before it calls the code of a task of batch 0."""
    context = TaskContext._getOrCreate()
    context._partitionId = context._taskAttemptId = number
    context._localProperties = {QUERY_ID: "query", BATCH_ID: "0"}
    try:
        yield
    finally:
        TaskContext._taskContext = None
