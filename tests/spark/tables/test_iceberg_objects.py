"""An Iceberg table in an object store, of an SQL catalog: each row once, one driver, no object too
many. Read by a few lines of Avro and Arrow's client, and not by the library.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs
import pytest

from epochgate.environment import set_in_environment
from epochgate.runtime import OperatorContext, SinkStart
from epochgate.runtime.objects.client import open_url
from epochgate.spark.iceberg_sink import IcebergCommitter, IcebergSink, IcebergTable, TableTakenOver
from epochgate.spark.parquet_sink import CommittableMissing
from epochgate.spark.streaming.identity import prefix_of
from epochgate.spark.streaming.targets.iceberg import IcebergBatches
from epochgate.spark.streaming.targets.target import Staged
from epochgate.spark.tables.staged_objects import StagedObjects
from tests.runtime.objects.servers import BUCKET, seaweedfs
from tests.spark.ingest.simulated import SimulatedIngest, options_for, random_kills, write_source
from tests.spark.tables import iceberg_replay
from tests.spark.tables.delta_objects import Seen

catalogs = pytest.importorskip("pyiceberg.catalog", reason="the extra `iceberg` is not installed")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("seaweedfs")
    with seaweedfs(folder) as variables, set_in_environment(variables):
        yield variables


class Lake:
    """A catalog in SQLite, with a warehouse in the bucket."""

    def __init__(self, server: dict[str, str], place: Path, monkeypatch: Any) -> None:
        self.place, self.name = place, f"lakes/{place.name}"
        self.seen = Seen(server, f"{self.name}/sales/events", place)
        self.properties = {
            **iceberg_replay.catalog(place),
            "warehouse": f"s3://{BUCKET}/{self.name}",
        }
        self._copies = place / "copies"
        monkeypatch.setitem(iceberg_replay.PLACES, f"s3://{BUCKET}/", f"{self._copies}/")
        for name, value in self.properties.items():
            monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{name.upper()}", value)

    def rows(self, column: str = "x") -> list[Any]:
        pyarrow.fs.copy_files(
            f"{BUCKET}/{self.name}",
            str(self._copies / self.name),
            source_filesystem=self.seen.client,
        )
        return iceberg_replay.rows(self.place, column)

    def driver(self, run: str, restored: int | None = None) -> IcebergCommitter:
        sink = IcebergSink("lake", "sales.events")
        return sink.create_committer(SinkStart("job", run, restored))

    def staged(self, run: str, values: list[int], attempt: int = 1) -> dict[int, list[Any]]:
        schema = pa.schema([("x", pa.int64())])
        context = OperatorContext("sink", 0, attempt, 1, run, lambda event: None)
        writer = IcebergSink("lake", "sales.events").create_writer(context, None)
        writer.handle_event(["schema", schema.serialize().to_pybytes(), self.seen.url])
        writer.write(pa.RecordBatch.from_pydict({"x": values}, schema))
        return {0: writer.prepare_commit(1)}


@pytest.fixture
def lake(server: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    return Lake(server, tmp_path, monkeypatch)


def test_all_rows_arrive_and_a_second_run_adds_the_new_ones(tmp_path: Path, lake: Lake) -> None:
    expected = write_source(tmp_path)
    for name in ("first", "second", "third"):
        options = options_for(
            tmp_path,
            target="iceberg:lake.sales.events",
            checkpoint_directory=f"s3://{BUCKET}/{lake.name}.checkpoints",
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


def test_a_replaced_driver_commits_nothing_and_its_orphans_go(lake: Lake) -> None:
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


class Later:
    """A table that knows of nothing before a moment."""

    def __init__(self, since_ns: int) -> None:
        self._since_ns = since_ns

    def named_since(self, moment_ns: int) -> tuple[int, set[str]]:
        return self._since_ns, set()


def test_what_is_older_than_the_snapshots_that_are_kept_is_left(lake: Lake) -> None:
    driver = lake.driver("r1")
    for number in (1, 2):
        driver.commit(number, lake.staged("r1", [number], number))
    table = IcebergTable("lake", "sales.events", {})
    assert table.load()
    since_ns, named = table.named_since(0)
    assert since_ns == 0
    assert named == set(lake.seen.files("data/r1"))
    endpoint = {"s3.endpoint": os.environ["AWS_ENDPOINT_URL"], "s3.region": "us-east-1"}
    known = catalogs.load_catalog("lake", **lake.properties, **endpoint).load_table("sales.events")
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


def test_batches_of_a_query_are_in_the_table_once(lake: Lake) -> None:
    target = IcebergBatches("lake", "sales.events")
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
