"""Registers the data source `epochgate` with a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochgate.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class NoDataSources(UsageError):
    """The session's Spark has no Python data sources: its version."""

    def __str__(self) -> str:
        return (
            f"Spark {self.args[0]} has no Python data sources, which need Spark 4.0; use "
            "foreachBatch with epochgate.spark.streaming.once instead"
        )


def register(spark: SparkSession) -> None:
    """Register `format("epochgate")` with this session, also with one of Spark Connect.

    A repeated call is a no-op. The package must be installed where Spark's Python workers run.
    Raises NoDataSources.
    """
    if not hasattr(spark, "dataSource"):
        raise NoDataSources(spark.version)
    from epochgate.spark.streaming.sink import Sink

    spark.dataSource.register(Sink)
