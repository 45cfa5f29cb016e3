"""Applies a user's function to the batches that were read, and names the rows it fails on.

Decides: which results are accepted. Leaves to others: loading the function, and what a failure
leads to.
Runs in a task, on its data thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import pyarrow as pa

from epochgate.spark.files.errors import TransformFailed
from epochgate.spark.files.reader import ReadBatch

TransformResult: TypeAlias = pa.RecordBatch | pa.Table | Iterable[pa.RecordBatch] | None
TransformFunction = Callable[[pa.RecordBatch], TransformResult]


class BatchTransform:
    """A function from a batch to a batch, a table, several batches or none; or the identity.

    The function must depend on its argument alone: after a failure it is called again, and not with
    the same batches.
    """

    def __init__(self, function: TransformFunction | None = None) -> None:
        self._function = function

    def apply(self, read: ReadBatch) -> list[pa.RecordBatch]:
        """The resulting batches, without empty ones; `TransformFailed` if the function fails."""
        if self._function is None:
            return [read.batch]
        try:
            result = self._function(read.batch)
            return [batch for batch in _batches(result) if batch.num_rows > 0]
        # The user's code may raise anything; all of it is reported with the rows it happened on.
        except Exception as error:
            raise TransformFailed(
                read.split.path,
                read.split.split_id,
                read.rows.start,
                read.rows.stop,
                f"{type(error).__name__}: {error}",
            ) from error


def _batches(result: TransformResult) -> Iterator[pa.RecordBatch]:
    if result is None:
        return
    if isinstance(result, pa.RecordBatch):
        yield result
    elif isinstance(result, pa.Table):
        yield from result.to_batches()
    elif isinstance(result, Iterable) and not isinstance(result, (str, bytes, dict)):
        for batch in result:
            if not isinstance(batch, pa.RecordBatch):
                raise TypeError(f"expected RecordBatch in the iterable, got {_kind(batch)}")
            yield batch
    else:
        raise TypeError(
            f"expected RecordBatch, Table, an iterable of RecordBatch or None, got {_kind(result)}"
        )


def _kind(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
