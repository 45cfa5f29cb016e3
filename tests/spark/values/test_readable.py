"""Spark reads, with no option, every column that a Parquet target may have."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from epochgate.spark.streaming.targets.parquet import ParquetBatches
from tests.spark.values.test_types_by_target import committed, wide

pytestmark = [pytest.mark.spark, pytest.mark.extended]


def test_spark_reads_each_column_of_a_parquet_target(tmp_path: Path, spark: Any) -> None:
    table = wide("Parquet")
    committed(ParquetBatches(str(tmp_path / "out")), table)
    frame = spark.read.parquet(str(tmp_path / "out"))
    found = frame.toArrow()
    assert found.num_rows == table.num_rows
    for name, column in zip(table.column_names, table.columns, strict=True):
        assert found[name].null_count == column.null_count, (name, column.type)
    kinds = {one.name: one.dataType.simpleString() for one in frame.schema.fields}
    at = next(n for n in table.column_names if table.schema.field(n).type == pa.timestamp("ns"))
    assert kinds[at] == "timestamp_ntz"
    assert found[at][0].as_py() == dt.datetime(2024, 7, 1, 12)
