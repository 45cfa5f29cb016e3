"""The columns of a Delta table grow while a job writes to it: the log has them before the first
files that need them, whatever fails, and every row is there once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epochgate.environment import set_in_environment
from epochgate.errors import UsageError
from epochgate.runtime import RetryLater, SinkStart
from epochgate.runtime.testing.faulty_filesystem import SimulatedCrash
from epochgate.spark.delta_sink import DeltaTarget, TableTakenOver, TableUnusable
from epochgate.spark.delta_sink.sink import DeltaSink
from epochgate.spark.parquet_sink.errors import OutputSchemaChanged
from tests.runtime.objects.servers import seaweedfs
from tests.spark.ingest.simulated import SimulatedIngest, options_for, random_kills, write_source
from tests.spark.tables.delta_objects import Seen
from tests.spark.tables.delta_replay import entries, rows
from tests.spark.tables.test_delta_features import LONG, made
from tests.spark.tables.test_delta_job import Fate
from tests.spark.tables.test_delta_target import stage

deltalake = pytest.importorskip("deltalake", reason="the extra `delta` is not installed")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("seaweedfs")
    with seaweedfs(folder) as variables, set_in_environment(variables):
        yield variables


def ingested(place: Path, target: str, name: str, **changes: Any) -> None:
    options = options_for(place, target=target, schema_evolution="add", **changes)
    simulated = SimulatedIngest(options, name=name)
    simulated.run(random_kills(simulated, 5, share=0.05))
    result = simulated.leave()
    assert result.state == "finished", result.reason


def require_columns_before_their_files(table: Path) -> None:
    """Each file has only columns of the newest schema up to its entry."""
    names: set[str] = set()
    for actions in entries(table):
        for action in actions:
            if "metaData" in action:
                told = json.loads(action["metaData"]["schemaString"])
                names = {field["name"] for field in told["fields"]}
        for action in actions:
            if "add" in action:
                assert set(pq.read_schema(table / action["add"]["path"]).names) <= names


def test_new_columns_become_columns_of_the_table(tmp_path: Path) -> None:
    expected = write_source(tmp_path, files=1)
    (tmp_path / "in" / "later.csv").write_text("x,name,country\n500,text,DE\n")
    ingested(tmp_path, f"delta:{tmp_path / 'out'}", "first")
    (tmp_path / "in" / "last.csv").write_text("x,since\n501,2024-02-29\n")
    ingested(tmp_path, f"delta:{tmp_path / 'out'}", "second")
    assert rows(tmp_path / "out") == [*expected, 500, 501]
    require_columns_before_their_files(tmp_path / "out")
    found = deltalake.DeltaTable(tmp_path / "out").to_pyarrow_table().sort_by("x")
    assert set(found.column_names) == {"x", "name", "country", "since"}
    assert found["country"].to_pylist()[-2:] == ["DE", None]
    assert [str(one) for one in found["since"].to_pylist()[-2:]] == ["None", "2024-02-29"]


def test_a_partitioned_table_in_an_object_store_grows_too(
    tmp_path: Path, server: dict[str, str]
) -> None:
    table = Seen(server, "growing", tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("x,day\n1,2024-01-01\n2,2024-01-02\n")
    ingested(tmp_path, f"delta:{table.url}", "first", partition_by=("day",))
    (tmp_path / "in" / "b.csv").write_text("x,day,more\n3,2024-01-02,0.5\n")
    ingested(tmp_path, f"delta:{table.url}", "second", partition_by=("day",))
    assert table.rows() == [1, 2, 3]
    settings = {"AWS_ALLOW_HTTP": "true"}
    found = deltalake.DeltaTable(table.url, storage_options=settings).to_pyarrow_table()
    more = dict(zip(found["x"].to_pylist(), found["more"].to_pylist(), strict=True))
    assert more == {1: None, 2: None, 3: 0.5}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("at", range(4))
def test_each_row_and_column_is_there_once_wherever_the_driver_dies(
    tmp_path: Path, at: int, when: str
) -> None:
    place = tmp_path / "table"
    narrow = [stage(place, "r1", [1])]
    wide = stage_of(place, {"x": [2], "s": [{"a": 1}]})
    wider = stage_of(place, {"x": [3], "s": [{"a": 1, "b": "text"}], "t": [1.5]})
    files = {1: narrow[0], 2: wide, 3: wider}
    fate, restored = Fate(at, when), 0
    for start in range(1, 4):
        target = DeltaTarget(str(place), "job", f"r{start}", log=fate.of, may_grow=True)
        try:
            target.claim(restored or None)
            for number, committables in files.items():
                target.require_one_schema(committables)
                restored = number  # the checkpoint is stored before it is committed
                target.commit(number, committables)
            break
        except SimulatedCrash:
            target.release()
    target.release()
    assert "add_columns" in fate.calls
    assert rows(place) == [1, 2, 3]
    require_columns_before_their_files(place)
    found = deltalake.DeltaTable(place).to_pyarrow_table().sort_by("x").to_pylist()
    assert found[2] == {"x": 3, "s": {"a": 1, "b": "text"}, "t": 1.5}
    assert (found[0], found[1]["s"]) == (
        {"x": 1, "s": None, "t": None},
        {"a": 1, "b": None},
    )


def stage_of(place: Path, columns: dict[str, list[Any]]) -> list[Any]:
    from epochgate.spark.parquet_sink import StagingWriter

    attempt = 100 + len(list(place.glob("_epochgate/staged/*/*")))
    writer = StagingWriter(place / "_epochgate", "r1", 0, attempt)
    writer.write(pa.RecordBatch.from_pydict(columns))
    return writer.prepare_commit(1)


def test_a_driver_that_was_replaced_adds_no_column(tmp_path: Path) -> None:
    place = tmp_path / "table"
    zombie = DeltaTarget(str(place), "job", "r1", may_grow=True)
    zombie.claim(None)
    zombie.commit(1, stage(place, "r1", [1]))
    zombie.release()
    successor = DeltaTarget(str(place), "job", "r2", may_grow=True)
    successor.claim(1)
    wide = stage_of(place, {"x": [2], "y": [1]})
    with pytest.raises((TableTakenOver, RetryLater)):
        zombie.commit(2, wide)
    assert deltalake.DeltaTable(place).schema().to_arrow().names == ["x"]
    successor.release()


def test_a_table_that_another_makes_first_takes_no_file_of_another_type(tmp_path: Path) -> None:
    """Not even of a type that has a wider one with its own: the table's stays as it is."""
    place = tmp_path / "table"
    target = DeltaTarget(str(place), "job", "r1", may_grow=True)
    target.claim(None)
    files = stage(place, "r1", [2**40])
    target.require_one_schema(files)
    deltalake.write_deltalake(str(place), pa.table({"x": pa.array([1], pa.int32())}))
    with pytest.raises(OutputSchemaChanged, match="x: INT"):
        target.commit(1, files)
    assert rows(place) == [1]
    target.release()


