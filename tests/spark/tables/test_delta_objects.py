"""A Delta table on a real object store holds together: one driver, each checkpoint once, no object
too many, whatever is restarted, answered twice or not at all.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from epochgate.benchmarks import object_server
from epochgate.environment import set_in_environment
from epochgate.runtime import BehindCheckpoint, RetryLater, SinkStart
from epochgate.runtime.objects.client import open_url
from epochgate.runtime.objects.errors import ConditionsIgnored
from epochgate.runtime.objects.files import ObjectFiles
from epochgate.spark.delta_sink import (
    DeltaLog,
    DeltaSink,
    DeltaTarget,
    LogFailed,
    TableAhead,
    TableTakenOver,
    TableUnusable,
)
from epochgate.spark.parquet_sink import (
    Committable,
    CommittableDamaged,
    CommittableMissing,
    StagingWriter,
    TargetNotEmpty,
)
from epochgate.spark.tables.staged_objects import StagedObjects
from tests.runtime.objects.servers import BUCKET, rclone, seaweedfs
from tests.spark.sink.in_tasks import committed
from tests.spark.tables.delta_objects import Seen

deltalake = pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
ATTEMPTS = itertools.count(10)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("seaweedfs")
    with seaweedfs(folder) as variables, set_in_environment(variables):
        yield variables


@pytest.fixture
def table(server: dict[str, str], tmp_path: Path, request: pytest.FixtureRequest) -> Seen:
    return Seen(server, f"tables/{tmp_path.name}", tmp_path)


def stage(table: Seen, run: str, values: list[Any], subtask: int = 0) -> list[Committable]:
    files = ObjectFiles(open_url(table.url))
    writer = StagingWriter("", run, subtask, next(ATTEMPTS), files=files, in_place=True)
    writer.write(pa.RecordBatch.from_pydict({"x": values}))
    return writer.prepare_commit(1)


def claimed(table: Seen, run: str, restored: int | None = None, **options: Any) -> DeltaTarget:
    target = DeltaTarget(table.url, "job", run, **options)
    target.claim(restored)
    return target


def test_rows_are_seen_from_their_commit_on_and_committing_again_changes_nothing(
    table: Seen,
) -> None:
    target = claimed(table, "r1")
    files = stage(table, "r1", [1, 2]) + stage(table, "r1", [3], subtask=1)
    assert table.files("_delta_log") == []
    assert target.commit(1, files)
    assert table.rows() == [1, 2, 3]
    before = table.files()
    assert not target.commit(1, files)
    assert table.files() == before
    assert target.commit(2, [])
    again = claimed(table, "r2", 2)
    assert not again.commit(2, [])
    assert again.commit(3, stage(table, "r2", [4]))
    assert (table.rows(), again.rows()) == ([1, 2, 3, 4], 4)
    assert table.numbers("job") == [1, 2, 3]
    settings = {"AWS_ALLOW_HTTP": "true"}
    found = deltalake.DeltaTable(table.url, storage_options=settings).to_pyarrow_table()
    assert sorted(found["x"].to_pylist()) == [1, 2, 3, 4]


def test_a_driver_that_was_replaced_cannot_commit_any_more(table: Seen) -> None:
    zombie = claimed(table, "r1")
    zombie.commit(1, stage(table, "r1", [1]))
    successor = claimed(table, "r2", 1)
    with pytest.raises(TableTakenOver, match="run r1 may not commit"):
        zombie.commit(2, stage(table, "r1", [7]))
    successor.commit(2, stage(table, "r2", [2]))
    with pytest.raises(TableTakenOver):
        zombie.commit(3, [])
    assert table.rows() == [1, 2]
    with pytest.raises(TableAhead):
        claimed(table, "r3", 1)


def test_of_two_drivers_that_make_the_table_the_second_is_refused(table: Seen) -> None:
    zombie = claimed(table, "r1")
    successor = claimed(table, "r2")
    with pytest.raises(TableTakenOver):
        zombie.commit(1, stage(table, "r1", [7]))
    successor.commit(1, stage(table, "r2", [1]))
    with pytest.raises(TableTakenOver):
        zombie.commit(1, stage(table, "r1", [7]))
    assert table.rows() == [1]


class Interrupted(DeltaLog):
    """Lets something happen before the table is made, and loses the answer to the next write."""

    between: Any = None
    loses = False

    def create(self, *arguments: Any) -> None:
        between, Interrupted.between = Interrupted.between, None
        if between is not None:
            between()
        super().create(*arguments)
        self.answer()

    def append(self, *arguments: Any) -> None:
        super().append(*arguments)
        self.answer()

    def answer(self) -> None:
        is_lost, Interrupted.loses = Interrupted.loses, False
        if is_lost:
            raise LogFailed(self.path, "connection reset")


def test_a_table_that_a_driver_makes_between_the_claim_of_the_next_and_its_commit_is_entered(
    table: Seen,
) -> None:
    """There is no lock in an object store, so this may happen; the rows are of one checkpoint."""
    zombie = claimed(table, "r1", log=Interrupted)
    files, successors = stage(table, "r1", [1]), []
    Interrupted.between = lambda: successors.append(claimed(table, "r2", 1))
    with pytest.raises(TableTakenOver):
        zombie.commit(1, files)
    (successor,) = successors
    assert successor.remove_orphans([]) == []
    assert not successor.commit(1, files)
    assert successor.commit(2, stage(table, "r2", [2]))
    with pytest.raises(TableTakenOver):
        zombie.commit(2, stage(table, "r1", [7]))
    assert table.rows() == [1, 2]
    assert table.numbers("job/driver") == [1, 2, 2]


def test_rows_of_a_commit_whose_answer_was_lost_are_there_once(table: Seen) -> None:
    target = claimed(table, "r1", log=Interrupted)
    for number in (1, 2):
        files = stage(table, "r1", [number])
        Interrupted.loses = True
        with pytest.raises(RetryLater, match="connection reset"):
            target.commit(number, files)
        assert not target.commit(number, files), "the next look finds it"
    assert table.rows() == [1, 2]


def test_what_a_dead_run_has_uploaded_is_removed_and_what_the_table_has_named_is_not(
    table: Seen,
) -> None:
    first = claimed(table, "r1")
    for number in (1, 2, 3):
        first.commit(number, stage(table, "r1", [number]))
    settings = {"AWS_ALLOW_HTTP": "true"}
    deltalake.DeltaTable(table.url, storage_options=settings).optimize.compact()
    held, orphan = stage(table, "r1", [4]), stage(table, "r1", [7], subtask=2)
    time.sleep(2.1)  # time stamps of the store are in seconds, and its orphans are told by them
    second = claimed(table, "r2", 4)
    later = stage(table, "r1", [8], subtask=3)
    named = [one for one in table.files("data") if one not in {f.path for f in held}]
    removed = second.remove_orphans(held)
    assert removed == sorted([orphan[0].path, later[0].path])
    assert second.commit(4, held)
    assert table.rows() == [1, 2, 3, 4]
    left = set(table.files("data")) - {held[0].path}
    assert left == set(named) - set(removed), "of the compacted ones the past is made"


def test_what_is_older_than_the_entries_that_are_there_is_left_to_the_table(
    table: Seen,
) -> None:
    target = claimed(table, "r1")
    (orphan,) = stage(table, "r1", [7])
    first, second = stage(table, "r1", [1]), stage(table, "r1", [2])
    target.commit(1, first)
    target.commit(2, second)
    log = DeltaLog(table.url)
    assert log.read()
    paths = {first[0].path, second[0].path}
    assert log.named_since(0) == (0, paths)
    open_url(table.url).delete(f"_delta_log/{0:020d}.json")
    since_ns, named = log.named_since(0)
    assert named == {second[0].path}
    assert since_ns > 0
    assert StagedObjects(open_url(table.url), log).remove_orphans(["r1"], []) == []
    assert orphan.path in table.files("data")


def test_a_table_that_is_set_back_takes_no_further_commit_and_no_start(table: Seen) -> None:
    target = claimed(table, "r1")
    for number in (1, 2):
        target.commit(number, stage(table, "r1", [number]))
    settings = {"AWS_ALLOW_HTTP": "true"}
    deltalake.DeltaTable(table.url, storage_options=settings).restore(0)
    with pytest.raises(BehindCheckpoint, match="after 1, up to 2"):
        target.commit(3, stage(table, "r1", [3]))
    start = SinkStart("job", "r2", 2, committed={"": 2})
    with pytest.raises(BehindCheckpoint):
        DeltaSink(table.url).create_committer(start)
    assert table.rows() == [1]


def test_a_file_that_is_gone_or_of_another_size_is_named_and_nothing_is_seen(table: Seen) -> None:
    target = claimed(table, "r1")
    files = stage(table, "r1", [1]) + stage(table, "r1", [2], subtask=1)
    objects = open_url(table.url)
    content = objects.get(files[1].path)
    objects.put(files[1].path, content[:-1])
    with pytest.raises(CommittableDamaged):
        target.commit(1, files)
    objects.delete(files[1].path)
    with pytest.raises(CommittableMissing):
        target.commit(1, files)
    objects.put(files[1].path, content)
    assert target.commit(1, files)
    assert table.rows() == [1, 2]


def test_the_driver_writes_one_entry_for_what_the_tasks_have_looked_at(table: Seen) -> None:
    sink = DeltaSink(table.url, commit_in="tasks")
    driver = sink.create_committer(SinkStart("job", "r1"))
    staged = {n: [one.to_list() for one in stage(table, "r1", [n], subtask=n)] for n in (0, 1)}
    driver.check(staged)
    passed = committed(sink, "r1", 1, staged)
    assert driver.commit(1, passed) is True
    assert driver.commit(1, passed) is False
    assert table.rows() == [0, 1]
    gone = {0: [one.to_list() for one in stage(table, "r1", [7])]}
    passed = committed(sink, "r1", 2, gone)
    open_url(table.url).delete(gone[0][0][3])
    with pytest.raises(CommittableMissing):
        driver.commit(2, committed(sink, "r1", 2, gone))


def test_other_objects_are_refused(table: Seen) -> None:
    open_url(table.url).put("notes.txt", b"mine")
    with pytest.raises(TargetNotEmpty, match=r"notes\.txt"):
        claimed(table, "r1")
    assert table.files() == ["notes.txt"]


def test_a_url_of_another_kind_of_store_is_refused() -> None:
    with pytest.raises(TableUnusable, match=r"no conditional PUT.*Give a directory"):
        DeltaTarget("hdfs://host/table", "job", "r1")


def test_a_server_that_ignores_conditions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    with (
        rclone(tmp_path / "server") as variables,
        set_in_environment(variables),
        pytest.raises(ConditionsIgnored, match="rows would be lost or doubled"),
    ):
        DeltaTarget(f"s3://{BUCKET}/table", "job", "r1").claim(None)


@pytest.mark.extended
def test_a_commit_waits_for_a_server_that_is_restarted(tmp_path: Path) -> None:
    ports = object_server.ports(object_server.PORTS)
    folder = tmp_path / "server"
    folder.mkdir()
    with object_server.seaweedfs(folder, ports) as variables, set_in_environment(variables):
        table = Seen(variables, "table", tmp_path)
        target = claimed(table, "r1")
        target.commit(1, stage(table, "r1", [1]))
        files = stage(table, "r1", [2])
    with set_in_environment(variables):
        outcome: list[Any] = []

        def commit() -> None:
            while not outcome:
                try:
                    outcome.append(target.commit(2, files))
                except RetryLater:
                    time.sleep(0.2)

        waiting = threading.Thread(target=commit)
        waiting.start()
        time.sleep(1.0)
        assert outcome == [], "nothing answers"
        with object_server.seaweedfs(folder, ports):
            waiting.join(60)
            assert outcome == [True]
            assert not target.commit(2, files)
            assert table.rows() == [1, 2]
