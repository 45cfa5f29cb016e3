"""Rows of Spark as Arrow batches, for a Spark whose stream writers get rows (4.0).

Leaves the types to Spark's own conversion. Runs in tasks.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql.types import Row, StructType

ROWS_PER_BATCH = 10_000


def as_batches(rows: Iterator[Row], schema: StructType) -> Iterator[pa.RecordBatch]:
    """The rows, some thousands at a time."""
    from pyspark.sql.pandas.types import to_arrow_schema

    arrow = to_arrow_schema(schema)
    while some := list(itertools.islice(rows, ROWS_PER_BATCH)):
        columns = [pa.array([row[at] for row in some], kind) for at, kind in enumerate(arrow.types)]
        yield pa.RecordBatch.from_arrays(columns, schema=arrow)
