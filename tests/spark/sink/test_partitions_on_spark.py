"""Spark reads a partitioned target by its path, and shows partition and checkpoint as columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.spark.sink.test_partitions import VALUES, written

pytestmark = [pytest.mark.spark, pytest.mark.extended]


def test_spark_finds_every_row_with_its_partition(tmp_path: Path, spark: Any) -> None:
    written(tmp_path / "out", c=VALUES, x=list(range(len(VALUES)))).release()
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert {row.x: row.c for row in rows} == dict(enumerate(VALUES))
    assert {row.checkpoint for row in rows} == {7}
