"""Readers that know nothing of epochgate find every visible row of a target, without an option."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from epochgate.runtime.filesystem import TEMPORARY_SUFFIX
from epochgate.spark.parquet_sink import ParquetTarget, ReservedColumn, StagingWriter

Rows = list[tuple[int, int]]


def written(path: Path) -> Rows:
    """A target with two checkpoints, what a crash may leave in it, and files that are staged."""
    target = ParquetTarget(path, "job", "r1")
    target.claim(None)
    for checkpoint in (7, 12):
        writer = StagingWriter(target.working_directory, "r1", 0, attempt=checkpoint)
        writer.write(pa.RecordBatch.from_pydict({"x": [checkpoint, checkpoint + 1]}))
        target.commit(checkpoint, writer.prepare_commit(checkpoint))
    writer = StagingWriter(target.working_directory, "r1", 1, attempt=13)
    writer.write(pa.RecordBatch.from_pydict({"x": [99]}))
    writer.prepare_commit(13)
    (path / f".left{TEMPORARY_SUFFIX}").write_bytes(b"half of a marker")
    target.release()
    return [(7, 7), (8, 7), (12, 12), (13, 12)]


def of_frame(frame: pd.DataFrame) -> Rows:
    return [
        (int(x), int(checkpoint)) for x, checkpoint in zip(frame.x, frame.checkpoint, strict=True)
    ]


READERS: dict[str, Callable[[Path], Rows]] = {
    "duckdb": lambda path: duckdb.execute(
        # DuckDB takes a number with leading zeros for a text.
        f"select x, checkpoint::int from read_parquet('{path}/**/*.parquet')"
    ).fetchall(),
    "pandas": lambda path: of_frame(pd.read_parquet(path)),
    "pyarrow": lambda path: of_frame(pq.read_table(path).to_pandas()),
    "pyarrow.dataset": lambda path: of_frame(
        pa.dataset.dataset(path, partitioning="hive").to_table().to_pandas()
    ),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_finds_every_row_and_its_checkpoint(tmp_path: Path, reader: str) -> None:
    expected = written(tmp_path / "out")
    assert sorted(READERS[reader](tmp_path / "out")) == expected


@pytest.mark.parametrize("name", ["checkpoint", "Checkpoint"])
def test_data_with_a_column_of_the_partitions_name_is_refused(tmp_path: Path, name: str) -> None:
    writer = StagingWriter(tmp_path, "r1", 0, 1)
    with pytest.raises(ReservedColumn, match="Rename it in the transform"):
        writer.write(pa.RecordBatch.from_pydict({name: [1]}))
