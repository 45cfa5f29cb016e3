"""Reading a target: the rows of all checkpoints that are visible, wherever it lies.

Decides that a target in an object store is read by its log, once, at the start: what is committed
meanwhile is not seen, and what is removed meanwhile is an error. Leaves a directory to Arrow and
Spark, which need nothing of epochgate for it. Runs in the caller's process, or on Spark's
executors, which need epochgate and obstore installed, and the credentials in their environment.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from epochgate.errors import UsageError
from epochgate.runtime.objects.client import ObjectStore, is_url, open_url
from epochgate.runtime.objects.log import ObjectLog
from epochgate.spark.extras import library
from epochgate.spark.files.checkpoint_directory import CHECKPOINT_COLUMN
from epochgate.spark.parquet_sink.committable import written_schema
from epochgate.spark.parquet_sink.object_target import INITIAL, PRODUCT, fold, schema_of
from epochgate.spark.parquet_sink.partitions import with_columns

CHECKPOINT_FIELD: Final = pa.field(CHECKPOINT_COLUMN, pa.int64())
TRIES: Final = 3
FETCHES: Final = 8
"""Files fetched at the same time."""


class NotATarget(UsageError):
    """Nothing was committed there yet, or by something else: URL."""

    def __str__(self) -> str:
        return (
            f"{self.args[0]!r} holds no rows that a job of epochgate has committed: the job has "
            "committed none yet, or the URL is not the TARGET of `epochgate ingest`."
        )


class OfAnotherFormat(UsageError):
    """Its files do not tell which of them belong to it: TARGET."""

    def __str__(self) -> str:
        return (
            f"{self.args[0]!r} is a Delta table, whose log tells which of its files count: read it "
            "by DeltaTable(path).to_pyarrow_table(), of the package deltalake, or another reader "
            "of Delta. `epochgate.read` reads targets of Parquet files."
        )


def read(target: str, *, spark: Any = None) -> Any:
    """The rows of `target` as an Arrow table; given a Spark session, as a DataFrame.

    The column `checkpoint` tells in which checkpoint a row came. Raises NotATarget, OfAnotherFormat
    for a Delta table, and ObjectStoreUnusable for a URL that cannot be opened.
    """
    if target.startswith("delta:"):
        raise OfAnotherFormat(target)
    if not is_url(target):
        path = unquote(urlsplit(target).path) if target.startswith("file://") else target
        if os.path.isdir(os.path.join(path, "_delta_log")):
            raise OfAnotherFormat(target)
        return _read_directory(path) if spark is None else spark.read.parquet(path)
    objects = open_url(target)
    committed = _committed(objects)
    schema = schema_of(objects, committed)
    assert schema is not None, "there is a file, and each has a schema"
    schema = schema.append(CHECKPOINT_FIELD)
    files = {path: (one[0], one[4]) for path, one in committed.items()}
    fetch = partial(_fetch, objects, schema)
    if spark is not None:
        return _frame(spark, target, files, schema)
    with ThreadPoolExecutor(FETCHES) as pool:
        tables = list(pool.map(fetch, files, files.values()))
    return pa.concat_tables(tables)


def _read_directory(path: str) -> pa.Table:
    """A compaction that exchanges the directory meanwhile costs another look."""
    for _ in range(TRIES - 1):
        with contextlib.suppress(FileNotFoundError):
            return pq.read_table(path)
    return pq.read_table(path)


def _committed(objects: ObjectStore) -> Mapping[str, list[Any]]:
    """The files that are visible now, as the log's state has them. Raises NotATarget or OSError."""
    log = ObjectLog(objects, fold, INITIAL)
    log.refresh()
    files: Mapping[str, list[Any]] = log.state["files"]
    if log.state.get("product") != PRODUCT or not files:
        raise NotATarget(objects.url)
    return files


def _fetch(objects: ObjectStore, schema: pa.Schema, path: str, place: tuple[int, str]) -> pa.Table:
    """The rows of a file, as rows of the target's schema and the checkpoint."""
    checkpoint, directory = place
    data = pa.py_buffer(objects.get(path))
    written = written_schema(pa.BufferReader(data))
    table = with_columns(pq.read_table(pa.BufferReader(data)), directory, written)
    numbers = pa.array([checkpoint] * table.num_rows, CHECKPOINT_FIELD.type)
    table = table.append_column(CHECKPOINT_FIELD, numbers)
    # Columns that the file lacks have no value, also inside of structs and lists.
    widened = pa.concat_tables([schema.empty_table(), table], promote_options="permissive")
    return widened.select(schema.names).cast(schema)


def _frame(spark: Any, target: str, files: dict[str, tuple[int, str]], schema: pa.Schema) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    # Spark asks for it where it asks for Arrow.
    library("pandas", what="a DataFrame of a target in an object store", extra="pandas")
    rows = [(path, *place) for path, place in files.items()]
    listed = spark.createDataFrame(rows, "path string, checkpoint bigint, directory string")
    spread = listed.repartition(min(len(files), spark.sparkContext.defaultParallelism))
    with warnings.catch_warnings():
        # No frame of pandas is made of it, whatever its version.
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
        return spread.mapInArrow(partial(_fetch_listed, target, schema), from_arrow_schema(schema))


def _fetch_listed(
    target: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    objects = open_url(target)
    for batch in batches:
        for row in batch.to_pylist():
            place = (row["checkpoint"], row["directory"])
            yield from _fetch(objects, schema, row["path"], place).to_batches()
