"""Commits in tasks first: a checkpoint's rows become visible all at once and exactly once too,
whatever crashes, which task ever commits twice, and whichever driver has been replaced.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

from epochgate.runtime import Committables, SinkStart
from epochgate.runtime.filesystem import AnyPath, FileSystem, LocalFileSystem
from epochgate.runtime.testing.faulty_filesystem import Fault, FaultyFileSystem, SimulatedCrash
from epochgate.spark.compaction import compact
from epochgate.spark.parquet_sink import (
    Committable,
    CommittableDamaged,
    CommittableMissing,
    ParquetCommitter,
    ParquetSink,
    StagingWriter,
    working_directory_of,
)
from tests.spark.sink.in_tasks import committed
from tests.spark.sink.test_commit import visible_rows

Staged = dict[int, list[Any]]
When = Literal["before", "during", "after"]


class Job:
    """The drivers and tasks of one job into one directory."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.path, self.options = path, options

    def sink(self, files: FileSystem | None = None) -> ParquetSink:
        return ParquetSink(str(self.path), files=files, commit_in="tasks", **self.options)

    def driver(
        self, run: str, restored: int | None = None, *, withdraws: bool = False
    ) -> ParquetCommitter:
        return self.sink().create_committer(SinkStart("job", run, restored, withdraws))

    def stage(self, run: str, rows: dict[int, list[int]], checkpoint: int = 1) -> Staged:
        """A file of each subtask."""
        found = {}
        for subtask, values in rows.items():
            batch = pa.RecordBatch.from_pydict({"x": values})
            found[subtask] = self.staged(run, subtask, batch, attempt=checkpoint)
        return found

    def staged(self, run: str, subtask: int, batch: pa.RecordBatch, attempt: int = 1) -> list[Any]:
        working = working_directory_of(self.path)
        partitions = self.options.get("partition_by", ())
        writer = StagingWriter(working, run, subtask, attempt, partition_by=partitions)
        writer.write(batch)
        return [one.to_list() for one in writer.prepare_commit(1)]

    def left(self) -> list[Path]:
        """Files of checkpoints that lie beside the target."""
        found = Path(working_directory_of(self.path)).rglob("part-*")
        return [path for path in found if path.is_file()]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path / "out")


def each_in_its_task(job: Job, run: str, checkpoint: int, staged: Staged) -> Committables:
    """Return what all tasks pass on, each of its own."""
    passed: Committables = {}
    for subtask, values in staged.items():
        passed |= committed(job.sink(), run, checkpoint, {subtask: values})
    return passed


def crash_points() -> Iterator[FaultyFileSystem]:
    """A file system for each operation of its user, and for each way of crashing there."""
    at, has_struck = 0, True
    whens: tuple[When, ...] = ("before", "during", "after")
    while has_struck:
        has_struck = False
        for when in whens:
            files = FaultyFileSystem(LocalFileSystem(), Fault(at, "crash", when))
            yield files
            has_struck = has_struck or files.has_struck
        at += 1


def test_nothing_is_visible_before_the_driver_commits_and_everything_after_it(job: Job) -> None:
    driver = job.driver("r1")
    staged = job.stage("r1", {0: [1, 2], 1: [3]})
    driver.check(staged)
    passed = each_in_its_task(job, "r1", 1, staged)
    assert [len(values) for values in passed.values()] == [1, 1], "one value of each subtask"
    assert visible_rows(job.path) == []
    assert driver.commit(1, passed) is True
    assert visible_rows(job.path) == [1, 2, 3]
    assert (driver.rows_committed, driver.files_committed, driver.rows_visible) == (3, 2, 3)
    assert [(one.files, one.rows) for one in driver.target.committed()] == [(2, 3)]
    driver.close()
    assert job.driver("r2", 1).rows_visible == 3


def test_a_task_without_rows_passes_nothing_on(job: Job) -> None:
    driver = job.driver("r1")
    passed = each_in_its_task(job, "r1", 1, {0: [], **job.stage("r1", {1: [3]})})
    assert passed[0] == []
    driver.commit(1, passed)
    assert driver.commit(2, {0: [], 1: []}) is True
    assert visible_rows(job.path) == [3]


