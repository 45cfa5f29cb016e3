"""Moves of tasks into a Delta table, whose log alone says what is read: of each checkpoint all or
nothing, once, and nothing of a driver that was replaced.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from epochgate.runtime import SinkStart
from epochgate.runtime.filesystem import FileSystem
from epochgate.runtime.testing.faulty_filesystem import SimulatedCrash
from epochgate.spark.delta_sink import DeltaCommitter, DeltaSink, TableTakenOver
from epochgate.spark.parquet_sink import CommittableDamaged, CommittableMissing, StagingWriter
from tests.spark.sink.in_tasks import committed
from tests.spark.sink.test_commit_in_tasks import crash_points
from tests.spark.tables.delta_replay import rows

pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
Staged = dict[int, list[Any]]


class Table:
    """A Delta table that does not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def sink(self, files: FileSystem | None = None) -> DeltaSink:
        return DeltaSink(str(self.path), files=files, commit_in="tasks")

    def driver(self, run: str, restored: int | None = None) -> DeltaCommitter:
        return self.sink().create_committer(SinkStart("job", run, restored))

    def stage(self, run: str, values: dict[int, list[int]], attempt: int = 1) -> Staged:
        found = {}
        for subtask, numbers in values.items():
            writer = StagingWriter(str(self.path / "_epochgate"), run, subtask, attempt)
            writer.write(pa.RecordBatch.from_pydict({"x": numbers}))
            found[subtask] = [one.to_list() for one in writer.prepare_commit(1)]
        return found

    def staged(self, committable: list[Any]) -> Path:
        return Path(self.path, "_epochgate", committable[3])


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "table")


def test_the_driver_writes_one_entry_for_what_the_tasks_have_moved(table: Table) -> None:
    driver = table.driver("r1")
    staged = table.stage("r1", {0: [1, 2], 1: [3]})
    driver.check(staged)
    passed = committed(table.sink(), "r1", 1, staged)
    assert not (table.path / "_delta_log").exists(), "files without a log are no table"
    assert driver.commit(1, passed) is True
    assert driver.commit(1, passed) is False
    assert committed(table.sink(), "r1", 1, staged) == passed
    assert rows(table.path) == [1, 2, 3]
    assert len(list((table.path / "_delta_log").glob("*.json"))) == 1
    assert driver.rows_committed == 3


def test_tasks_of_a_replaced_driver_add_nothing(table: Table) -> None:
    before = table.driver("r1")
    before.commit(1, committed(table.sink(), "r1", 1, table.stage("r1", {0: [1]})))
    lost = table.stage("r1", {0: [90], 1: [91]}, 2)
    passed = committed(table.sink(), "r1", 2, {0: lost[0]})
    before.target.release()
    driver = table.driver("r2", 1)
    driver.open("r2", {})
    assert not table.staged(lost[1][0]).exists(), "no checkpoint refers to it"
    late = table.stage("r1", {1: [91]}, 2)
    passed |= committed(table.sink(), "r1", 2, late)
    with pytest.raises(TableTakenOver):
        before.commit(2, passed)
    again = table.stage("r2", {0: [2], 1: [3]}, 2)
    driver.commit(2, committed(table.sink(), "r2", 2, again))
    assert rows(table.path) == [1, 2, 3]


def test_a_missing_file_is_named_by_the_driver_and_a_damaged_one_by_its_task(
    table: Table,
) -> None:
    driver = table.driver("r1")
    staged = table.stage("r1", {0: [1], 1: [2]})
    gone = table.staged(staged[1][0])
    kept = gone.read_bytes()
    gone.unlink()
    with pytest.raises(CommittableMissing, match=gone.name):
        driver.commit(1, committed(table.sink(), "r1", 1, staged))
    assert not (table.path / "_delta_log").exists()
    gone.write_bytes(kept[:-20] + b"\0" * 12 + kept[-8:])
    with pytest.raises(CommittableDamaged, match=gone.name):
        committed(table.sink(), "r1", 1, staged)
    gone.write_bytes(kept)
    driver.commit(1, committed(table.sink(), "r1", 1, staged))
    assert rows(table.path) == [1, 2]


def test_files_that_a_cleaning_has_removed_after_their_commit_are_not_missed(
    table: Table,
) -> None:
    driver = table.driver("r1")
    staged = table.stage("r1", {0: [1], 1: [2]})
    driver.commit(1, committed(table.sink(), "r1", 1, staged))
    for file in table.path.glob("*.parquet"):
        file.unlink()
    driver.close()
    again = table.driver("r2", 1)
    assert again.commit(1, committed(table.sink(), "r2", 1, staged)) is False


def test_a_crash_of_a_task_at_any_step_loses_and_doubles_nothing(tmp_path: Path) -> None:
    crashed = set()
    for number, files in enumerate(crash_points()):
        table = Table(tmp_path / str(number))
        driver = table.driver("r1")
        staged = table.stage("r1", {0: [1, 2], 1: [3]})
        try:
            committed(table.sink(files), "r1", 1, staged)
        except SimulatedCrash:
            crashed.add(files.operations[-1].name)
        driver.commit(1, committed(table.sink(), "r1", 1, staged))
        assert rows(table.path) == [1, 2, 3]
        driver.close()
    assert {"rename", "fsync_directory"} <= crashed
