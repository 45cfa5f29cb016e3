"""The PostgreSQL server of the tests of tables, and the session in which the sink is known."""

from __future__ import annotations

from typing import Any

import pytest

from epochgate.spark.streaming import register


@pytest.fixture
def session(spark: Any) -> Any:
    """The shared session, in which the sink and the faulty one are known."""
    pytest.importorskip("pyspark.sql.datasource", reason="Spark 3.5 has no data sources in Python")
    from tests.spark.streaming.faulty_sink import FaultySink

    register(spark)
    spark.dataSource.register(FaultySink)
    return spark
