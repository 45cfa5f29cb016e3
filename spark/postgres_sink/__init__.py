"""Writing to PostgreSQL exactly once: one transaction for each checkpoint, with its ledger row.

Needs the extra `postgres` on the driver and in the tasks, once one of its connections is made.
"""

from __future__ import annotations

from epochgate.spark.postgres_sink.errors import (
    ColumnReserved,
    DatabaseUnreachable,
    DsnUnreadable,
    RowsLeftOut,
    RowsMissing,
    RowsRefused,
)
from epochgate.spark.postgres_sink.sink import PostgresCommitter, PostgresSink
from epochgate.spark.tables.errors import TableAhead, TableBehind, TableTakenOver, TableUnusable

__all__ = [
    "ColumnReserved",
    "DatabaseUnreachable",
    "DsnUnreadable",
    "PostgresCommitter",
    "PostgresSink",
    "RowsLeftOut",
    "RowsMissing",
    "RowsRefused",
    "TableAhead",
    "TableBehind",
    "TableTakenOver",
    "TableUnusable",
]
