"""One delivery whose columns change goes into each kind of table, as a user gives the options: by
real Spark and in simulation, with readers that are none of the sinks' libraries.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.spark.ingest.simulated import SimulatedIngest, options_for
from tests.spark.tables import delta_replay, iceberg_replay
from tests.spark.tables.test_postgres import query

KINDS = ["delta", "iceberg", "postgres"]
GROWN = {"delta": "add", "iceberg": "widen", "postgres": "widen"}


def target_of(kind: str, place: Path, dsn: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The options of this target; the table of PostgreSQL has two columns by then."""
    pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}.get(kind, "psycopg"))
    if kind == "delta":
        return {"target": f"delta:{place / 'out'}", "partition_by": ("day",)}
    checkpoints = {"checkpoint_directory": str(place / "checkpoints")}
    if kind == "iceberg":
        for name, value in iceberg_replay.catalog(place).items():
            monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{name.upper()}", value)
        by = ("month(day)", "bucket(2,x)")
        return {"target": "iceberg:lake.sales.events", "partition_by": by, **checkpoints}
    query(dsn, "drop table if exists events, epochgate_staged_events")
    query(dsn, "create table events (x integer, day date)")
    return {"target": f"postgres:{dsn}#events", **checkpoints}


def found_in(kind: str, place: Path, dsn: str) -> list[tuple[Any, ...]]:
    """The rows, by DuckDB from the files that log or manifests name, or by the database."""
    columns = "x, cast(day as text), note, _rescued"
    if kind == "postgres":
        return query(dsn, f"select {columns} from events order by x")
    if kind == "delta":
        files = delta_replay.active_files(place / "out")
    else:
        files = iceberg_replay.active_files(place)
    given = [str(file) for file in files]
    reading = f"read_parquet(?, union_by_name = true, hive_partitioning = {kind == 'delta'})"
    return duckdb.execute(f"select {columns} from {reading} order by x", [given]).fetchall()


def deliver(place: Path) -> list[tuple[Any, ...]]:
    """Two files, the second with a column more and a value that is none; the rows."""
    (place / "in").mkdir(parents=True)
    (place / "in" / "a.csv").write_text("x,day\n1,2024-01-31\n2,2024-02-29\n")
    (place / "in" / "b.csv").write_text("x,day,note\n3,2024-02-29,late\ntwelve,2024-03-01,odd\n")
    return [(1, "2024-01-31", None), (2, "2024-02-29", None), (3, "2024-02-29", "late")]


def require(kind: str, place: Path, dsn: str, expected: list[tuple[Any, ...]]) -> None:
    found = found_in(kind, place, dsn)
    assert [row[:3] for row in found if row[3] is None] == expected
    ((x, day, note, rescued),) = [row for row in found if row[3] is not None]
    assert (x, day, note) == (None, "2024-03-01", "odd")
    assert json.loads(rescued) == {"x": "twelve", "_file_path": str(place / "in" / "b.csv")}


OPTIONS: dict[str, Any] = {"on_bad_row": "rescue", "schema_hints": "x BIGINT, day DATE"}


@pytest.mark.parametrize("kind", KINDS)
def test_new_columns_and_rescued_values_arrive_in_a_table(
    kind: str, tmp_path: Path, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = deliver(tmp_path)
    target = target_of(kind, tmp_path, dsn, monkeypatch)
    simulated = SimulatedIngest(
        options_for(tmp_path, schema_evolution=GROWN[kind], **target, **OPTIONS)
    )
    simulated.run()
    result = simulated.leave()
    assert result.state == "finished", result.reason
    require(kind, tmp_path, dsn, expected)


@pytest.mark.spark
@pytest.mark.extended
@pytest.mark.parametrize("kind", KINDS)
def test_spark_lets_the_columns_of_a_table_grow(
    kind: str, tmp_path: Path, dsn: str, monkeypatch: pytest.MonkeyPatch, spark: Any
) -> None:
    from epochgate.spark.ingest import ingest

    expected = deliver(tmp_path)
    target = target_of(kind, tmp_path, dsn, monkeypatch)
    options = {**target, **OPTIONS, "schema_evolution": GROWN[kind]}
    given = options.pop("target")
    for _ in range(2):  # the second start finds nothing to add
        result = ingest(
            spark, str(tmp_path / "in"), given, parallelism=2, checkpoint_every_s=0.2, **options
        )
        assert result.state == "finished", result.reason
    require(kind, tmp_path, dsn, expected)
