"""Applies a user's function to the batches that were read, and names the rows it fails on.

Decides how a failure is told. Leaves to others: which arguments and results there are (`frames`),
loading the function, and what a failure leads to. Runs in a task, on its data thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from epochgate.runtime.api.own_frames import split_frames
from epochgate.runtime.api.raised import described, let_pass
from epochgate.spark.files.errors import TransformFailed
from epochgate.spark.files.frames import Takes, to_argument, to_batches
from epochgate.spark.files.reader import ReadBatch

TransformFunction = Callable[[Any], Any]
"""From a RecordBatch, Table or data frame to one, several batches, or none."""


class BatchTransform:
    """A function from a batch to a batch, a table, a frame, several batches or none; or the
    identity. `takes`: what it is given.

    The function must depend on its argument alone: after a failure it is called again, and not with
    the same batches.
    """

    def __init__(self, function: TransformFunction | None = None, takes: Takes = "arrow") -> None:
        self._function, self._takes = function, takes

    @property
    def is_given(self) -> bool:
        """True if it is another than the identity."""
        return self._function is not None

    def apply(self, read: ReadBatch) -> list[pa.RecordBatch]:
        """The resulting batches, without empty ones; `TransformFailed` if the function fails."""
        if self._function is None:
            return [read.batch]
        try:
            result = self._function(to_argument(read.batch, self._takes))
            return list(to_batches(result, self._takes, read.batch))
        # The user's code may raise anything; all of it is reported with the rows it happened on.
        except BaseException as error:
            let_pass(error)
            raise TransformFailed(
                read.split.path,
                read.split.split_id,
                read.rows.start,
                read.rows.stop,
                *split_frames(described(error)),
            ) from error
