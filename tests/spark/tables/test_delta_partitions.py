"""Partitioned Delta tables, in directories and in an object store: each value as it was, to readers
that go by the log (this one, and the library) and to one that goes by the names of directories.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pytest

from epochgate.environment import set_in_environment
from epochgate.errors import EpochgateError, UsageError
from epochgate.runtime import OperatorContext, SinkStart
from epochgate.spark.delta_sink import DeltaSink, TableUnusable
from epochgate.spark.parquet_sink.gathered import CommitIn
from epochgate.spark.parquet_sink.partitions import PartitioningChanged, PartitionUnusable
from epochgate.spark.streaming.targets.delta import DeltaBatches
from epochgate.spark.values.errors import ValueDoesNotFit
from tests.runtime.objects.servers import seaweedfs
from tests.spark.ingest.simulated import SimulatedIngest, options_for, random_kills
from tests.spark.sink.in_tasks import committed
from tests.spark.tables.delta_objects import Seen
from tests.spark.tables.delta_replay import active_files, entries

deltalake = pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
BY = ("text", "day", "at", "local", "whole", "flag")
AT = datetime.datetime(2024, 2, 29, 23, 59, 59, 999999)
ROWS = [
    (0, "plain", datetime.date(2024, 2, 29), AT, AT, 7, True),
    (1, 'a/b=c %2F#?\n"é', datetime.date(1600, 1, 1), AT.replace(year=1600), AT, -(2**63), False),
    (2, None, None, None, None, None, None),
    (
        3,
        " ",
        datetime.date(9999, 12, 31),
        AT.replace(microsecond=0),
        AT.replace(year=1, day=1),
        0,
        True,
    ),
    (4, "07", datetime.date(2024, 2, 29), AT, AT, 7, None),
]
KINDS = {
    "id": pa.int64(),
    "text": pa.string(),
    "day": pa.date32(),
    "at": pa.timestamp("us", "UTC"),
    "local": pa.timestamp("us"),
    "whole": pa.int64(),
    "flag": pa.bool_(),
}
SCHEMA = pa.schema(list(KINDS.items()))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("seaweedfs")
    with seaweedfs(folder) as variables, set_in_environment(variables):
        yield variables


def batch(rows: list[tuple[Any, ...]], schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [dict(zip(schema.names, row, strict=True)) for row in rows], schema
    )


def staged(sink: DeltaSink, run: str, rows: list[tuple[Any, ...]], *told: str) -> list[Any]:
    """Return what a task hands over."""
    writer = sink.create_writer(OperatorContext("sink", 0, 1, 1, run, lambda event: None), None)
    writer.handle_event(["schema", SCHEMA.serialize().to_pybytes(), *told])
    writer.write(batch(rows))
    return writer.prepare_commit(1)


def written(path: str, commit_in: CommitIn = "driver") -> DeltaSink:
    sink = DeltaSink(path, commit_in=commit_in, partition_by=BY)
    committer = sink.create_committer(SinkStart("job", "r1"))
    for number, rows in enumerate((ROWS[:3], ROWS[3:]), 1):
        made = {0: staged(sink, "r1", rows, *committer.target.told())}
        committer.check(made)
        passed = committed(sink, "r1", number, made) if commit_in == "tasks" else made
        assert committer.commit(number, passed)
        assert not committer.commit(number, passed)
    committer.close()
    return sink


def replayed(table: Path) -> list[tuple[Any, ...]]:
    """The rows by the log's protocol alone: its `partitionValues`, and DuckDB for the files."""
    found = []
    said = {
        table / unquote(action["add"]["path"]): action["add"]["partitionValues"]
        for actions in entries(table)
        for action in actions
        if "add" in action
    }
    for file in active_files(table):
        values = said[file]
        assert set(values) == set(BY)
        parsed = [None if values[name] is None else PARSE[name](values[name]) for name in BY]
        query = "select * from read_parquet(?, hive_partitioning = false)"
        ids = duckdb.execute(query, [str(file).replace("[", "[[]")]).fetchall()
        found += [(*one, *parsed) for one in ids]
    return sorted(found)


def moment(text: str) -> datetime.datetime:
    """As the protocol has it: `{year}-{month}-{day} {hour}:{minute}:{second}`, with microseconds,
    or ISO 8601 in UTC.
    """
    return datetime.datetime.fromisoformat(text.removesuffix("Z"))


PARSE: dict[str, Any] = {
    "text": str,
    "day": datetime.date.fromisoformat,
    "at": lambda text: moment(text) if text.endswith("Z") and "T" in text else None,
    "local": moment,
    "whole": int,
    "flag": {"true": True, "false": False}.__getitem__,
}


def by_library(path: str, settings: dict[str, str] | None = None) -> list[tuple[Any, ...]]:
    table = deltalake.DeltaTable(path, storage_options=settings).to_pyarrow_table()
    rows = table.select(SCHEMA.names).cast(SCHEMA).to_pylist()
    for row in rows:
        row["at"] = row["at"] and row["at"].replace(tzinfo=None)
    return sorted(tuple(row.values()) for row in rows)


