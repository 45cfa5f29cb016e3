"""Compaction: the small files of a target are merged, in one step to readers and writers.

The machine `epochgate.models.compaction` says which step is next; a directory's steps are in
`directory`. Imports pyarrow, never pyspark.
"""

from __future__ import annotations

from epochgate.spark.compaction.result import CompactionResult, PartitionResult
from epochgate.spark.compaction.run import compact

__all__ = ["CompactionResult", "PartitionResult", "compact"]
