"""An Iceberg table in an object store, of an SQL and of a REST catalog: each row once, one driver,
no object too many. Read by a few lines of Avro and Arrow's client, and not by the library.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from epochgate.runtime import OperatorContext, SinkStart
from epochgate.runtime.objects.client import open_url
from epochgate.spark.iceberg_sink import (
    IcebergCommitter,
    IcebergSink,
    IcebergTable,
    TableOvertaken,
    TableTakenOver,
)
from epochgate.spark.parquet_sink import CommittableMissing
from epochgate.spark.streaming.identity import prefix_of
from epochgate.spark.streaming.targets.iceberg import IcebergBatches
from epochgate.spark.streaming.targets.target import Staged
from epochgate.spark.tables.staged_objects import StagedObjects
from tests.runtime.objects.servers import BUCKET
from tests.spark.ingest.simulated import SimulatedIngest, options_for, random_kills, write_source
from tests.spark.tables.iceberg_objects import Lake, Server, served
from tests.spark.tables.merged import check_some, place_of, rows_of

catalogs = pytest.importorskip("pyiceberg.catalog", reason="the extra `iceberg` is not installed")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("seaweedfs")) as server:
        yield server


class WrittenLake(Lake):
    """With drivers and tasks that write."""

    def driver(self, run: str, restored: int | None = None) -> IcebergCommitter:
        sink = IcebergSink("lake", self.table)
        return sink.create_committer(SinkStart("job", run, restored))

    def staged(self, run: str, values: list[int], attempt: int = 1) -> dict[int, list[Any]]:
        schema = pa.schema([("x", pa.int64())])
        context = OperatorContext("sink", 0, attempt, 1, run, lambda event: None)
        writer = IcebergSink("lake", self.table).create_writer(context, None)
        writer.handle_event(["schema", schema.serialize().to_pybytes(), self.seen.url])
        writer.write(pa.RecordBatch.from_pydict({"x": values}, schema))
        return {0: writer.prepare_commit(1)}


@pytest.fixture(params=["sql", "rest"])
def lake(
    server: Server,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> WrittenLake:
    lake = WrittenLake(server, request.param, tmp_path)
    for key, value in lake.environment().items():
        monkeypatch.setenv(key, value)
    return lake


def test_all_rows_arrive_and_a_second_run_adds_the_new_ones(
    tmp_path: Path, lake: WrittenLake
) -> None:
    expected = write_source(tmp_path)
    for name in ("first", "second", "third"):
        options = options_for(
            tmp_path,
            target=f"iceberg:lake.{lake.table}",
            checkpoint_directory=f"s3://{BUCKET}/{lake.table}.checkpoints",
        )
        simulated = SimulatedIngest(options, name=name)
        simulated.run(random_kills(simulated, 2, share=0.05))
        result = simulated.leave()
        assert result.state == "finished", result.reason
        if name == "first":
            assert result.rows_committed == 30
            expected += write_source(tmp_path, files=1, first=100)
    assert result.rows_committed == 0
    assert lake.rows() == expected


def test_a_table_partitioned_by_transforms_has_all_rows(tmp_path: Path, lake: WrittenLake) -> None:
    expected = write_source(tmp_path)
    options = options_for(
        tmp_path,
        target=f"iceberg:lake.{lake.table}",
        checkpoint_directory=f"s3://{BUCKET}/{lake.table}.checkpoints",
        partition_by=("bucket(3,x)", "truncate(2,name)"),
    )
    simulated = SimulatedIngest(options)
    simulated.run()
    assert simulated.leave().state == "finished"
    assert lake.rows() == expected


def test_a_replaced_driver_commits_nothing_and_its_orphans_go(lake: WrittenLake) -> None:
    zombie = lake.driver("r1")
    assert zombie.commit(1, lake.staged("r1", [1]))
    held, orphan = lake.staged("r1", [2], 2), lake.staged("r1", [7], 3)
    time.sleep(2.1)  # time stamps of the store are in seconds, and its orphans are told by them
    successor = lake.driver("r2", 2)
    with pytest.raises(TableTakenOver):
        zombie.commit(2, held)
    successor.open("r2", {2: held})
    assert orphan[0][0][3] not in lake.seen.files("data")
    assert successor.commit(2, held)
    assert not successor.commit(2, held)
    gone = lake.staged("r2", [3])
    open_url(lake.seen.url).delete(gone[0][0][3])
    with pytest.raises(CommittableMissing):
        successor.commit(3, gone)
    assert lake.rows() == [1, 2]
    for driver in (zombie, successor):
        driver.close()


def test_of_two_commits_on_one_snapshot_the_catalog_refuses_the_second(lake: WrittenLake) -> None:
    driver = lake.driver("r1")
    driver.commit(1, lake.staged("r1", [1]))
    driver.close()
    first, second = (IcebergTable("lake", lake.table, {}) for _ in range(2))
    assert first.load()
    assert second.load()
    first.commit([], [], {"by": "first"}, {}, "last")
    with pytest.raises(TableOvertaken):
        second.commit([], [], {"by": "second"}, {}, "last")
    assert second.load()
    assert second.properties["by"] == "first"
    for table in (first, second):
        table.close()


class Later:
    """A table that knows of nothing before a moment."""

    def __init__(self, since_ns: int) -> None:
        self._since_ns = since_ns

    def named_since(self, moment_ns: int) -> tuple[int, set[str]]:
        return self._since_ns, set()


def test_what_is_older_than_the_snapshots_that_are_kept_is_left(lake: WrittenLake) -> None:
    driver = lake.driver("r1")
    for number in (1, 2):
        driver.commit(number, lake.staged("r1", [number], number))
    table = IcebergTable("lake", lake.table, {})
    assert table.load()
    since_ns, named = table.named_since(0)
    assert since_ns == 0
    assert named == set(lake.seen.files("data/r1"))
    endpoint = {"s3.endpoint": os.environ["AWS_ENDPOINT_URL"], "s3.region": "us-east-1"}
    known = catalogs.load_catalog("lake", **lake.properties, **endpoint).load_table(lake.table)
    known.maintenance.expire_snapshots().by_id(known.snapshots()[0].snapshot_id).commit()
    assert table.load()
    since_ns, named = table.named_since(0)
    assert since_ns > 0
    assert named == set(lake.seen.files("data/r1"))
    (orphan,) = lake.staged("r0", [7], 3)[0]
    old = StagedObjects(open_url(lake.seen.url), Later(since_ns + 10**10))
    assert old.remove_orphans(["r0"], []) == []
    assert orphan[3] in lake.seen.files("data")
    table.close()
    driver.close()


def test_a_table_whose_metadata_lies_elsewhere_keeps_its_orphans_and_is_written_to(
    lake: WrittenLake,
) -> None:
    """The times of its snapshots are asked of the table's own place alone."""
    if lake.kind == "rest":
        pytest.skip("this catalog's store lets metadata lie below the table alone")
    driver = lake.driver("r1")
    driver.commit(1, lake.staged("r1", [1]))
    table = IcebergTable("lake", lake.table, {})
    assert table.load()
    table.end(table.begin(), {"write.metadata.path": f"{lake.seen.url}-elsewhere"})
    table.close()
    driver = lake.driver("r2", 1)
    driver.commit(2, lake.staged("r2", [2]))
    (orphan,) = lake.staged("r2", [7], 3)[0]
    driver = lake.driver("r3", 2)
    driver.open("r3", {})
    driver.commit(3, lake.staged("r3", [3]))
    assert orphan[3] in lake.seen.files("data")
    driver.close()


def test_batches_of_a_query_are_in_the_table_once(lake: WrittenLake) -> None:
    target = IcebergBatches("lake", lake.table)
    assert target.number("query") == 0
    assert target.prepare().told == (lake.seen.url,)
    for batch in range(2):
        run = f"{prefix_of('query')}{batch}-1"
        assert target.apply(Staged("query", batch, run, lake.staged(run, [batch])), batch)
    lake.staged(f"{prefix_of('query')}1-2", [7])
    target.notes().exchange(target.notes().read(), {})
    target.sweep("query", 32)
    assert len(lake.seen.files("data/query-1-2")) == 0
    assert lake.rows() == [0, 1]


def test_rows_replace_others_and_nothing_stays_that_no_snapshot_names(
    lake: Lake, tmp_path: Path
) -> None:
    target = f"iceberg:lake.{lake.table}"
    check_some(
        place_of(tmp_path, lambda: rows_of(lake.active_files()), target=target, merge_order=("at",))
    )
    left = [key for key in lake.seen.files("data") if "part-99999-" not in key]
    assert left == [], "a staged file"
