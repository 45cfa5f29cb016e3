"""Writing to PostgreSQL exactly once: one transaction for each checkpoint, with its ledger row.

Needs the extra `postgres` on the driver and in the tasks, once one of its connections is made.
"""

from __future__ import annotations

from epochgate.spark.postgres_sink.errors import (
    ColumnReserved,
    DatabaseUnreachable,
    DsnUnreadable,
    RelationAhead,
    RelationBehind,
    RelationTakenOver,
    RelationUnusable,
    RowsLeftOut,
    RowsMissing,
    RowsRefused,
)
from epochgate.spark.postgres_sink.sink import PostgresCommitter, PostgresSink

__all__ = [
    "ColumnReserved",
    "DatabaseUnreachable",
    "DsnUnreadable",
    "PostgresCommitter",
    "PostgresSink",
    "RelationAhead",
    "RelationBehind",
    "RelationTakenOver",
    "RelationUnusable",
    "RowsLeftOut",
    "RowsMissing",
    "RowsRefused",
]
