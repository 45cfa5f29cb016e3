"""Values of Parquet files that reading could change: each arrives as it was, or is refused."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epochgate.spark.files import BadFile
from epochgate.spark.files.parquet_values import rows_at_once
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


NANOSECOND = 1704164645123456789
DEEP = {
    "list": pa.array([[0], [1000, NANOSECOND], None], pa.list_(pa.timestamp("ns"))),
    "struct": pa.array([None, {"at": NANOSECOND}], pa.struct([("at", pa.timestamp("ns"))])),
    "map": pa.array([[("k", NANOSECOND)]], pa.map_(pa.string(), pa.timestamp("ns"))),
    "a.dotted": pa.array([NANOSECOND], pa.timestamp("ns")),
}


@pytest.mark.parametrize("name", DEEP)
def test_nanoseconds_of_int96_are_refused_wherever_they_lie(tmp_path: Path, name: str) -> None:
    (tmp_path / "in").mkdir()
    table = pa.table({name: DEEP[name], "id": range(len(DEEP[name]))})
    pq.write_table(table, tmp_path / "in" / "a.parquet", use_deprecated_int96_timestamps=True)
    with pytest.raises(BadFile, match=rf"column '{name}'.*INT96 with nanoseconds \(...123456789\)"):
        rows(tmp_path / "in")
    assert [row["id"] for row in rows(tmp_path / "in", projection=["id"])] == [*range(len(table))]


NOT_UTF_8 = pa.array([b"good", b"a\xffb"])


@pytest.mark.parametrize(
    "texts",
    [
        NOT_UTF_8.view(pa.string()),
        NOT_UTF_8.cast(pa.large_binary()).view(pa.large_string()),
        NOT_UTF_8.view(pa.string()).dictionary_encode(),
        pa.ListArray.from_arrays([0, 1, 2], NOT_UTF_8.view(pa.string())),
    ],
    ids=lambda one: str(one.type),
)
def test_bytes_that_are_no_text_are_refused_wherever_they_lie(
    tmp_path: Path, texts: pa.Array
) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"x": texts, "id": [1, 2]}), tmp_path / "in" / "a.parquet")
    with pytest.raises(BadFile, match="column 'x': its text is no UTF-8"):
        rows(tmp_path / "in")
    assert [row["id"] for row in rows(tmp_path / "in", projection=["id"])] == [1, 2]


def test_a_small_file_with_a_row_of_hundreds_of_megabytes_is_bad(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "a.parquet"
    pq.write_table(pa.table({"id": [1], "s": ["a" * (65 << 20)]}), path, compression="zstd")
    assert path.stat().st_size < 1 << 16
    with pytest.raises(BadFile, match=r"row group 0, row 0.*a row has 68\d+ bytes on average"):
        rows(tmp_path / "in")


def test_fewer_rows_are_read_at_once_where_they_are_long(tmp_path: Path) -> None:
    table = pa.table({"s": [chr(at) * (1 << 20) for at in range(97, 107)]})
    pq.write_table(table, tmp_path / "a.parquet", use_dictionary=False)
    group = pq.ParquetFile(tmp_path / "a.parquet").metadata.row_group(0)
    assert (rows_at_once(group, 65_536), rows_at_once(group, 10)) == (63, 10)
