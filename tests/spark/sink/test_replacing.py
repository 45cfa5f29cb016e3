"""A write that replaces all rows of a Parquet target shows the old rows or the new ones."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

from epochgate.runtime import RetryLater
from epochgate.runtime.filesystem import FileSystem, LocalFileSystem
from epochgate.runtime.objects.client import ObjectStore
from epochgate.runtime.objects.files import ObjectFiles
from epochgate.runtime.testing.faulty_filesystem import Fault, FaultyFileSystem, SimulatedCrash
from epochgate.spark.compaction import compact
from epochgate.spark.compaction.directory import DirectoryCompaction
from epochgate.spark.compaction.plan import Wanted
from epochgate.spark.parquet_sink import StagingWriter, TargetNotEmpty, working_directory_of
from epochgate.spark.streaming.targets.parquet import ObjectBatches, ParquetBatches
from epochgate.spark.streaming.targets.target import Staged
from tests.runtime.objects.faulty_objects import FaultyObjects
from tests.runtime.objects.stores import Memory
from tests.spark.compaction.targets import files_in, rows_in
from tests.spark.compaction.test_objects import rows_in as objects_in
from tests.spark.sink.test_object_ingest import TARGET

OLD, NEW = [10, 11, 20, 21], [30, 31]


def staged(path: Path, run: str, values: list[int]) -> Staged:
    """Return what a task of a DataFrame's write hands over."""
    committables = []
    if values:
        writer = StagingWriter(working_directory_of(path), run, 0, attempt=0)
        writer.write(pa.RecordBatch.from_pydict({"x": values}))
        committables = [one.to_list() for one in writer.prepare_commit(1)]
    return Staged("frame", 0, run, {0: committables})


def write(
    path: Path, run: str, values: list[int], *, replaces: bool, files: FileSystem | None = None
) -> None:
    what = staged(path, run, values)
    ParquetBatches(str(path), files=files).write(what, replaces=replaces)


def written(path: Path, *, is_compacted: bool = False) -> Path:
    """A target with two writes."""
    write(path, "r1", OLD[:2], replaces=False)
    write(path, "r2", OLD[2:], replaces=False)
    if is_compacted:
        compact(str(path), keep_checkpoints=0)
    return path


def left(path: Path) -> list[str]:
    """Return what lies beside the target that is no record of what it shows."""
    working = Path(working_directory_of(path))
    kept = ("target.json", "owner.json", "lock", "visible.lock", "compacting.lock")
    return sorted(
        str(one.relative_to(working))
        for one in working.rglob("*")
        if one.is_file() and one.name not in kept and one.parent.name != "queries"
    )


