"""Writing to Apache Iceberg tables exactly once: one snapshot of the table for each checkpoint.

Needs the extra `iceberg` on the driver; tasks need pyarrow alone. Imports no pyspark.
"""

from __future__ import annotations

from epochgate.spark.iceberg_sink.errors import (
    CatalogUnusable,
    OutcomeUnknown,
    TableOvertaken,
    TableRolledBack,
)
from epochgate.spark.iceberg_sink.sink import IcebergCommitter, IcebergSink
from epochgate.spark.iceberg_sink.table import IcebergTable
from epochgate.spark.iceberg_sink.target import IcebergTarget
from epochgate.spark.tables.errors import TableAhead, TableBehind, TableTakenOver, TableUnusable

__all__ = [
    "CatalogUnusable",
    "IcebergCommitter",
    "IcebergSink",
    "IcebergTable",
    "IcebergTarget",
    "OutcomeUnknown",
    "TableAhead",
    "TableBehind",
    "TableOvertaken",
    "TableRolledBack",
    "TableTakenOver",
    "TableUnusable",
]