@pytest.mark.parametrize("commit_in", ["driver", "tasks"])
def test_each_value_of_a_partition_comes_back_from_a_directory(
    tmp_path: Path, commit_in: CommitIn
) -> None:
    written(str(tmp_path / "table"), commit_in)
    assert replayed(tmp_path / "table") == ROWS
    assert by_library(str(tmp_path / "table")) == ROWS
    (made,) = [a["metaData"] for a in entries(tmp_path / "table")[0] if "metaData" in a]
    assert made["partitionColumns"] == list(BY)
    names = {one.name.partition("=")[0] for one in (tmp_path / "table").iterdir()}
    assert names == {"_delta_log", "_epochgate", "text"}


def test_each_value_of_a_partition_comes_back_from_an_object_store(
    tmp_path: Path, server: dict[str, str]
) -> None:
    table = Seen(server, "partitioned", tmp_path)
    written(table.url, "tasks")
    assert replayed(table.copied()) == ROWS
    assert by_library(table.url, {"AWS_ALLOW_HTTP": "true"}) == ROWS


def test_a_reader_that_goes_by_directories_finds_the_values_too(tmp_path: Path) -> None:
    """That is polars, which does not look at what the log says of partitions."""
    polars = pytest.importorskip("polars")
    written(str(tmp_path / "table"))
    found = polars.read_delta(str(tmp_path / "table")).sort("id").select("id", "day", "flag")
    assert found.rows() == [(row[0], row[2], row[6]) for row in ROWS]


def test_a_partitioned_table_is_made_by_an_ingestion_and_found_by_the_next(
    tmp_path: Path,
) -> None:
    (tmp_path / "in").mkdir()
    target = f"delta:{tmp_path / 'out'}"

    def ingested(name: str, text: str, **changes: Any) -> None:
        (tmp_path / "in" / f"{name}.csv").write_text(text)
        options = options_for(tmp_path, target=target, null=("",), **changes)
        simulated = SimulatedIngest(options, name=name)
        simulated.run(random_kills(simulated, 3, share=0.05))
        result = simulated.leave()
        assert result.state == "finished", result.reason

    lines = [f"{x},{'DE' if x % 2 else 'a b'},2024-01-0{x % 3 + 1}\n" for x in range(12)]
    ingested("first", "x,country,day\n" + "".join(lines), partition_by=("country", "day"))
    ingested("second", "x,country,day\n12,,2024-01-01\n")
    found = deltalake.DeltaTable(tmp_path / "out").to_pyarrow_table().sort_by("x")
    assert found["x"].to_pylist() == list(range(13))
    assert found["country"].to_pylist() == [*(["a b", "DE"] * 6), None]
    assert found["day"][12].as_py() == datetime.date(2024, 1, 1)
    with pytest.raises(PartitioningChanged, match=r"by country, day, and .* asks for day"):
        ingested("third", "x,country,day\n13,FR,2024-01-01\n", partition_by=("day",))


def test_a_query_makes_a_partitioned_table(tmp_path: Path) -> None:
    target = DeltaBatches(str(tmp_path / "table"), partition_by=BY)
    agreed = target.prepare()
    assert agreed.told == (str(tmp_path / "table"), *BY)
    made = staged(target.sink, "query-0-1", ROWS, *agreed.told)
    from epochgate.spark.streaming.targets.target import Staged

    assert target.apply(Staged("query", 0, "query-0-1", {0: made}), 0)
    assert replayed(tmp_path / "table") == ROWS
    assert DeltaBatches(str(tmp_path / "table")).prepare().told == agreed.told


@pytest.mark.parametrize("text", ["", "__HIVE_DEFAULT_PARTITION__"])
def test_a_text_that_readers_would_show_as_missing_is_refused(tmp_path: Path, text: str) -> None:
    sink = DeltaSink(str(tmp_path / "table"), partition_by=BY)
    row = (9, text, *ROWS[0][2:])
    with pytest.raises(ValueDoesNotFit, match="readers show") as refused:
        staged(sink, "r1", [ROWS[0], row], str(tmp_path / "table"), *BY)
    assert refused.value.row == 1


def test_columns_that_no_table_can_be_partitioned_by_are_refused(tmp_path: Path) -> None:
    kinds = {"x": pa.float64(), "m": pa.decimal128(5, 2), "y": pa.int64()}
    schema = pa.schema(list(kinds.items()))
    for name in ("x", "m", "none"):
        with pytest.raises(PartitionUnusable, match=name):
            DeltaSink(str(tmp_path / "table"), partition_by=(name,)).accepts(schema)
    table = pa.table({"x": [1.5], "y": [1]})
    deltalake.write_deltalake(tmp_path / "theirs", table, partition_by=["x"])
    with pytest.raises(UsageError, match="cannot partition by 'x'"):
        DeltaSink(str(tmp_path / "theirs")).create_committer(SinkStart("job", "r1"))
    assert issubclass(TableUnusable, EpochgateError)
    assert not (tmp_path / "theirs" / "_epochgate").exists()