def test_a_table_with_a_required_field_within_a_column_does_not_grow(tmp_path: Path) -> None:
    inner = {"name": "a", "type": "long", "nullable": False, "metadata": {}}
    within = {"name": "s", "type": {"type": "struct", "fields": [inner]}, "nullable": True}
    place = made(tmp_path / "table", 2, {}, [LONG, {**within, "metadata": {}}])
    DeltaSink(str(place)).create_committer(SinkStart("job", "r1")).close()
    with pytest.raises(TableUnusable, match=r"within 's' is required.*Leave --schema-evolution"):
        DeltaSink(str(place), evolution="add").create_committer(SinkStart("job", "r2"))


def test_a_column_stays_required_while_others_come(tmp_path: Path) -> None:
    made(tmp_path / "out", 2, {}, [{**LONG, "nullable": False}])
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("x,y\n1,new\n")
    (tmp_path / "in" / "b.csv").write_text("x,y\n,more\n")
    options = options_for(
        tmp_path, target=f"delta:{tmp_path / 'out'}", schema_evolution="add", parallelism=1
    )
    simulated = SimulatedIngest(options)
    simulated.run()
    result = simulated.leave()
    assert result.state == "failed"
    for part in ("'x' of the table is declared not null", "b.csv"):
        assert part in str(result.reason)
    assert set(rows(tmp_path / "out")) <= {1}


def test_fields_within_a_column_may_come_and_be_missing(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name, text in {"a": '{"a": 1}', "b": '{"a": 2, "b": "new"}', "c": '{"a": 3}'}.items():
        (tmp_path / "in" / f"{name}.jsonl").write_text(f'{{"s": {text}}}\n')
    ingested(tmp_path, f"delta:{tmp_path / 'out'}", "first", parallelism=1)
    found = deltalake.DeltaTable(tmp_path / "out").to_pyarrow_table()["s"].to_pylist()
    assert sorted(found, key=str) == [
        {"a": 1, "b": None},
        {"a": 2, "b": "new"},
        {"a": 3, "b": None},
    ]


def test_a_column_of_a_table_takes_what_fits_while_others_come(tmp_path: Path) -> None:
    made(tmp_path / "out", 2, {}, [{**LONG, "type": "integer"}])
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"x": [7], "y": ["new"]}), tmp_path / "in" / "a.parquet")
    ingested(tmp_path, f"delta:{tmp_path / 'out'}", "first")
    schema = deltalake.DeltaTable(tmp_path / "out").to_pyarrow_table().schema
    assert schema.field("x").type == pa.int32()
    assert rows(tmp_path / "out") == [7]


def test_wider_types_are_refused_with_the_way_on(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"typeWidening.*schema-evolution add.*for a new table"):
        DeltaSink(str(tmp_path / "out"), evolution="widen")