def test_a_second_commit_changes_nothing(job: Job) -> None:
    driver = job.driver("r1")
    staged = job.stage("r1", {0: [1], 1: [2]})
    passed = each_in_its_task(job, "r1", 1, staged)
    assert each_in_its_task(job, "r1", 1, staged) == passed, "before the driver's commit"
    driver.commit(1, passed)
    assert each_in_its_task(job, "r1", 1, staged) == passed, "and after it"
    assert driver.commit(1, passed) is False
    assert driver.commit(1, staged) is False, "as a driver that commits by itself would ask"
    driver.close()
    again = job.driver("r2", 1)
    assert again.commit(1, each_in_its_task(job, "r2", 1, staged)) is False
    assert visible_rows(job.path) == [1, 2]


def test_a_commit_that_a_compaction_has_merged_is_known_to_tasks_that_commit_again(
    job: Job,
) -> None:
    driver = job.driver("r1")
    first, second = job.stage("r1", {0: [1]}), job.stage("r1", {0: [2]}, checkpoint=2)
    for checkpoint, staged in ((1, first), (2, second)):
        driver.commit(checkpoint, each_in_its_task(job, "r1", checkpoint, staged))
    compact(str(job.path))
    driver.close()
    again = job.driver("r2", 2)
    assert again.commit(2, each_in_its_task(job, "r2", 2, second)) is False
    assert visible_rows(job.path) == [1, 2]


class Between(LocalFileSystem):
    """Does something once, between a look at a file and its rename."""

    def __init__(self, does: Callable[[], object]) -> None:
        self.does: Callable[[], object] | None = does

    def rename(self, source: AnyPath, destination: AnyPath) -> None:
        does, self.does = self.does, None
        if does is not None:
            does()
        super().rename(source, destination)


def test_two_attempts_that_commit_at_once_pass_the_same_on(job: Job) -> None:
    driver = job.driver("r1")
    staged = job.stage("r1", {0: [1], 1: [2]})
    others: list[Committables] = []
    late = job.sink(Between(lambda: others.append(committed(job.sink(), "r1", 1, staged))))
    passed = committed(late, "r1", 1, staged)
    assert others == [passed]
    driver.commit(1, passed)
    assert visible_rows(job.path) == [1, 2]


def test_an_attempt_that_moves_a_file_after_the_driver_has_committed_changes_nothing(
    job: Job,
) -> None:
    driver = job.driver("r1")
    staged = job.stage("r1", {0: [1], 1: [2]})

    def all_others() -> None:
        driver.commit(1, each_in_its_task(job, "r1", 1, staged))

    committed(job.sink(Between(all_others)), "r1", 1, staged)
    assert visible_rows(job.path) == [1, 2]
    assert job.left() == []


def test_after_a_change_of_parallelism_one_task_commits_what_several_have_handed_over(
    job: Job,
) -> None:
    before = job.driver("r1")
    staged = job.stage("r1", {0: [1], 1: [2], 2: [3]})
    committed(job.sink(), "r1", 1, {1: staged[1]})
    before.close()
    driver = job.driver("r2", 1)
    driver.open("r2", {1: staged})
    driver.commit(1, committed(job.sink(), "r2", 1, staged))
    assert visible_rows(job.path) == [1, 2, 3]


def test_tasks_of_a_replaced_driver_add_nothing_to_a_checkpoint_that_was_taken_again(
    job: Job,
) -> None:
    before = job.driver("r1")
    lost = job.stage("r1", {0: [90], 1: [91]})
    committed(job.sink(), "r1", 1, {0: lost[0]})
    before.close()
    driver = job.driver("r2")
    driver.open("r2", {})
    staged = job.stage("r2", {0: [1], 1: [2]})
    passed = each_in_its_task(job, "r2", 1, staged)
    late = Path(working_directory_of(job.path), lost[1][0][3])
    assert not late.exists(), "what no checkpoint refers to was removed when the driver started"
    lost[1] = job.stage("r1", {1: [91]})[1]
    committed(job.sink(), "r1", 1, {1: lost[1]})
    driver.commit(1, passed)
    assert visible_rows(job.path) == [1, 2]
    driver.close()
    after = job.driver("r3", 1)
    after.open("r3", {})
    assert job.left() == []


