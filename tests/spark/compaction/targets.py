"""Directory targets with small files, and what every reader finds in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from epochgate.runtime.filesystem import FileSystem
from epochgate.spark.parquet_sink import Committable, ParquetTarget, StagingWriter

JOB = "job"
Rows = dict[str, list[Any]]


def claimed(path: Path, run: str, restored: int | None, **options: Any) -> ParquetTarget:
    """The target, claimed by a run that goes on from checkpoint `restored`."""
    target = ParquetTarget(path, JOB, run)
    target.claim(restored, **options)
    return target


def staged(
    target: ParquetTarget, run: str, checkpoint: int, rows: Rows, **options: Any
) -> list[Committable]:
    """Return what two subtasks have staged for a checkpoint: the first row, and the rest."""
    committables = []
    for subtask, part in enumerate((slice(0, 1), slice(1, None))):
        writer = StagingWriter(
            target.working_directory, run, subtask, attempt=checkpoint, **options
        )
        writer.write(pa.RecordBatch.from_pydict({name: all_[part] for name, all_ in rows.items()}))
        committables += writer.prepare_commit(checkpoint)
    return committables


def committed(target: ParquetTarget, run: str, checkpoint: int, rows: Rows, **options: Any) -> None:
    """Commit a checkpoint with these rows."""
    target.commit(checkpoint, staged(target, run, checkpoint, rows, **options))


def small_files(path: Path, checkpoints: int = 6, files: FileSystem | None = None) -> list[int]:
    """A target of `checkpoints`, each of two files and three rows; returns the rows."""
    target = ParquetTarget(path, JOB, "r1", files=files)
    target.claim(None)
    rows = []
    for checkpoint in range(1, checkpoints + 1):
        new = [10 * checkpoint + n for n in range(3)]
        committed(target, "r1", checkpoint, {"x": new})
        rows += new
    target.release()
    return rows


def rows_in(path: Path, column: str = "x") -> list[int]:
    """Return what DuckDB reads, which leaves no file out."""
    query = f"select {column} from read_parquet('{path}/**', union_by_name=true) order by all"
    return [row[0] for row in duckdb.execute(query).fetchall()]


def files_in(path: Path) -> list[str]:
    """The Parquet files of a target, relative to it."""
    return sorted(str(one.relative_to(path)) for one in path.rglob("*.parquet"))