@pytest.mark.parametrize("is_compacted", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_at_any_step_shows_the_old_rows_or_the_new(
    tmp_path: Path, when: Literal["before", "after"], is_compacted: bool
) -> None:
    outcomes = set()
    for at in range(1000):
        path = written(tmp_path / str(at) / "t", is_compacted=is_compacted)
        files = FaultyFileSystem(LocalFileSystem(), Fault(at, "crash", when))
        with contextlib.suppress(SimulatedCrash):
            write(path, "r3", NEW, replaces=True, files=files)
        seen = rows_in(path)
        assert seen in (OLD, NEW), (at, files.operations[-1])
        outcomes.add(tuple(seen))
        if not files.has_struck:
            break
        write(path, "r4", [40], replaces=False)
        assert rows_in(path) == [*seen, 40], at
        write(path, "r5", [50], replaces=True)
        assert rows_in(path) == [50], at
        assert not {one.split("/")[0] for one in left(path)} & {"replacing", "replaced"}
    assert at > 20
    assert outcomes == {tuple(OLD), tuple(NEW)}
    assert left(path) == ["manifests/checkpoint-000000000003.json", *left(path)[1:]]
    assert len([one for one in left(path) if one.startswith("trees/")]) == 1


def test_an_error_at_any_step_shows_the_old_rows_or_the_new_and_a_retry_succeeds(
    tmp_path: Path,
) -> None:
    for at in range(1000):
        path = written(tmp_path / str(at) / "t")
        files = FaultyFileSystem(LocalFileSystem(), Fault(at, "error", "before"))
        target, what = ParquetBatches(str(path), files=files), staged(path, "r3", NEW)
        try:
            target.write(what, replaces=True)
        except (OSError, RetryLater, Exception):  # noqa: BLE001  # any is told to Spark
            assert rows_in(path) in (OLD, NEW), at
            if not target.has_written(what):
                target.write(what, replaces=True)
        assert rows_in(path) == NEW, (at, files.operations[-1])
        if not files.has_struck:
            break
    assert at > 20


def test_an_empty_write_leaves_no_row_and_the_next_begins_afresh(tmp_path: Path) -> None:
    path = written(tmp_path / "t")
    write(path, "r3", [], replaces=True)
    assert files_in(path) == []
    write(path, "r4", NEW, replaces=False)
    assert rows_in(path) == NEW


@pytest.mark.parametrize("is_staged", [False, True])
def test_a_compaction_under_way_does_not_bring_replaced_rows_back(
    tmp_path: Path, is_staged: bool
) -> None:
    path = written(tmp_path / "t")
    compaction = DirectoryCompaction(str(path), Wanted(1 << 20, 2, 0))
    compaction.open()
    compaction.plan()
    if is_staged:
        assert compaction.stage()
    write(path, "r3", NEW, replaces=True)
    if not is_staged:
        assert not compaction.stage()
    assert not compaction.exchange()
    compaction.discard()
    compaction.clean()
    compaction.close()
    write(path, "r4", [40], replaces=False)
    assert rows_in(path) == [*NEW, 40]
    compact(str(path), keep_checkpoints=0)
    write(path, "r5", [50], replaces=False)
    assert rows_in(path) == [*NEW, 40, 50]


def test_files_of_others_in_the_target_are_not_removed_with_its_rows(tmp_path: Path) -> None:
    path = written(tmp_path / "t")
    (path / "README").write_text("mine")
    with pytest.raises(TargetNotEmpty, match="README"):
        write(path, "r3", NEW, replaces=True)
    (path / "README").unlink()
    assert rows_in(path) == OLD
    write(path, "r4", NEW, replaces=True)
    assert rows_in(path) == NEW


@pytest.mark.parametrize("values", [NEW, []])
@pytest.mark.parametrize("when", ["before", "after"])
def test_objects_show_the_old_rows_or_the_new_wherever_a_crash_comes(
    when: Literal["before", "after"], values: list[int]
) -> None:
    outcomes = set()
    for at in range(1000):
        memory = Memory()
        write_objects(memory.open, "r1", OLD, replaces=False)
        faulty = FaultyObjects(memory.open, Fault(at, "crash", when))
        with contextlib.suppress(SimulatedCrash):
            write_objects(faulty.open, "r2", values, replaces=True)
        seen = objects_in(memory.open(TARGET))
        outcomes.add(tuple(seen))
        if len(faulty.operations) <= at:
            break
        write_objects(memory.open, "r3", [60], replaces=False)
        assert objects_in(memory.open(TARGET)) == [*seen, 60]
        write_objects(memory.open, "r4", [50], replaces=True)
        assert objects_in(memory.open(TARGET)) == [50]
    assert outcomes == {tuple(OLD), tuple(values)}


def write_objects(
    open_objects: Callable[[str], ObjectStore], run: str, values: list[int], *, replaces: bool
) -> None:
    committables, run = [], f"frame-0-{run}"
    if values:
        files = ObjectFiles(open_objects(TARGET))
        writer = StagingWriter("", run, 0, attempt=0, files=files, in_place=True)
        writer.write(pa.RecordBatch.from_pydict({"x": values}))
        committables = [one.to_list() for one in writer.prepare_commit(1)]
    target = ObjectBatches(TARGET, open_objects=open_objects)
    target.write(Staged("frame", 0, run, {0: committables}), replaces=replaces)
