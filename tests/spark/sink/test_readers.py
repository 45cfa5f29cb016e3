"""Readers that know nothing of epochgate find every visible row of a target, without an option.

Spark is among them in tests/spark/ingest/test_killed_processes.py.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from epochgate.spark.files.column_names import NameTwice
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
    target.release()
    return [(7, 7), (8, 7), (12, 12), (13, 12)]


def of_frame(frame: pd.DataFrame) -> Rows:
    return [
        (int(x), int(checkpoint)) for x, checkpoint in zip(frame.x, frame.checkpoint, strict=True)
    ]


def of_duckdb(files: str) -> Rows:
    # DuckDB takes a number with leading zeros for a text.
    return duckdb.execute(f"select x, checkpoint::int from {files}").fetchall()


READERS: dict[str, Callable[[Path], Rows]] = {
    "duckdb.files": lambda path: of_duckdb(f"read_parquet('{path}/**/*.parquet')"),
    "duckdb.everything": lambda path: of_duckdb(f"read_parquet('{path}/**')"),
    "duckdb.directory": lambda path: of_duckdb(f"read_parquet('{path}')"),
    "polars": lambda path: pl.read_parquet(path).select("x", "checkpoint").rows(),
    "polars.lazy": lambda path: pl.scan_parquet(path).select("x", "checkpoint").collect().rows(),
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


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_of_a_target_that_is_being_written_sees_whole_checkpoints(
    tmp_path: Path, reader: str
) -> None:
    written(tmp_path / "out")
    has_ended = threading.Event()

    def write() -> None:
        target = ParquetTarget(tmp_path / "out", "job", "r2")
        target.claim(12)
        for checkpoint in range(13, 33):
            files = []
            for subtask in range(2):
                writer = StagingWriter(target.working_directory, "r2", subtask, checkpoint)
                writer.write(pa.RecordBatch.from_pydict({"x": [checkpoint, checkpoint]}))
                files += writer.prepare_commit(checkpoint)
            target.commit(checkpoint, files)
        target.release()
        has_ended.set()

    writing = threading.Thread(target=write)
    writing.start()
    last = 12
    while last < 32:
        is_last = has_ended.is_set()
        counts = Counter(checkpoint for _, checkpoint in READERS[reader](tmp_path / "out"))
        newer = {checkpoint: rows for checkpoint, rows in counts.items() if checkpoint > 12}
        assert newer == dict.fromkeys(range(13, 13 + len(newer)), 4)
        assert max(counts) >= last
        last = max(counts)
        assert last == 32 or not is_last
    writing.join()


@pytest.mark.parametrize("name", ["checkpoint", "Checkpoint"])
def test_data_with_a_column_of_the_partitions_name_is_refused(tmp_path: Path, name: str) -> None:
    writer = StagingWriter(tmp_path, "r1", 0, 1)
    with pytest.raises(ReservedColumn, match="Rename it, then"):
        writer.write(pa.RecordBatch.from_pydict({name: [1]}))


@pytest.mark.parametrize("other", ["id", "ID"])
def test_data_with_names_that_are_one_to_spark_is_refused(tmp_path: Path, other: str) -> None:
    one = pa.array([1])
    writer = StagingWriter(tmp_path, "r1", 0, 1)
    with pytest.raises(NameTwice, match=f"'id' and '{other}' are the same column to Spark"):
        writer.write(pa.RecordBatch.from_arrays([one, one], names=["id", other]))
