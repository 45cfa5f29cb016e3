"""A target belongs to one job, one process at a time, and never runs ahead of the checkpoint."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from epochgate.errors import UsageError
from epochgate.runtime.filesystem import AnyPath, LocalFileSystem, LocksRefused
from epochgate.spark.parquet_sink import (
    Committable,
    ParquetTarget,
    StagingWriter,
    TargetAhead,
    TargetBehind,
    TargetLocked,
    TargetNotEmpty,
    TargetNotWritable,
    TargetOfAnotherJob,
    TargetTakenOver,
    TargetVersionUnknown,
)
from tests.runtime.store.mediums import FileSystemWithoutLocks


def staged(target: ParquetTarget, run: str, row: int) -> list[Committable]:
    writer = StagingWriter(target.working_directory, run, 0, attempt=row)
    writer.write(pa.RecordBatch.from_pydict({"x": [row]}))
    return writer.prepare_commit(1)


def with_checkpoints(path: Path, *checkpoints: int) -> None:
    target = ParquetTarget(path, "job", "r1")
    target.claim(None)
    for checkpoint in checkpoints:
        target.commit(checkpoint, staged(target, "r1", checkpoint))
    target.release()


def marker_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.epochgate") / "target.json"


def target_files(target: ParquetTarget, checkpoint: int) -> list[Committable]:
    path = Path(target.working_directory, "manifests", f"checkpoint-{checkpoint:012d}.json")
    manifest = json.loads(path.read_text())
    return [Committable.from_list(values) for values in manifest["committables"]]


@pytest.mark.parametrize("exists", [True, False])
def test_a_missing_or_empty_directory_is_marked_with_the_job(tmp_path: Path, exists: bool) -> None:
    path = tmp_path / "deep" / "out"
    if exists:
        path.mkdir(parents=True)
    with_checkpoints(path)
    marker = json.loads(marker_of(path).read_text())
    assert marker == {"product": "epochgate parquet target", "version": 4, "job": "job"}
    assert os.listdir(path) == ["_epochgate"]


def test_a_directory_with_foreign_files_is_refused_and_nothing_is_put_beside_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("")
    with pytest.raises(TargetNotEmpty, match=r"mine\.txt.*empty or does not exist") as caught:
        ParquetTarget(tmp_path / "out", "job", "r1").claim(None)
    assert isinstance(caught.value, UsageError)
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("name", ["_delta_log/0.json", "_epochgate/queries.json"])
def test_the_directory_of_a_table_is_refused_as_one(tmp_path: Path, name: str) -> None:
    file = tmp_path / "out" / name
    for each in (file, tmp_path / "out" / "_epochgate" / "queries.json"):
        each.parent.mkdir(parents=True, exist_ok=True)
        each.write_text("")
    with pytest.raises(TargetNotEmpty, match="is that of a Delta or Iceberg table"):
        ParquetTarget(tmp_path / "out", "job", "r1").claim(None)


def test_a_file_is_not_a_target(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(TargetNotEmpty):
        ParquetTarget(tmp_path / "out", "job", "r1").claim(None)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_a_target_that_may_not_be_written_is_named(tmp_path: Path, number: int) -> None:
    class ReadOnly(LocalFileSystem):
        def create_directory(self, path: AnyPath) -> None:
            raise OSError(number, os.strerror(number), os.fspath(path))

    with pytest.raises(TargetNotWritable, match=r"\.out\.epochgate.*permissions"):
        ParquetTarget(tmp_path / "out", "job", "r1", files=ReadOnly()).claim(None)


def test_a_target_without_locks_is_refused_and_not_marked(tmp_path: Path) -> None:
    with pytest.raises(LocksRefused, match=r"\.out\.epochgate/lock refuses locks"):
        ParquetTarget(tmp_path / "out", "job", "r1", files=FileSystemWithoutLocks()).claim(None)
    assert not (tmp_path / "out").exists()


def test_a_url_is_not_a_target() -> None:
    with pytest.raises(UsageError, match="is a URL"):
        ParquetTarget("s3://bucket/out", "job", "r1")


def test_the_target_of_another_job_is_refused(tmp_path: Path) -> None:
    with_checkpoints(tmp_path / "out")
    with pytest.raises(TargetOfAnotherJob, match="belongs to job 'job', this is job 'other'"):
        ParquetTarget(tmp_path / "out", "other", "r1").claim(None)


@pytest.mark.parametrize("marker", ["", "{}", "[1]", '{"product": "x", "version": 3, "job": "j"}'])
def test_a_marker_that_cannot_be_read_is_refused(tmp_path: Path, marker: str) -> None:
    with_checkpoints(tmp_path / "out")
    marker_of(tmp_path / "out").write_text(marker)
    with pytest.raises(TargetVersionUnknown, match="release that wrote it"):
        ParquetTarget(tmp_path / "out", "job", "r2").claim(None)


def test_a_target_whose_working_directory_is_gone_is_refused(tmp_path: Path) -> None:
    with_checkpoints(tmp_path / "out")
    marker_of(tmp_path / "out").unlink()
    with pytest.raises(TargetVersionUnknown, match=r"it is not there.*or remove '"):
        ParquetTarget(tmp_path / "out", "job", "r2").claim(None)


def test_a_target_is_claimed_by_one_process_at_a_time(tmp_path: Path) -> None:
    first = ParquetTarget(tmp_path / "out", "job", "r1")
    first.claim(None)
    with pytest.raises(TargetLocked, match="another job, which holds the lock"):
        ParquetTarget(tmp_path / "out", "job", "r2").claim(None)
    first.release()
    second = ParquetTarget(tmp_path / "out", "job", "r2")
    second.claim(None)
    with pytest.raises(TargetTakenOver):
        first.commit(1, [])
    second.release()


def test_a_killed_process_leaves_no_lock_behind(tmp_path: Path) -> None:
    program = (
        "import os, sys\n"
        "from epochgate.spark.parquet_sink import ParquetTarget\n"
        "ParquetTarget(sys.argv[1], 'job', 'r1').claim(None)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "out")],
        cwd=Path(__file__).parents[3],
        timeout=60,
        check=False,
    )
    assert killed.returncode == -9
    target = ParquetTarget(tmp_path / "out", "job", "r2")
    target.claim(None)
    target.release()


def test_a_target_ahead_of_the_restored_state_is_refused(tmp_path: Path) -> None:
    with_checkpoints(tmp_path / "out", 1, 2, 3)
    for restored in (None, 1, 2):
        with pytest.raises(TargetAhead, match="already holds checkpoint 3"):
            ParquetTarget(tmp_path / "out", "job", "r2").claim(restored)
    for restored in (3, 4):
        target = ParquetTarget(tmp_path / "out", "job", "r2")
        target.claim(restored)
        assert target.last_committed == 3
        target.release()


def test_newer_checkpoints_are_withdrawn_when_asked_for_and_can_be_written_again(
    tmp_path: Path,
) -> None:
    with_checkpoints(tmp_path / "out", 1, 2, 3)
    target = ParquetTarget(tmp_path / "out", "job", "r2")
    target.claim(1, withdraw_newer=True)
    assert [one.checkpoint for one in target.committed()] == [1]
    target.commit(2, staged(target, "r2", 7))
    assert sorted(os.listdir(tmp_path / "out")) == [
        "_epochgate",
        "checkpoint=000000000001",
        "checkpoint=000000000002",
    ]
    withdrawn = os.listdir(Path(target.working_directory, "withdrawn"))
    assert sorted(withdrawn) == ["checkpoint-000000000002-r2", "checkpoint-000000000003-r2"]
    target.release()


def as_version(version: int, path: Path) -> None:
    marker = marker_of(path)
    values = json.loads(marker.read_text())
    (path / "_epochgate.json").write_text(json.dumps({**values, "version": version}))
    (path / "_epochgate").rmdir()
    for manifest in (marker.parent / "manifests").iterdir():
        manifest.rename(path / manifest.stem.replace("-", "=") / "_manifest.json")
    marker.unlink()
    if version == 1:
        for directory in path.glob("checkpoint=*"):
            directory.rename(path / directory.name.replace("=", "-"))


def contents(path: Path) -> list[str]:
    return sorted(f"{one.relative_to(path)}" for one in path.rglob("*"))


class DyingFileSystem(LocalFileSystem):
    """Carries out `renames` renames, and fails from then on."""

    def __init__(self, renames: int) -> None:
        self.renames = renames

    def rename(self, source: AnyPath, destination: AnyPath) -> None:
        self.renames -= 1
        if self.renames < 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO), os.fspath(source))
        super().rename(source, destination)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("renames", range(7))
def test_a_target_of_an_earlier_version_goes_on_under_the_names_that_every_reader_finds(
    tmp_path: Path, version: int, renames: int
) -> None:
    path = tmp_path / "out"
    with_checkpoints(path, 1, 2)
    as_version(version, path)
    dying = ParquetTarget(path, "job", "r2", files=DyingFileSystem(renames))
    # Marker and owner are written by a rename each; then come two directories and two manifests.
    if renames < 2 * (3 - version) + 2:
        with pytest.raises(TargetNotWritable):
            dying.claim(2)
    else:
        dying.claim(2)
    dying.release()
    target = ParquetTarget(path, "job", "r3")
    target.claim(2)
    assert target.last_committed == 2
    assert target.commit(2, target_files(target, 2)).already_committed
    target.commit(3, staged(target, "r3", 3))
    assert [one.rows for one in target.committed()] == [1, 1, 1]
    target.release()
    assert [one for one in contents(path) if "parquet" not in one] == [
        "_epochgate",
        *(f"checkpoint={checkpoint:012d}" for checkpoint in (1, 2, 3)),
    ]
    assert json.loads(marker_of(path).read_text())["version"] == 4


@pytest.mark.parametrize("version", [1, 2])
def test_a_target_of_an_earlier_version_that_is_refused_stays_as_it_is(
    tmp_path: Path, version: int
) -> None:
    path = tmp_path / "out"
    with_checkpoints(path, 1, 2)
    as_version(version, path)
    before = contents(path)
    with pytest.raises(TargetAhead):
        ParquetTarget(path, "job", "r2").claim(1)
    assert contents(path) == before


def test_a_restored_job_does_not_go_on_into_a_new_target(tmp_path: Path) -> None:
    with pytest.raises(TargetBehind, match="checkpoint 4"):
        ParquetTarget(tmp_path / "out", "job", "r2").claim(4)
    assert not (tmp_path / "out").exists()


def test_a_target_that_was_deleted_can_be_started_afresh(tmp_path: Path) -> None:
    with_checkpoints(tmp_path / "out", 1)
    target = ParquetTarget(tmp_path / "out", "job", "r2")
    target.claim(1)
    staged(target, "r2", 5)
    target.release()
    for entry in sorted((tmp_path / "out").rglob("*"), reverse=True):
        entry.rmdir() if entry.is_dir() else entry.unlink()
    (tmp_path / "out").rmdir()
    other = ParquetTarget(tmp_path / "out", "other job", "r3")
    other.claim(None)
    assert not Path(other.working_directory, "staged").exists()
    other.release()
