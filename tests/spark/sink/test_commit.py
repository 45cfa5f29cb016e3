"""A checkpoint's rows become visible all at once and exactly once, wherever the driver crashes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import duckdb
import msgpack
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pytest

from epochgate.runtime.filesystem import TEMPORARY_SUFFIX, LocalFileSystem
from epochgate.runtime.testing.faulty_filesystem import Fault, FaultyFileSystem, SimulatedCrash
from epochgate.spark.parquet_sink import (
    CommitConflict,
    CommitOutOfOrder,
    Committable,
    CommittableDamaged,
    CommittableMissing,
    DiskFull,
    OutputSchemaChanged,
    ParquetTarget,
    StagingWriter,
    TargetTakenOver,
)


def visible_rows(target: Path) -> list[int]:
    """Return what an engine that is none of ours reads, with a pattern that leaves nothing out."""
    if not list(target.glob("**/*.parquet")):
        return []
    query = f"select x from read_parquet('{target}/**/*.parquet') order by x"
    return [row[0] for row in duckdb.execute(query).fetchall()]


def stage(target: ParquetTarget, run: str, subtask: int, rows: list[int]) -> list[Committable]:
    writer = StagingWriter(target.working_directory, run, subtask, attempt=subtask + 10)
    writer.write(pa.RecordBatch.from_pydict({"x": rows}))
    committables = writer.prepare_commit(1)
    # As they come over the wire.
    plain = msgpack.unpackb(msgpack.packb([one.to_list() for one in committables]))
    return [Committable.from_list(value) for value in plain]


def claimed(path: Path, run: str = "r1", restored: int | None = None, **options: Any) -> Any:
    target = ParquetTarget(path, "job", run, **options)
    target.claim(restored)
    return target


@pytest.fixture
def target(tmp_path: Path) -> Iterator[ParquetTarget]:
    target = claimed(tmp_path / "out")
    yield target
    target.release()


def test_nothing_is_visible_before_the_commit_and_everything_after_it(
    target: ParquetTarget,
) -> None:
    path = Path(target.path)
    first = stage(target, "r1", 0, [1, 2]) + stage(target, "r1", 1, [3])
    assert visible_rows(path) == []
    result = target.commit(1, first)
    assert (result.files, result.rows, result.already_committed) == (2, 3, False)
    assert visible_rows(path) == [1, 2, 3]
    second = stage(target, "r1", 2, [4])
    assert visible_rows(path) == [1, 2, 3]
    target.commit(2, second)
    assert sorted(pd.read_parquet(path)["x"]) == [1, 2, 3, 4]
    assert sorted(pyarrow.dataset.dataset(path).to_table()["x"].to_pylist()) == [1, 2, 3, 4]
    assert [(one.checkpoint, one.rows) for one in target.committed()] == [(1, 3), (2, 1)]


def test_committing_again_changes_nothing(target: ParquetTarget) -> None:
    committables = stage(target, "r1", 0, [1]) + stage(target, "r1", 1, [2])
    first = target.commit(1, committables)
    again = target.commit(1, list(reversed(committables)))
    assert again.already_committed
    assert (again.files, again.rows, again.size_bytes) == (
        first.files,
        first.rows,
        first.size_bytes,
    )
    assert visible_rows(Path(target.path)) == [1, 2]


def test_a_checkpoint_without_rows_has_no_directory(target: ParquetTarget) -> None:
    result = target.commit(1, [])
    assert (result.files, result.rows) == (0, 0)
    assert os.listdir(target.path) == ["_epochgate"]
    assert target.last_committed is None


def crash_points() -> Iterator[FaultyFileSystem]:
    """A file system for every operation its user does, and for every way of crashing there."""
    whens: tuple[Literal["before", "during", "after"], ...] = ("before", "during", "after")
    at, more = 0, True
    while more:
        more = False
        for when in whens:
            files = FaultyFileSystem(LocalFileSystem(), Fault(at, "crash", when))
            yield files
            more = more or files.has_struck
        at += 1


def test_a_crash_at_any_step_of_claim_and_commit_loses_and_doubles_nothing(tmp_path: Path) -> None:
    outcomes = []
    for number, files in enumerate(crash_points()):
        path = tmp_path / str(number) / "out"
        path.parent.mkdir()
        before = claimed(path)
        before.commit(1, stage(before, "r1", 0, [1]))
        committables = stage(before, "r1", 1, [2, 3]) + stage(before, "r1", 2, [4])
        stage(before, "r1", 3, [99])
        before.release()

        crashed = None
        try:
            first = claimed(path, "r2", restored=2, files=files)
            first.remove_orphans(committables)
            first.commit(2, committables)
            first.release()
        except SimulatedCrash:
            crashed = files.operations[-1].name
        outcome = visible_rows(path)
        assert outcome in ([1], [1, 2, 3, 4]), "a reader sees whole checkpoints only"
        outcomes.append((crashed, outcome))

        again = claimed(path, "r3", restored=2)
        again.remove_orphans(committables)
        result = again.commit(2, committables)
        assert (result.checkpoint, result.files, result.rows) == (2, 2, 3)
        assert visible_rows(path) == [1, 2, 3, 4]
        left = [name for name in Path(again.working_directory).rglob("*") if "part-" in name.name]
        assert left == []
        assert not list(path.rglob("*temporary*"))
        again.release()

    assert len({crashed for crashed, _ in outcomes}) >= 6
    assert ("rename", [1]) in outcomes
    assert ("rename", [1, 2, 3, 4]) in outcomes


def test_a_crash_at_any_step_of_the_first_claim_can_be_repeated(tmp_path: Path) -> None:
    for number, files in enumerate(crash_points()):
        path = tmp_path / str(number) / "deep" / "out"
        with contextlib.suppress(SimulatedCrash):
            claimed(path, files=files).release()
        again = claimed(path, "r2")
        again.commit(1, stage(again, "r2", 0, [1]))
        assert visible_rows(path) == [1]
        assert sorted(os.listdir(path)) == ["_epochgate", "checkpoint=000000000001"]
        again.release()


def test_a_disk_that_fills_at_any_step_of_a_commit_loses_nothing_and_a_retry_succeeds(
    tmp_path: Path,
) -> None:
    at, struck = 0, True
    while struck:
        path = tmp_path / str(at) / "out"
        files = FaultyFileSystem(LocalFileSystem())
        target = claimed(path, files=files)
        committables = stage(target, "r1", 0, [1]) + stage(target, "r1", 1, [2])
        files.operations.clear()
        files.fault = Fault(at, "disk_full")
        full: list[DiskFull] = []
        try:
            target.commit(1, committables)
        except DiskFull as error:
            full.append(error)
        struck = files.has_struck
        assert visible_rows(path) == ([] if full else [1, 2])
        assert not full or "No space left" in str(full[0])
        files.free_space()
        target.commit(1, committables)
        assert visible_rows(path) == [1, 2]
        target.release()
        at += 1
    assert at > 8


def test_names_are_durable_before_the_rename_and_the_rename_before_the_commit_returns(
    tmp_path: Path,
) -> None:
    files = FaultyFileSystem(LocalFileSystem())
    target = claimed(tmp_path / "out", files=files)
    committables = stage(target, "r1", 0, [1])
    files.operations.clear()
    target.commit(1, committables)
    steps = [(one.name, os.path.relpath(one.path, tmp_path)) for one in files.operations]
    prepared = ".out.epochgate/prepared"
    assert steps[-4:] == [
        ("fsync_directory", f"{prepared}/checkpoint-000000000001"),
        ("rename", "out/checkpoint=000000000001"),
        ("fsync_directory", "out"),
        ("fsync_directory", prepared),
    ]
    assert [step for step in steps if step[1].startswith("out")] == steps[-3:-1]
    target.release()


def test_what_an_earlier_version_was_about_to_commit_does_not_matter(tmp_path: Path) -> None:
    target = claimed(tmp_path / "out")
    committables = stage(target, "r1", 0, [1])
    prepared = Path(target.working_directory, "prepared", "checkpoint-000000000001")
    prepared.mkdir(parents=True)
    (prepared / f"._manifest.json.1-0{TEMPORARY_SUFFIX}").write_text("{")
    (prepared / "_manifest.json").write_text("{}")
    target.commit(1, committables)
    found = os.listdir(tmp_path / "out" / "checkpoint=000000000001")
    assert found == [committables[0].file_name]
    target.release()


def test_a_commit_of_other_files_under_a_committed_number_is_refused(target: ParquetTarget) -> None:
    target.commit(1, stage(target, "r1", 0, [1]))
    other = stage(target, "r1", 1, [2])
    with pytest.raises(CommitConflict, match="checkpoint 1 was committed by run r1"):
        target.commit(1, other)
    with pytest.raises(CommitConflict):
        target.commit(1, [])
    assert visible_rows(Path(target.path)) == [1]


def test_an_older_checkpoint_cannot_follow_a_newer_one(target: ParquetTarget) -> None:
    target.commit(5, stage(target, "r1", 0, [1]))
    with pytest.raises(CommitOutOfOrder, match="checkpoint 4 cannot be committed"):
        target.commit(4, stage(target, "r1", 1, [2]))
    assert target.commit(4, []).files == 0


def test_a_replaced_driver_cannot_commit(tmp_path: Path) -> None:
    old = claimed(tmp_path / "out", "r1")
    committables = stage(old, "r1", 0, [1])
    # Its lock is lost, as on a network file system that restarted, and it does not know.
    os.remove(Path(old.working_directory, "lock"))
    new = claimed(tmp_path / "out", "r2", restored=1)
    with pytest.raises(TargetTakenOver, match="run r2 has claimed it"):
        old.commit(1, committables)
    new.commit(1, committables)
    assert visible_rows(tmp_path / "out") == [1]
    new.release()
    old.release()


def test_a_damaged_staged_file_is_found_before_anything_is_visible(target: ParquetTarget) -> None:
    good, bad = stage(target, "r1", 0, [1]), stage(target, "r1", 1, [2])
    staged = Path(target.working_directory, bad[0].path)
    whole = staged.read_bytes()
    for damaged in (whole[:-20], whole[:-30] + b"?" + whole[-29:], b""):
        staged.write_bytes(damaged)
        with pytest.raises(CommittableDamaged, match="is damaged"):
            target.commit(1, good + bad)
        assert visible_rows(Path(target.path)) == []
    staged.write_bytes(whole)
    target.commit(1, good + bad)
    assert visible_rows(Path(target.path)) == [1, 2]


def test_a_staged_file_that_is_gone_is_named(target: ParquetTarget) -> None:
    (one,) = stage(target, "r1", 0, [1])
    os.remove(Path(target.working_directory, one.path))
    with pytest.raises(CommittableMissing, match=one.file_name):
        target.commit(1, [one])


def test_subtasks_with_different_schemas_are_told_before_and_at_the_commit(
    target: ParquetTarget,
) -> None:
    numbers = stage(target, "r1", 0, [1])
    writer = StagingWriter(target.working_directory, "r1", 1, 11)
    writer.write(pa.RecordBatch.from_pydict({"x": [None]}))
    nulls = writer.prepare_commit(1)
    with pytest.raises(OutputSchemaChanged, match=r"x: BIGINT\n.*x: null"):
        target.require_one_schema(numbers + nulls)
    with pytest.raises(OutputSchemaChanged):
        target.commit(1, numbers + nulls)
    target.commit(2, stage(target, "r1", 2, [1]))
    with pytest.raises(OutputSchemaChanged):
        target.require_one_schema(nulls)


def test_orphans_of_dead_attempts_are_removed_and_what_is_needed_is_kept(tmp_path: Path) -> None:
    first = claimed(tmp_path / "out", "r1")
    needed = stage(first, "r1", 0, [1])
    stage(first, "r1", 1, [99])
    first.release()
    second = claimed(tmp_path / "out", "r2", restored=1)
    removed = second.remove_orphans(needed)
    assert [Path(path).name.split("-")[1] for path in removed] == ["00001"]
    second.commit(1, needed)
    late = stage(second, "r2", 4, [2])
    second.commit(2, late)
    assert visible_rows(tmp_path / "out") == [1, 2]
    second.release()


def test_a_committable_cannot_lead_out_of_the_working_directory() -> None:
    good = [0, 1, 2, "staged/r1/part-00000-1-000002-r1.parquet.staged", 1, 1, 1, "00000000"]
    Committable.from_list(good)
    for path in ("../../etc/passwd", "staged/../x", "staged/r1/part-0-1-2-r2.parquet.staged", 7):
        with pytest.raises(ValueError, match="not the path"):
            Committable.from_list([*good[:3], path, *good[4:]])
