"""Makes `format("epochgate")` known to a session: Spark keeps data sources by session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochgate.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class NoDataSources(UsageError):
    """The session's Spark has no data sources in Python: its version."""

    def __str__(self) -> str:
        return (
            f"Spark {self.args[0]} has no data sources in Python, which came with 4.0; "
            "foreachBatch with epochgate.spark.streaming.once works on it"
        )


def register(spark: SparkSession) -> None:
    """Make `format("epochgate")` known to this session, also one of Spark Connect; again does no
    harm. The package has to be installed where Spark's Python workers run. Raises NoDataSources.
    """
    if not hasattr(spark, "dataSource"):
        raise NoDataSources(spark.version)
    from epochgate.spark.streaming.sink import Sink

    spark.dataSource.register(Sink)
