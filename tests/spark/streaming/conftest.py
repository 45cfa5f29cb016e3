"""The PostgreSQL server of the tests of tables."""

from __future__ import annotations

from tests.spark.tables.conftest import dsn as dsn, server as server
