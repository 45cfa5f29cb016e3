"""An ingestion into an Iceberg table: the same guarantee as into Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from epochgate.errors import UsageError
from epochgate.runtime.testing.faulty_filesystem import Fault
from epochgate.spark.ingest.options import IngestOptions
from epochgate.spark.ingest.targets import parse_target
from tests.spark.ingest.simulated import SimulatedIngest, options_for, random_kills, write_source
from tests.spark.tables.iceberg_replay import active_files, catalog, rows

pytest.importorskip("pyiceberg", reason="the extra `iceberg` is not installed")
TARGET = "iceberg:lake.sales.events"


@pytest.fixture(autouse=True)
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A catalog, described as pyiceberg's users describe theirs."""
    for name, value in catalog(tmp_path).items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{name.upper()}", value)


def options(tmp_path: Path, **changes: Any) -> IngestOptions:
    own = {"target": TARGET, "checkpoint_directory": str(tmp_path / "checkpoints")}
    return options_for(tmp_path, **{**own, **changes})


def test_all_rows_arrive_and_a_second_run_adds_the_new_ones(tmp_path: Path) -> None:
    expected = write_source(tmp_path)
    first = SimulatedIngest(options(tmp_path))
    first.run()
    result = first.leave()
    assert (result.state, result.rows_committed, result.rows_visible) == ("finished", 30, 30)
    assert rows(tmp_path) == expected
    expected += write_source(tmp_path, files=1, first=100)
    second = SimulatedIngest(options(tmp_path), name="second")
    second.run()
    result = second.leave()
    assert (result.state, result.rows_committed, result.rows_visible) == ("finished", 10, 40)
    assert rows(tmp_path) == expected


@pytest.mark.parametrize("seed", range(2))
def test_rows_arrive_once_although_processes_die_and_drivers_crash(
    tmp_path: Path, seed: int
) -> None:
    expected = write_source(tmp_path)
    faults = [Fault(at, when="after") for at in (9 + seed, 21 + seed, 33 + seed)]
    simulated = SimulatedIngest(options(tmp_path), faults)
    simulated.run(random_kills(simulated, seed, share=0.05))
    result = simulated.leave()
    assert (result.state, result.rows_visible) == ("finished", 30)
    assert simulated.starts > 2
    assert rows(tmp_path) == expected


def test_a_new_column_becomes_one_of_the_table_from_a_checkpoint_on(tmp_path: Path) -> None:
    expected = write_source(tmp_path, files=1)
    (tmp_path / "in" / "later.csv").write_text("x,name,country\n500,text,DE\n")
    simulated = SimulatedIngest(options(tmp_path, schema_evolution="add"))
    simulated.run()
    assert simulated.leave().state == "finished"
    assert rows(tmp_path) == [*expected, 500]
    assert "DE" in [
        value
        for file in active_files(tmp_path)
        for value in pq.read_table(file).to_pydict().get("country", ())
    ]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"target": "iceberg:lake.events"}, "give iceberg:CATALOG.NAMESPACE.TABLE"),
        ({"target": "iceberg:lake..events"}, "names no place"),
        ({"checkpoint_directory": None}, "a database or catalog has no directory beside it"),
        (
            {"schema_evolution": "widen", "target": "delta:out"},
            "typeWidening.*writes to no table with it. Take --schema-evolution add",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_way_on(
    tmp_path: Path, changes: dict[str, Any], told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        options(tmp_path, **changes)


def test_a_table_of_an_inner_namespace_is_named_with_all_of_it(tmp_path: Path) -> None:
    assert parse_target("iceberg:lake.sales.eu.events").place == "lake.sales.eu.events"
    one, other = options(tmp_path), options(tmp_path, target="iceberg:lake.sales.other")
    assert one.job_id != other.job_id


@pytest.mark.spark
@pytest.mark.extended
def test_spark_ingests_into_an_iceberg_table(tmp_path: Path, spark: Any) -> None:
    from epochgate.spark.ingest import ingest

    expected = write_source(tmp_path, files=4, rows=200)
    result = ingest(
        spark,
        str(tmp_path / "in"),
        TARGET,
        parallelism=2,
        checkpoint_every_s=0.2,
        checkpoint_directory=str(tmp_path / "checkpoints"),
    )
    assert (result.state, result.rows_visible) == ("finished", 800)
    assert rows(tmp_path) == expected
