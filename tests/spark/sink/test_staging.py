"""A committable that a writer hands over is complete and durable; what it does not hand over has no
owner.
"""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epochgate.runtime.filesystem import LocalFileSystem
from epochgate.runtime.testing.faulty_filesystem import (
    NEEDS_SPACE,
    Fault,
    FaultyFileSystem,
    SimulatedCrash,
)
from epochgate.spark.parquet_sink import (
    DiskFull,
    OutputSchemaChanged,
    ParquetTarget,
    StagingWriter,
    StagingWriterBroken,
)


def batch(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"x": pa.array(values, pa.int64())})


def staged_files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


def test_each_barrier_hands_over_what_came_since_the_last_one(tmp_path: Path) -> None:
    writer = StagingWriter(tmp_path, "r1", 3, 17)
    writer.write(batch(1, 2))
    writer.write(batch(3))
    (first,) = writer.prepare_commit(1)
    assert writer.prepare_commit(2) == []
    writer.write(batch(4))
    (second,) = writer.prepare_commit(3)
    assert (first.subtask, first.attempt, first.sequence, first.rows) == (3, 17, 0, 3)
    assert (second.sequence, second.rows) == (1, 1)
    assert pq.read_table(tmp_path / first.path)["x"].to_pylist() == [1, 2, 3]
    assert first.size_bytes == (tmp_path / first.path).stat().st_size
    assert first.file_name == "part-00003-17-000000-r1.parquet"


def test_no_rows_make_no_file(tmp_path: Path) -> None:
    writer = StagingWriter(tmp_path, "r1", 0, 0)
    writer.write(batch())
    assert writer.prepare_commit(1) == []
    assert list(tmp_path.iterdir()) == []


def test_a_large_epoch_is_rolled_into_several_files(tmp_path: Path) -> None:
    writer = StagingWriter(tmp_path, "r1", 0, 0, roll_bytes=10_000, row_group_bytes=8_000)
    for start in range(0, 20_000, 1_000):
        writer.write(batch(*range(start, start + 1_000)))
    committables = writer.prepare_commit(1)
    assert len(committables) > 3
    rows = [x for one in committables for x in pq.read_table(tmp_path / one.path)["x"].to_pylist()]
    assert rows == list(range(20_000))


def test_two_attempts_and_two_runs_never_share_a_file(tmp_path: Path) -> None:
    paths = set()
    for run, attempt in (("r1", 1), ("r1", 2), ("r2", 1)):
        writer = StagingWriter(tmp_path, run, 0, attempt)
        writer.write(batch(attempt))
        paths |= {one.path for one in writer.prepare_commit(1)}
    assert len(paths) == 3
    zombie = StagingWriter(tmp_path, "r1", 0, 1)
    zombie.write(batch(9))
    with pytest.raises(FileExistsError):
        zombie.prepare_commit(1)


def test_a_batch_of_another_schema_is_refused_with_both_named(tmp_path: Path) -> None:
    writer = StagingWriter(tmp_path, "r1", 4, 2)
    writer.write(batch(1))
    with pytest.raises(OutputSchemaChanged) as caught:
        writer.write(pa.RecordBatch.from_pydict({"x": ["a"]}))
    for part in ("x: BIGINT", "x: STRING", "subtask 4, attempt 2", "cast"):
        assert part in str(caught.value)
    with pytest.raises(StagingWriterBroken, match="new attempt"):
        writer.prepare_commit(1)


def test_columns_may_differ_in_metadata_and_in_being_nullable(tmp_path: Path) -> None:
    strict = pa.schema([pa.field("x", pa.int64(), nullable=False)], metadata={"a": "b"})
    writer = StagingWriter(tmp_path, "r1", 0, 0)
    writer.write(pa.RecordBatch.from_arrays([pa.array([1])], schema=strict))
    writer.write(batch(2))
    (one,) = writer.prepare_commit(1)
    assert one.rows == 2


