"""Small files become few, and every reader, and the job that goes on, find the same rows."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epochgate.errors import UsageError
from epochgate.runtime.filesystem import LocalFileSystem
from epochgate.spark.compaction import compact
from epochgate.spark.compaction.errors import (
    CompactionRunning,
    ForeignFile,
    NothingThere,
    OthersCompact,
    TargetTooOld,
)
from epochgate.spark.files import FileEnumeration
from epochgate.spark.files.errors import SourceCompacted
from epochgate.spark.parquet_sink import (
    CommitOutOfOrder,
    CommittableDamaged,
    TargetAhead,
    TargetCompacted,
)
from tests.spark.compaction.targets import (
    Rows,
    claimed,
    committed,
    files_in,
    rows_in,
    small_files,
    staged,
)

READERS: dict[str, Callable[[Path], list[Any]]] = {
    "duckdb": lambda path: duckdb.execute(
        f"select x, checkpoint::int from read_parquet('{path}/**')"
    ).fetchall(),
    "polars": lambda path: pl.scan_parquet(path).select("x", "checkpoint").collect().rows(),
    "pandas": lambda path: pd.read_parquet(path).astype(int)[["x", "checkpoint"]].values.tolist(),
    "pyarrow": lambda path: (
        pq.read_table(path).to_pandas().astype(int)[["x", "checkpoint"]].values.tolist()
    ),
}


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_finds_the_same_rows_and_a_number_of_the_checkpoint(
    tmp_path: Path, reader: str
) -> None:
    rows = small_files(tmp_path / "out")
    compact(str(tmp_path / "out"))
    expected = [(x, max(1, x // 10 if x // 10 > 3 else 1)) for x in rows]
    assert sorted(map(tuple, READERS[reader](tmp_path / "out"))) == expected


def test_small_files_become_one_under_the_oldest_checkpoint_and_the_newest_stay(
    tmp_path: Path,
) -> None:
    small_files(tmp_path / "out")
    before = files_in(tmp_path / "out")
    result = compact(str(tmp_path / "out"))
    assert files_in(tmp_path / "out") == [
        "checkpoint=000000000001/merged-000001-000000.parquet",
        *before[6:],
    ]
    assert (result.files_before, result.files_after, result.merged, result.rows) == (12, 7, 6, 9)
    assert (result.checkpoints, result.kept_checkpoints) == (3, 3)
    assert (result.partitions[0].files_before, result.partitions[0].files_after) == (6, 1)
    assert json.loads(json.dumps(result.to_json()))["partitions"][0]["partition"] == ""


def test_the_second_compaction_changes_nothing(tmp_path: Path) -> None:
    small_files(tmp_path / "out")
    compact(str(tmp_path / "out"))
    inode = os.stat(tmp_path / "out").st_ino
    again = compact(str(tmp_path / "out"))
    assert again.partitions == ()
    assert again.files_before == again.files_after == 7
    assert os.stat(tmp_path / "out").st_ino == inode, "the directory is the same"


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    small_files(tmp_path / "out")
    before = files_in(tmp_path)
    result = compact(str(tmp_path / "out"), is_dry_run=True)
    assert result.is_dry_run
    assert (result.files_before, result.files_after) == (12, 7)
    assert files_in(tmp_path) == before


def test_nothing_is_left_beside_the_target(tmp_path: Path) -> None:
    small_files(tmp_path / "out")
    compact(str(tmp_path / "out"))
    compact(str(tmp_path / "out"), keep_checkpoints=0)
    beside = tmp_path / ".out.epochgate"
    assert files_in(beside) == []
    assert not (beside / "compacting").exists()
    assert [one.name for one in (beside / "trees").iterdir()] == ["tree-000000000002.json"]


def test_the_job_goes_on_after_a_compaction_and_compacts_again(tmp_path: Path) -> None:
    path = tmp_path / "out"
    rows = small_files(path)
    compact(str(path))
    target = claimed(path, "r2", 6)
    assert target.last_committed == 6
    assert [(one.checkpoint, one.rows) for one in target.committed()] == [
        (3, 9),
        (4, 3),
        (5, 3),
        (6, 3),
    ]
    committed(target, "r2", 7, {"x": [70, 71]})
    compact(str(path))  # beside the writer, which has the target's lock
    committed(target, "r2", 8, {"x": [80, 81]})
    target.release()
    assert rows_in(path) == [*rows, 70, 71, 80, 81]
    assert len({one.split("/")[0] for one in files_in(path)}) == 5


def test_a_commit_that_was_compacted_is_found_to_be_done_when_it_is_asked_for_again(
    tmp_path: Path,
) -> None:
    path = tmp_path / "out"
    target = claimed(path, "r1", None)
    each = {n: staged(target, "r1", n, {"x": [n, n + 100]}) for n in range(1, 7)}
    for number, committables in each.items():
        target.commit(number, committables)
    compact(str(path), keep_checkpoints=0)
    for number, committables in each.items():
        assert target.commit(number, committables).already_committed
    target.release()
    again = claimed(path, "r2", 6)
    for number, committables in each.items():
        assert again.commit(number, committables).already_committed
    with pytest.raises(CommitOutOfOrder):
        # A number that was never committed, older than what is visible.
        again.commit(0, staged(again, "r2", 0, {"x": [1, 2]}))
    assert rows_in(path) == sorted(x for n in range(1, 7) for x in (n, n + 100))


def test_a_start_from_before_what_was_compacted_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out"
    rows = small_files(path)
    compact(str(path))
    with pytest.raises(TargetAhead):
        claimed(path, "r2", 2)
    with pytest.raises(TargetCompacted, match="compacted up to checkpoint 3"):
        claimed(path, "r2", 2, withdraw_newer=True)
    assert rows_in(path) == rows
    claimed(path, "r2", 3, withdraw_newer=True).release()
    assert rows_in(path) == rows[:9]


def test_what_was_withdrawn_does_not_come_back(tmp_path: Path) -> None:
    path = tmp_path / "out"
    rows = small_files(path)
    claimed(path, "r2", 5, withdraw_newer=True).release()
    compact(str(path), keep_checkpoints=0)
    assert rows_in(path) == rows[:15]


def test_each_partition_is_merged_where_its_oldest_rows_are(tmp_path: Path) -> None:
    path = tmp_path / "out"
    target = claimed(path, "r1", None)
    for n in range(1, 6):
        country = ["DE", "DE"] if n > 2 else ["FR", "FR"]
        rows: Rows = {"x": [n, 10 + n], "country": country, "day": [1, 1]}
        committed(target, "r1", n, rows, partition_by=("country", "day"))
    target.release()
    result = compact(str(path), keep_checkpoints=0)
    assert [one.partition for one in result.partitions] == ["country=DE/day=1", "country=FR/day=1"]
    assert [one.rsplit("/", 1)[0] for one in files_in(path)] == [
        "checkpoint=000000000001/country=FR/day=1",
        "checkpoint=000000000003/country=DE/day=1",
    ]
    found = pq.read_table(path).to_pandas()
    assert sorted(found[found.country == "DE"]["x"]) == [3, 4, 5, 13, 14, 15]
    assert claimed(path, "r2", 5).partition_columns() == ["country", "day"]


def test_large_files_move_without_being_read_and_become_no_smaller(tmp_path: Path) -> None:
    path = tmp_path / "out"
    target = claimed(path, "r1", None)
    many = list(range(20_000))
    for n in range(1, 5):
        committed(target, "r1", n, {"x": many if n == 2 else [n, n]})
    target.release()
    large = max(files_in(path), key=lambda one: os.path.getsize(path / one))
    content, inode = (path / large).read_bytes(), os.stat(path / large).st_ino
    compact(str(path), file_bytes=20_000, keep_checkpoints=0)
    moved = f"checkpoint=000000000001/moved-000001-{os.path.basename(large)}"
    assert files_in(path) == ["checkpoint=000000000001/merged-000001-000000.parquet", moved]
    assert (path / moved).read_bytes() == content
    assert os.stat(path / moved).st_ino == inode
    target = claimed(path, "r2", 4)
    committed(target, "r2", 5, {"x": [5, 5]})
    target.release()
    compact(str(path), file_bytes=20_000, keep_checkpoints=0)
    assert f"checkpoint=000000000001/moved-000002-{os.path.basename(large)}" in files_in(path)
    assert rows_in(path) == sorted([*many, 1, 1, 3, 3, 4, 4, 5, 5])


def test_files_end_once_they_are_as_large_as_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "out"
    target = claimed(path, "r1", None)
    rows = list(range(200_000))
    for n in range(20):
        committed(target, "r1", n + 1, {"x": rows[n * 10_000 : (n + 1) * 10_000]})
    target.release()
    result = compact(str(path), file_bytes=300_000, keep_checkpoints=0)
    sizes = [os.path.getsize(path / one) for one in files_in(path)]
    assert len(sizes) > 1
    assert all(300_000 <= size < 700_000 for size in sizes[:-1])
    assert result.files_after == len(sizes)
    assert pq.read_table(path)["x"].to_pylist() == rows, "rows keep their order"
    assert compact(str(path), file_bytes=300_000, keep_checkpoints=0).partitions == ()


def test_columns_that_came_later_are_in_the_merged_files_without_values(tmp_path: Path) -> None:
    path = tmp_path / "out"
    target = claimed(path, "r1", None)
    committed(target, "r1", 1, {"x": pa.array([1, 2], pa.int32())})
    committed(target, "r1", 2, {"x": pa.array([3, 4], pa.int64()), "y": ["a", "b"]})
    committed(target, "r1", 3, {"x": pa.array([5, 6], pa.int64()), "y": ["c", "d"]})
    target.release()
    compact(str(path), keep_checkpoints=0)
    (merged,) = files_in(path)
    table = pq.read_table(path / merged, partitioning=None)
    assert table.schema.names == ["x", "y"]
    assert table.schema.field("x").type == pa.int64()
    assert table["y"].to_pylist() == [None, None, "a", "b", "c", "d"]
    agreed = claimed(path, "r2", 3).schema()
    assert agreed is not None
    assert agreed.names == ["x", "y"]


def test_directories_and_files_keep_their_permissions(tmp_path: Path) -> None:
    path = tmp_path / "out"
    small_files(path)
    path.chmod(0o2775)
    for directory in path.glob("checkpoint=*"):
        directory.chmod(0o750)
        for file in directory.iterdir():
            file.chmod(0o640)
    compact(str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o2775
    first = path / "checkpoint=000000000001"
    assert stat.S_IMODE(first.stat().st_mode) == 0o750
    assert {stat.S_IMODE(one.stat().st_mode) for one in path.rglob("*.parquet")} == {0o640}


def test_two_compactions_at_once_are_one_and_a_refusal(tmp_path: Path) -> None:
    path = tmp_path / "out"
    rows = small_files(path)
    lock = LocalFileSystem().try_lock(tmp_path / ".out.epochgate" / "compacting.lock")
    assert lock is not None
    with pytest.raises(CompactionRunning, match="being compacted by another process"):
        compact(str(path))
    lock.release()
    compact(str(path))
    assert rows_in(path) == rows


def test_what_no_job_has_put_there_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "out"
    small_files(path)
    stray = path / "checkpoint=000000000002" / "mine.parquet"
    stray.write_bytes(b"mine")
    with pytest.raises(ForeignFile, match="mine"):
        compact(str(path))
    stray.unlink()
    (path / "README").write_text("kept")
    compact(str(path))
    assert (path / "README").read_text() == "kept"
    (path / "more").mkdir()
    with pytest.raises(ForeignFile, match="more"):
        compact(str(path), keep_checkpoints=0)


def test_a_damaged_file_ends_the_compaction_with_nothing_changed(tmp_path: Path) -> None:
    path = tmp_path / "out"
    small_files(path)
    before = files_in(path)
    damaged = path / before[3]
    content = bytearray(damaged.read_bytes())
    content[6] ^= 0xFF
    damaged.write_bytes(content)
    with pytest.raises(CommittableDamaged):
        compact(str(path))
    damaged.write_bytes(content[:-1])
    with pytest.raises(CommittableDamaged, match="bytes"):
        compact(str(path))
    assert files_in(path) == before
    assert files_in(tmp_path / ".out.epochgate") == []


def test_what_is_no_target_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NothingThere):
        compact(str(tmp_path / "none"))
    with pytest.raises(OthersCompact, match="optimize"):
        compact(f"delta:{tmp_path}")
    with pytest.raises(OthersCompact, match="rewrite_data_files"):
        compact("iceberg:catalog.namespace.table")
    with pytest.raises(OthersCompact, match="no files"):
        compact("postgres:host=db#t")
    for wrong in ({"min_files": 1}, {"file_bytes": 0}, {"keep_checkpoints": -1}):
        with pytest.raises(UsageError):
            compact(str(tmp_path), **wrong)  # type: ignore[arg-type]


def test_a_job_that_reads_the_target_is_told_instead_of_taking_rows_twice(tmp_path: Path) -> None:
    path = tmp_path / "out"
    small_files(path)
    before = FileEnumeration(path)
    assert len(before.discover()) == 12
    compact(str(path))
    with pytest.raises(SourceCompacted, match="merged-000001-000000"):
        before.discover()
    after = FileEnumeration(path)
    assert len(after.discover()) == 7, "a job that begins now reads what is there"
    assert after.discover() == []


def test_a_target_whose_writer_would_not_wait_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out"
    rows = small_files(path)
    marker = tmp_path / ".out.epochgate" / "target.json"
    marker.write_text(json.dumps({**json.loads(marker.read_text()), "version": 3}))
    with pytest.raises(TargetTooOld, match="version 3"):
        compact(str(path))
    claimed(path, "r2", 6).release()
    compact(str(path))
    assert rows_in(path) == rows
