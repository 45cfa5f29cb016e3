"""An Iceberg table in an object store, of an SQL and of a REST catalog: each row once, one driver,
no object too many. Read by a few lines of Avro and Arrow's client, and not by the library.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epochgate.benchmarks import object_server
from epochgate.environment import set_in_environment
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
from tests.runtime.objects.servers import BUCKET, KEY, SECRET, seaweedfs
from tests.spark.ingest.simulated import SimulatedIngest, options_for, random_kills, write_source
from tests.spark.tables import iceberg_replay
from tests.spark.tables.delta_objects import Seen
from tests.spark.tables.merged import check_some, place_of, rows_of

catalogs = pytest.importorskip("pyiceberg.catalog", reason="the extra `iceberg` is not installed")


TABLES = "tables"


@dataclass
class Server:
    """An object store and a REST catalog; `made`: how many tables there are."""

    variables: dict[str, str]
    rest: str
    made: int = 0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("seaweedfs")
    rest, *on = object_server.ports(object_server.PORTS + 1)
    with seaweedfs(folder, on, rest) as variables, set_in_environment(variables):
        object_server.make_table_bucket(folder, on, TABLES)
        yield Server(variables, f"http://127.0.0.1:{rest}")


class Lake:
    """A catalog, with a warehouse in a bucket."""

    def __init__(self, server: Server, kind: str, place: Path, monkeypatch: Any) -> None:
        server.made += 1
        self.place, self._rest = place, server.rest
        self.table = f"sales.events{server.made}"
        if kind == "sql":
            bucket, self.name = BUCKET, f"lakes/{place.name}"
            found = {**iceberg_replay.catalog(place), "warehouse": f"s3://{BUCKET}/{self.name}"}
        else:
            bucket, self.name = TABLES, ""
            found = {
                "type": "rest",
                "uri": server.rest,
                "credential": f"{KEY}:{SECRET}",
                "oauth2-server-uri": f"{server.rest}/v1/oauth/tokens",
                "warehouse": f"s3://{TABLES}",
            }
        self.kind, self.properties = kind, found
        name = f"{self.name}/{self.table.replace('.', '/')}".lstrip("/")
        self.seen = Seen(server.variables, name, place, bucket)
        self._copies = place / "copies"
        monkeypatch.setitem(iceberg_replay.PLACES, f"s3://{bucket}/{name}/", f"{self._copies}/")
        for key, value in self.properties.items():
            monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{key.upper().replace('-', '_')}", value)

    def rows(self, column: str = "x") -> list[Any]:
        return sorted(v for file in self.files() for v in pq.read_table(file)[column].to_pylist())

    def files(self) -> list[Path]:
        """Copies of the files of the newest snapshot."""
        for key in self.seen.files():
            copy = self._copies / key
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(self.seen.read(key))
        found = iceberg_replay.metadata(self.place, self.table)
        if self.kind == "rest":
            found = self._asked(f"/v1/{TABLES}/namespaces/sales/tables/{self.table[6:]}")
            location = found["metadata-location"].rpartition("/")[2]
            found = json.loads((self._copies / "metadata" / location).read_text())
        return iceberg_replay.files_of(iceberg_replay.history_in(found or {}))

    def _asked(self, path: str) -> dict[str, Any]:
        form = {"grant_type": "client_credentials", "client_id": KEY, "client_secret": SECRET}
        data = urlencode({**form, "scope": "catalog"}).encode()
        with urlopen(f"{self._rest}/v1/oauth/tokens", data, timeout=10) as answer:
            token = json.load(answer)["access_token"]
        request = Request(f"{self._rest}{path}", headers={"Authorization": f"Bearer {token}"})
        with urlopen(request, timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

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
) -> Lake:
    return Lake(server, request.param, tmp_path, monkeypatch)


def test_all_rows_arrive_and_a_second_run_adds_the_new_ones(tmp_path: Path, lake: Lake) -> None:
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


def test_of_two_commits_on_one_snapshot_the_catalog_refuses_the_second(lake: Lake) -> None:
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


def test_what_is_older_than_the_snapshots_that_are_kept_is_left(lake: Lake) -> None:
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
    lake: Lake,
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


def test_batches_of_a_query_are_in_the_table_once(lake: Lake) -> None:
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
        place_of(tmp_path, lambda: rows_of(lake.files()), target=target, merge_order=("at",))
    )
    left = [key for key in lake.seen.files("data") if "part-99999-" not in key]
    assert left == [], "a staged file"