def test_tasks_of_a_replaced_driver_and_its_successor_move_the_same_files(job: Job) -> None:
    before = job.driver("r1")
    staged = job.stage("r1", {0: [1], 1: [2]})
    before.close()
    driver = job.driver("r2", 1)
    driver.open("r2", {1: staged})
    passed = committed(job.sink(), "r2", 1, {0: staged[0]})
    committed(job.sink(), "r1", 1, staged)  # of the driver that was taken for dead
    passed |= committed(job.sink(), "r2", 1, {1: staged[1]})
    driver.commit(1, passed)
    assert visible_rows(job.path) == [1, 2]


class Removing(LocalFileSystem):
    """Does something before it removes a directory."""

    def __init__(self, does: Callable[[], object]) -> None:
        self.does = does

    def remove_empty_directory(self, path: AnyPath) -> None:
        self.does()
        super().remove_empty_directory(path)


def test_a_driver_that_starts_leaves_what_a_late_task_of_the_one_before_moves_meanwhile(
    job: Job,
) -> None:
    before = job.driver("r1")
    staged = job.stage("r1", {0: [1], 1: [2]})
    before.close()
    Path(working_directory_of(job.path), "prepared", "checkpoint-000000000001-r1").mkdir(
        parents=True
    )
    late = Removing(lambda: committed(job.sink(), "r1", 1, staged))
    driver = job.sink(late).create_committer(SinkStart("job", "r2", 1))
    driver.open("r2", {1: staged})
    driver.commit(1, committed(job.sink(), "r2", 1, staged))
    assert visible_rows(job.path) == [1, 2]


def test_a_withdrawn_checkpoint_does_not_come_back_by_a_late_task(job: Job) -> None:
    before = job.driver("r1")
    staged = job.stage("r1", {0: [1]})
    before.commit(1, each_in_its_task(job, "r1", 1, staged))
    lost = job.stage("r1", {0: [9]}, checkpoint=2)
    passed = each_in_its_task(job, "r1", 2, lost)
    before.commit(2, passed)
    before.close()
    driver = job.driver("r2", 1, withdraws=True)
    assert visible_rows(job.path) == [1]
    committed(job.sink(), "r1", 2, lost)
    again = job.stage("r2", {0: [2]}, checkpoint=2)
    driver.commit(2, each_in_its_task(job, "r2", 2, again))
    assert visible_rows(job.path) == [1, 2]


def test_what_tasks_have_gathered_a_driver_commits_that_does_it_all_by_itself(job: Job) -> None:
    before = job.driver("r1")
    staged = job.stage("r1", {0: [1], 1: [2]})
    committed(job.sink(), "r1", 1, {0: staged[0]})
    before.close()
    driver = job.driver("r2", 1)
    driver.open("r2", {1: staged})
    driver.commit(1, staged)
    assert visible_rows(job.path) == [1, 2]
    assert job.left() == []


def test_what_a_driver_has_gathered_is_committed_by_one_whose_tasks_commit(tmp_path: Path) -> None:
    for number, files in enumerate(crash_points()):
        job = Job(tmp_path / str(number) / "out")
        job.path.parent.mkdir()
        before = ParquetSink(str(job.path), files=files)
        staged: Staged = {}
        with contextlib.suppress(SimulatedCrash):
            driver = before.create_committer(SinkStart("job", "r1"))
            staged = job.stage("r1", {0: [1], 1: [2]})
            driver.commit(1, staged)
            driver.close()
        again = job.driver("r2", 1 if staged else None)
        staged = staged or job.stage("r2", {0: [1], 1: [2]})
        again.open("r2", {1: staged})
        again.commit(1, each_in_its_task(job, "r2", 1, staged))
        assert visible_rows(job.path) == [1, 2]
        assert job.left() == []
        again.close()


def test_a_missing_file_is_named_by_the_driver_and_nothing_is_visible(job: Job) -> None:
    driver = job.driver("r1")
    staged = job.stage("r1", {0: [1], 1: [2]})
    gone = Path(working_directory_of(job.path), staged[1][0][3])
    kept = gone.read_bytes()
    gone.unlink()
    passed = each_in_its_task(job, "r1", 1, staged)
    with pytest.raises(CommittableMissing, match=gone.name):
        driver.commit(1, passed)
    assert visible_rows(job.path) == []
    gone.write_bytes(kept)
    driver.commit(1, passed)
    assert visible_rows(job.path) == [1, 2]


