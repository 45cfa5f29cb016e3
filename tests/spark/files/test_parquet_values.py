"""Values of Parquet files that reading could change: each arrives as it was, or is refused."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.files.reading import rows
from tests.spark.ingest.simulated import SimulatedIngest, options_for

FAR = [datetime(2024, 1, 2, 3, 4, 5), datetime(9999, 12, 31), datetime(1, 1, 1)]


@pytest.mark.parametrize("schema", [None, pa.schema([("at", pa.timestamp("us"))])])
def test_moments_of_any_year_are_read_from_int96(tmp_path: Path, schema: pa.Schema | None) -> None:
    (tmp_path / "in").mkdir()
    table = pa.table({"at": pa.array(FAR, pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "in" / "a.parquet", use_deprecated_int96_timestamps=True)
    assert [row["at"] for row in rows(tmp_path / "in", schema=schema)] == FAR


def test_a_map_whose_file_calls_its_insides_by_names_of_its_own_arrives(tmp_path: Path) -> None:
    kind = pa.map_(pa.field("k", pa.string(), nullable=False), pa.field("a", pa.int64()))
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"m": pa.array([[("x", 1)]], kind)}), tmp_path / "in" / "a.parquet")
    simulated = SimulatedIngest(options_for(tmp_path))
    simulated.run()
    assert simulated.leave().state == "finished"
    assert [row["m"] for row in rows(tmp_path / "out")] == [[("x", 1)]]
