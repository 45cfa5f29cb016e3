"""Applies a user's function to the batches that were read, and names the rows it fails on.

Decides: which results are accepted. Leaves to others: loading the function, and what a failure
leads to.
Runs in a task, on its data thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import pyarrow as pa

from epochgate.runtime.api.own_frames import own_frames
from epochgate.spark.files.errors import TransformFailed
from epochgate.spark.files.reader import ReadBatch

TransformResult: TypeAlias = pa.RecordBatch | pa.Table | Iterable[pa.RecordBatch] | None
TransformFunction = Callable[[pa.RecordBatch], TransformResult]


_FRAME_PACKAGES = ("pandas.", "polars.", "pyspark.")
_FROM_PANDAS = "pyarrow.RecordBatch.from_pandas({}, preserve_index=False)"
_FROM_POLARS = "{}.to_arrow()"
_INSTEAD = {
    "pandas.DataFrame": _FROM_PANDAS.format("frame"),
    "pandas.Series": _FROM_PANDAS.format("series.to_frame()"),
    "polars.DataFrame": _FROM_POLARS.format("frame"),
    "polars.Series": _FROM_POLARS.format("series.to_frame()"),
    "polars.LazyFrame": _FROM_POLARS.format("frame.collect()"),
}
"""What to return instead of what is often returned; some of these are iterables of columns."""


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
                own_frames(error),
            ) from error


def _batches(result: TransformResult) -> Iterator[pa.RecordBatch]:
    if result is None:
        return
    if (advice := _INSTEAD.get(_kind(result))) is not None:
        raise TypeError(f"it returned a {_kind(result)}; return {advice}")
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
    """The type as it is imported: `pandas.DataFrame`, whatever module of pandas defines it.

    >>> _kind({})
    'dict'
    """
    module, name = type(value).__module__, type(value).__qualname__
    if module == "builtins":
        return name
    return f"{module.partition('.')[0] if module.startswith(_FRAME_PACKAGES) else module}.{name}"