def test_a_damaged_file_is_refused_by_its_task(job: Job) -> None:
    job.driver("r1")
    staged = job.stage("r1", {0: [1]})
    path = Path(working_directory_of(job.path), staged[0][0][3])
    data = path.read_bytes()
    path.write_bytes(data[:-20] + b"\0" * 12 + data[-8:])
    with pytest.raises(CommittableDamaged, match=path.name):
        committed(job.sink(), "r1", 1, staged)


def test_files_of_partitions_lie_in_their_directories(tmp_path: Path) -> None:
    job = Job(tmp_path / "out", partition_by=("c",))
    driver = job.driver("r1")
    batch = pa.RecordBatch.from_pydict({"x": [1, 2, 3], "c": ["a", "b", "a"]})
    staged = {0: job.staged("r1", 0, batch), 1: job.staged("r1", 1, batch)}
    driver.commit(1, each_in_its_task(job, "r1", 1, staged))
    assert visible_rows(job.path) == [1, 1, 2, 2, 3, 3]
    assert sorted(path.parent.name for path in job.path.rglob("*.parquet")) == [
        "c=a",
        "c=a",
        "c=b",
        "c=b",
    ]


def test_columns_may_be_added(tmp_path: Path) -> None:
    job = Job(tmp_path / "out", evolution="add")
    driver = job.driver("r1")
    old = pa.RecordBatch.from_pydict({"x": [1]})
    new = pa.RecordBatch.from_pydict({"x": [2], "y": ["b"]})
    staged = {0: job.staged("r1", 0, old), 1: job.staged("r1", 1, new)}
    driver.commit(1, each_in_its_task(job, "r1", 1, staged))
    assert visible_rows(job.path) == [1, 2]
    schema = driver.target.schema()
    assert schema is not None
    assert schema.names == ["x", "y"]


@pytest.mark.parametrize("strikes", ["a task", "the driver"])
def test_a_crash_at_any_step_loses_and_doubles_nothing(tmp_path: Path, strikes: str) -> None:
    crashed = set()
    for number, files in enumerate(crash_points()):
        job = Job(tmp_path / str(number) / "out")
        job.path.parent.mkdir()
        before = job.driver("r1")
        staged = job.stage("r1", {0: [1, 2], 1: [3]})
        job.stage("r1", {2: [99]})
        before.close()
        faulty = files if strikes == "a task" else None
        driver = None
        try:
            sink = job.sink(None if strikes == "a task" else files)
            driver = sink.create_committer(SinkStart("job", "r2", 1))
            driver.open("r2", {1: staged})
            passed = committed(job.sink(faulty), "r2", 1, {0: staged[0]})
            passed |= committed(job.sink(faulty), "r2", 1, {1: staged[1]})
            driver.commit(1, passed)
            driver.close()
        except SimulatedCrash:
            crashed.add(files.operations[-1].name)
        assert visible_rows(job.path) in ([], [1, 2, 3]), "a reader sees whole checkpoints only"
        if driver is not None and faulty is not None:
            driver.close()
        again = job.driver("r3", 1)
        again.open("r3", {1: staged})
        again.commit(1, each_in_its_task(job, "r3", 1, staged))
        assert visible_rows(job.path) == [1, 2, 3]
        assert job.left() == []
        again.close()
    assert {"rename", "fsync_directory"} <= crashed


def test_a_disk_that_fills_in_a_task_is_told_as_a_reason_to_try_again(job: Job) -> None:
    job.driver("r1")
    staged = job.stage("r1", {0: [1]})
    files = FaultyFileSystem(LocalFileSystem(), Fault(0, "disk_full"))
    with pytest.raises(AssertionError, match="No space left"):
        committed(job.sink(files), "r1", 1, staged)
    files.free_space()
    passed = committed(job.sink(files), "r1", 1, staged)
    assert Committable.from_list(staged[0][0]).file_name in str(passed)
