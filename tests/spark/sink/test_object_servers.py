"""On real servers of object stores: one that keeps its word about conditions, and one that lies."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

import epochgate
from epochgate.runtime.objects.client import open_url
from epochgate.runtime.objects.errors import ConditionsIgnored
from epochgate.runtime.objects.log import LogTakenOver, ObjectLog
from epochgate.spark.compaction import compact
from epochgate.spark.compaction.errors import CompactionReplaced
from epochgate.spark.ingest.plan import plan_ingest
from epochgate.spark.parquet_sink.reading import NotATarget
from tests.runtime.objects.servers import BUCKET, KEY, SECRET, rclone, seaweedfs
from tests.spark.ingest.simulated import SimulatedIngest, options_for, write_source


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with seaweedfs(tmp_path_factory.mktemp("seaweedfs")) as variables:
        yield variables


@pytest.fixture
def honest(server: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> pyarrow.fs.FileSystem:
    """The environment of a client, and another client: Arrow's own, in C++."""
    for name, value in server.items():
        monkeypatch.setenv(name, value)
    return pyarrow.fs.S3FileSystem(
        endpoint_override=server["AWS_ENDPOINT_URL"].removeprefix("http://"),
        scheme="http",
        access_key=KEY,
        secret_key=SECRET,
        region="us-east-1",
    )


def rows_in(target: str, s3: pyarrow.fs.FileSystem) -> list[int]:
    """The committed rows, by Arrow's client and the log alone."""
    place = f"{BUCKET}/{target}"
    selector = pyarrow.fs.FileSelector(f"{place}/_epochgate/log")
    files: list[str] = []
    for info in sorted(s3.get_file_info(selector), key=lambda info: str(info.path)):
        with s3.open_input_stream(info.path) as stream:
            entry = json.loads(stream.read())
        assert entry["kind"] != "withdraw"
        files += entry.get("files", [])
    tables = [pq.read_table(f"{place}/{path}", filesystem=s3) for path in files]
    return sorted(pa.concat_tables(tables)["x"].to_pylist())


def finished(simulated: SimulatedIngest) -> int:
    simulated.run()
    result = simulated.leave()
    assert result.state == "finished", result.reason
    return result.rows_visible


def test_rows_arrive_once_and_are_read(tmp_path: Path, honest: pyarrow.fs.FileSystem) -> None:
    url = f"s3://{BUCKET}/landed/out"
    with pytest.raises(NotATarget):
        epochgate.read(url)
    rows = write_source(tmp_path)
    assert finished(SimulatedIngest(options_for(tmp_path, target=url))) == 30
    assert rows_in("landed/out", honest) == rows
    rows += write_source(tmp_path, first=100)
    again = SimulatedIngest(options_for(tmp_path, target=url))
    again.plan.release()
    table = epochgate.read(url)
    assert sorted(table["x"].to_pylist()) == rows[:30]
    assert table.column_names == ["x", "name", "checkpoint"]


def test_checkpoints_alone_may_lie_in_an_object_store(
    tmp_path: Path, honest: pyarrow.fs.FileSystem
) -> None:
    rows = write_source(tmp_path)
    options = options_for(tmp_path, checkpoint_directory=f"s3://{BUCKET}/checkpoints")
    assert finished(SimulatedIngest(options)) == 30
    assert sorted(epochgate.read((tmp_path / "out").as_uri())["x"].to_pylist()) == rows
    assert finished(SimulatedIngest(options)) == 30, "nothing is taken twice"


def test_rejected_rows_and_new_columns_arrive_once(
    tmp_path: Path, honest: pyarrow.fs.FileSystem
) -> None:
    url = f"s3://{BUCKET}/evolving/out"
    (tmp_path / "in").mkdir()
    shared: dict[str, Any] = {"target": url, "on_bad_row": "reject", "schema_evolution": "widen"}

    def ingested(name: str, schema: str) -> tuple[int, int]:
        simulated = SimulatedIngest(options_for(tmp_path, schema=schema, **shared), name=name)
        simulated.run()
        result = simulated.leave()
        assert result.state == "finished", result.reason
        return result.rows_committed, result.rows_rejected

    (tmp_path / "in" / "a.csv").write_text("id,price\n1,10\nx,y\n2,20\n")
    assert ingested("first", "id INT NOT NULL, price INT") == (2, 1)
    (tmp_path / "in" / "b.csv").write_text("name,price,id\nCyd,30.5,3\n,1,\n")
    wider = "id BIGINT NOT NULL, price DOUBLE, name STRING"
    assert ingested("second", wider) == (1, 1)
    assert ingested("third", wider) == (0, 0), "nothing is taken or rejected twice"
    rows = sorted(epochgate.read(url).drop_columns("checkpoint").to_pylist(), key=str)
    assert rows == [
        {"id": 1, "price": 10.0, "name": None},
        {"id": 2, "price": 20.0, "name": None},
        {"id": 3, "price": 30.5, "name": "Cyd"},
    ]
    rejected = epochgate.read(f"{url}.rejected").to_pylist()
    told = sorted((Path(one["file"]).name, one["line"], one["raw"].strip()) for one in rejected)
    assert told == [("a.csv", 3, "x,y"), ("b.csv", 3, ",1,")]


def test_rows_are_read_while_they_are_compacted(
    tmp_path: Path, honest: pyarrow.fs.FileSystem
) -> None:
    url = f"s3://{BUCKET}/compacted/out"
    rows = write_source(tmp_path, files=6)
    simulated = SimulatedIngest(options_for(tmp_path, target=url))
    merged = 0

    def beside() -> None:
        nonlocal merged
        if simulated.plan.committer.files_visible > merged + 6:
            merged += compact(url, keep_for_s=0.0).merged
            seen = sorted(epochgate.read(url)["x"].to_pylist())
            assert seen == sorted(set(seen))

    simulated.run(beside)
    assert simulated.leave().rows_visible == len(rows)
    assert merged > 0
    endings: list[str] = []

    def compete() -> None:
        try:
            endings.append(f"merged {compact(url, keep_checkpoints=0).merged > 0}")
        except CompactionReplaced:
            endings.append("replaced")

    threads = [threading.Thread(target=compete) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert "merged True" in endings
    assert endings.count("merged True") + endings.count("merged False") + endings.count(
        "replaced"
    ) == len(threads)
    assert sorted(epochgate.read(url)["x"].to_pylist()) == rows
    assert finished(SimulatedIngest(options_for(tmp_path, target=url), name="again")) == len(rows)


def test_of_many_that_claim_at_once_one_goes_on(honest: pyarrow.fs.FileSystem) -> None:
    def fold(state: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
        return {"entries": state["entries"] + 1}

    logs = [ObjectLog(open_url(f"s3://{BUCKET}/contended"), fold, {"entries": 0}) for _ in range(6)]
    refused: list[int] = []
    barrier = threading.Barrier(6)

    def claim(number: int) -> None:
        barrier.wait()
        try:
            logs[number].claim(str(number), {"run": str(number)})
            for _ in range(3):
                logs[number].append({"kind": "say"})
        except LogTakenOver:
            refused.append(number)

    threads = [threading.Thread(target=claim, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 5
    logs[0].refresh()
    assert logs[0].state["entries"] == 4


def test_a_server_that_ignores_conditions_is_refused_and_nothing_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_source(tmp_path)
    (tmp_path / "server").mkdir()
    with rclone(tmp_path / "server") as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(ConditionsIgnored, match="rows would be lost or doubled"):
            plan_ingest(options_for(tmp_path, target=f"s3://{BUCKET}/out"))
        left = open_url(f"s3://{BUCKET}/out").list("")
    assert left == []
