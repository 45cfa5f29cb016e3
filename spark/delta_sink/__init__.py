"""Writing to Delta Lake tables exactly once: one entry of the table's log for each checkpoint.

Needs the extra `delta` on the driver; tasks need pyarrow alone. Imports no pyspark.
"""

from __future__ import annotations

from epochgate.spark.delta_sink.errors import LogFailed, LogOvertaken
from epochgate.spark.delta_sink.log import DeltaLog
from epochgate.spark.delta_sink.sink import DeltaCommitter, DeltaSink
from epochgate.spark.delta_sink.target import DeltaTarget
from epochgate.spark.tables.errors import TableAhead, TableBehind, TableTakenOver, TableUnusable

__all__ = [
    "DeltaCommitter",
    "DeltaLog",
    "DeltaSink",
    "DeltaTarget",
    "LogFailed",
    "LogOvertaken",
    "TableAhead",
    "TableBehind",
    "TableTakenOver",
    "TableUnusable",
]
