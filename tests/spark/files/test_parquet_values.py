"""Values of Parquet files that reading could change: each arrives as it was, or is refused."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.files.reading import rows

FAR = [datetime(2024, 1, 2, 3, 4, 5), datetime(9999, 12, 31), datetime(1, 1, 1)]


@pytest.mark.parametrize("schema", [None, pa.schema([("at", pa.timestamp("us"))])])
def test_moments_of_any_year_are_read_from_int96(tmp_path: Path, schema: pa.Schema | None) -> None:
    (tmp_path / "in").mkdir()
    table = pa.table({"at": pa.array(FAR, pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "in" / "a.parquet", use_deprecated_int96_timestamps=True)
    assert [row["at"] for row in rows(tmp_path / "in", schema=schema)] == FAR