def test_the_targets_schema_survives_types_that_parquet_does_not_keep(tmp_path: Path) -> None:
    seconds = pa.RecordBatch.from_pydict({"t": pa.array([0], pa.timestamp("s"))})
    target = ParquetTarget(tmp_path / "out", "job", "r1")
    target.claim(None)
    for checkpoint in (1, 2):
        writer = StagingWriter(
            target.working_directory, "r1", 0, checkpoint, schema=target.schema()
        )
        writer.write(seconds)
        target.commit(checkpoint, writer.prepare_commit(checkpoint))
    assert target.schema() == seconds.schema
    target.release()


def test_an_abandoned_writer_removes_what_it_did_not_hand_over(tmp_path: Path) -> None:
    writer = StagingWriter(tmp_path, "r1", 0, 0, row_group_bytes=1, roll_bytes=1)
    writer.write(batch(1))
    (kept,) = writer.prepare_commit(1)
    writer.write(batch(2))
    half = StagingWriter(tmp_path, "r1", 1, 0, row_group_bytes=1)
    half.write(batch(3))
    for one in (writer, half):
        one.abandon()
        one.abandon()
    assert staged_files(tmp_path) == [tmp_path / kept.path]
    with pytest.raises(StagingWriterBroken, match="abandoned"):
        writer.write(batch(4))


def test_a_full_disk_at_any_step_is_a_clear_error_and_the_next_attempt_succeeds(
    tmp_path: Path,
) -> None:
    at, struck = 0, True
    while struck:
        directory = tmp_path / str(at)
        directory.mkdir()
        files = FaultyFileSystem(LocalFileSystem(), Fault(at, "disk_full"))
        writer = StagingWriter(directory, "r1", 0, 1, files=files, row_group_bytes=1)
        full: list[DiskFull] = []
        try:
            writer.write(batch(1))
            writer.write(batch(2))
            writer.prepare_commit(1)
        except DiskFull as error:
            full.append(error)
        struck = files.has_struck
        assert bool(full) == any(one.name in NEEDS_SPACE for one in files.operations[at:])
        if full:
            assert "No space left" in str(full[0])
            with pytest.raises(StagingWriterBroken):
                writer.write(batch(3))
            writer.abandon()
            assert staged_files(directory) == []
        del writer
        gc.collect()
        files.free_space()
        again = StagingWriter(directory, "r1", 0, 2, files=files)
        again.write(batch(1, 2))
        (one,) = again.prepare_commit(1)
        assert pq.read_table(directory / one.path)["x"].to_pylist() == [1, 2]
        at += 1
    assert at > 6


def test_after_a_crash_at_any_step_only_files_that_were_handed_over_are_whole(
    tmp_path: Path,
) -> None:
    at, struck = 0, True
    while struck:
        directory = tmp_path / str(at)
        directory.mkdir()
        files = FaultyFileSystem(LocalFileSystem(), Fault(at, "crash", "during"))
        writer = StagingWriter(directory, "r1", 0, 1, files=files, row_group_bytes=1)
        handed_over = []
        try:
            for number in (1, 2):
                writer.write(batch(number))
                handed_over += writer.prepare_commit(number)
        except SimulatedCrash:
            pass
        struck = files.has_struck
        for number, one in enumerate(handed_over, start=1):
            assert pq.read_table(directory / one.path)["x"].to_pylist() == [number]
        del writer
        gc.collect()
        at += 1
    assert len(handed_over) == 2
    assert at > 12


def test_files_are_fsynced_before_they_are_handed_over(tmp_path: Path) -> None:
    files = FaultyFileSystem(LocalFileSystem())
    writer = StagingWriter(tmp_path, "r1", 0, 1, files=files)
    writer.write(batch(1))
    (one,) = writer.prepare_commit(1)
    done = [(operation.name, operation.path) for operation in files.operations]
    path = os.fspath(tmp_path / one.path)
    assert done[-2:] == [("fsync", path), ("fsync_directory", os.path.dirname(path))]
    assert not files.unsynced


@pytest.mark.parametrize(("run", "attempt"), [("../r", 0), ("", 0), ("r_1", 0), ("r1", -1)])
def test_names_that_would_lead_astray_are_refused(tmp_path: Path, run: str, attempt: int) -> None:
    with pytest.raises(ValueError, match="run_id"):
        StagingWriter(tmp_path, run, 0, attempt)
