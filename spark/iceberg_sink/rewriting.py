"""Files of an Iceberg table, as they are found by the values of columns and read whole.

Decides nothing: the library leaves out files by the statistics that the table keeps of them, and
rows that are deleted by their places. Runs on the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyiceberg.expressions import (
    AlwaysTrue,
    And,
    BooleanExpression,
    GreaterThanOrEqual,
    LessThanOrEqual,
    Reference,
)
from pyiceberg.io.pyarrow import ArrowScan


def with_keys(table: Any, ends: Sequence[tuple[str, Any, Any]]) -> list[Any]:
    """The files that may have rows of which each of these columns is between two values."""
    if table.current_snapshot() is None or not table.schema().fields:
        return []
    row_filter: BooleanExpression = AlwaysTrue()
    for name, least, greatest in ends:
        at_least = GreaterThanOrEqual(term=Reference(name), value=least)
        at_most = LessThanOrEqual(term=Reference(name), value=greatest)
        row_filter = And(row_filter, And(at_least, at_most))
    return list(table.scan(row_filter=row_filter).plan_files())


def read(table: Any, task: Any, columns: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
    """The rows of one of these files, or some columns of it."""
    schema = table.schema()
    if columns:
        schema = schema.select(*columns)
    scan = ArrowScan(table.metadata, table.io, schema, AlwaysTrue())
    yield from scan.to_record_batches([task])
