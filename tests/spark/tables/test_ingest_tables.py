"""An ingestion into a table: the same guarantee as into Parquet files, behind a word in TARGET."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epochgate.errors import UsageError
from epochgate.runtime.testing.faulty_filesystem import Fault
from epochgate.spark.ingest.options import IngestOptions
from epochgate.spark.ingest.targets import parse_target
from tests.spark.ingest.simulated import SimulatedIngest, options_for, random_kills, write_source
from tests.spark.tables.delta_replay import rows


def delta_options(tmp_path: Path) -> IngestOptions:
    pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
    return options_for(tmp_path, target=f"delta:{tmp_path / 'out'}")


def test_all_rows_arrive_in_a_delta_table_and_a_second_run_adds_the_new_ones(
    tmp_path: Path,
) -> None:
    expected = write_source(tmp_path)
    first = SimulatedIngest(delta_options(tmp_path))
    first.run()
    result = first.leave()
    assert (result.state, result.rows_committed, result.rows_visible) == ("finished", 30, 30)
    assert rows(tmp_path / "out") == expected
    expected += write_source(tmp_path, files=1, first=100)
    second = SimulatedIngest(delta_options(tmp_path), name="second")
    second.run()
    result = second.leave()
    assert (result.state, result.rows_committed, result.rows_visible) == ("finished", 10, 40)
    assert rows(tmp_path / "out") == expected


@pytest.mark.parametrize("name", ["two words", "a#b", "a?b", "a+b", "100%", "a%zz", "caf\u00e9"])
def test_the_path_of_a_delta_table_may_have_odd_characters(tmp_path: Path, name: str) -> None:
    place = tmp_path / name
    place.mkdir()
    expected = write_source(place)
    simulated = SimulatedIngest(delta_options(place))
    simulated.run()
    assert simulated.leave().state == "finished"
    found = pytest.importorskip("deltalake").DeltaTable(place / "out").to_pyarrow_table()
    assert sorted(found["x"].to_pylist()) == expected


def test_a_path_that_the_delta_library_takes_for_another_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "a%20b"
    place.mkdir()
    write_source(place)
    with pytest.raises(UsageError, match=r"reads '%20' in a path as ' '.* Give a directory"):
        SimulatedIngest(delta_options(place))
    assert not (place / "out").exists()


@pytest.mark.parametrize("seed", range(3))
def test_rows_arrive_once_although_processes_die(tmp_path: Path, seed: int) -> None:
    expected = write_source(tmp_path)
    simulated = SimulatedIngest(delta_options(tmp_path))
    simulated.run(random_kills(simulated, seed, share=0.05))
    assert simulated.leave().state == "finished"
    assert rows(tmp_path / "out") == expected


def test_rows_arrive_once_wherever_the_driver_crashes_on_its_disk(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    write_source(whole, files=1, rows=4)
    undisturbed = SimulatedIngest(delta_options(whole))
    undisturbed.run()
    undisturbed.leave()
    operations = undisturbed.files.operations
    renamed = [at for at, one in enumerate(operations) if one.name == "rename"]
    assert len(renamed) > 3
    for at in sorted({*renamed, *range(0, len(operations), 5)}):
        place = tmp_path / f"at-{at}"
        place.mkdir()
        expected = write_source(place, files=1, rows=4)
        simulated = SimulatedIngest(delta_options(place), [Fault(at, when="after")])
        simulated.run()
        result = simulated.leave()
        assert result.state == "finished", (operations[at], result.reason)
        assert rows(place / "out") == expected, operations[at]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("detla:/data", "no sink 'detla'; known are delta:PATH, iceberg:CATALOG"),
        ("detla:/data", r"written as '\./detla:/data'"),
        ("delta:", "names no place; give delta:PATH"),
        ("postgres:dbname=x", "give postgres:DSN#TABLE"),
        ("postgresql://me:secret@db/x#events", "give a --checkpoint-dir"),
    ],
)
def test_a_target_that_cannot_be_meant_is_refused_with_the_way_on(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        IngestOptions("in", text)


def test_a_target_without_a_scheme_is_a_directory_of_parquet_files(tmp_path: Path) -> None:
    for text in ("out", "./delta:x", "C:out", "s3://bucket/out"):
        assert parse_target(text).scheme == "parquet"
    plain, table = IngestOptions("in", "out"), IngestOptions("in", "delta:out")
    assert plain.target_path == table.target_path
    assert plain.job_id != table.job_id


def test_a_database_is_named_without_user_and_password(tmp_path: Path) -> None:
    def options(target: str) -> IngestOptions:
        return IngestOptions("in", target, checkpoint_directory=str(tmp_path))

    one = options("postgresql://me:secret@db:5433/sales#events")
    other = options("postgres:host=db port=5433 dbname=sales user=you#events")
    assert one.target_path == "postgres:db:5433/sales#events"
    assert one.job_id == other.job_id
    assert "secret" not in one.job_id


def test_all_rows_arrive_in_postgresql_although_drivers_crash(tmp_path: Path, dsn: str) -> None:
    expected = write_source(tmp_path)
    with events(dsn) as found:
        changes = {
            "target": f"postgres:{dsn}#events",
            "checkpoint_directory": str(tmp_path / "checkpoints"),
        }
        faults = [Fault(at, when="after") for at in (5, 12, 20)]
        simulated = SimulatedIngest(options_for(tmp_path, **changes), faults)
        simulated.run(random_kills(simulated, 1, share=0.05))
        result = simulated.leave()
        assert (result.state, result.rows_visible, simulated.starts) == ("finished", 30, 4)
        assert found() == expected


@contextlib.contextmanager
def events(dsn: str) -> Iterator[Callable[[], list[int]]]:
    """A table, and what is in it."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create table events (x bigint primary key, name text)")
        yield lambda: [
            row[0] for row in connection.execute("select x from events order by x").fetchall()
        ]


@pytest.mark.spark
@pytest.mark.extended
def test_spark_ingests_into_postgresql(tmp_path: Path, spark: Any, dsn: str) -> None:
    from epochgate.spark.ingest import ingest

    expected = write_source(tmp_path, files=4, rows=200)
    with events(dsn) as found:
        result = ingest(
            spark,
            str(tmp_path / "in"),
            f"postgres:{dsn}#events",
            parallelism=2,
            checkpoint_every_s=0.2,
            checkpoint_directory=str(tmp_path / "checkpoints"),
        )
        assert (result.state, result.rows_visible) == ("finished", 800)
        assert found() == expected


@pytest.mark.spark
@pytest.mark.extended
def test_spark_ingests_into_a_delta_table(tmp_path: Path, spark: Any) -> None:
    from epochgate.spark.ingest import ingest

    pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
    expected = write_source(tmp_path, files=4, rows=200)
    target = f"delta:{tmp_path / 'out'}"
    result = ingest(spark, str(tmp_path / "in"), target, parallelism=2, checkpoint_every_s=0.2)
    assert (result.state, result.rows_visible) == ("finished", 800)
    assert rows(tmp_path / "out") == expected


def test_a_schema_of_which_the_library_makes_no_table_is_refused_before_its_checkpoint_completes(
    tmp_path: Path,
) -> None:
    kinds = {"id": pa.int64(), "at": pa.map_(pa.string(), pa.timestamp("us"))}
    table = pa.table({name: pa.array([None], kind) for name, kind in kinds.items()})
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    simulated = SimulatedIngest(delta_options(tmp_path))
    simulated.run()
    result = simulated.leave()
    assert (result.state, result.rows_committed) == ("failed", 0)
    assert "cannot be made, because of 'at': " in (result.reason or "")
    cast = replace(delta_options(tmp_path), transform=as_text)
    left_out = replace(
        delta_options(tmp_path),
        target=f"delta:{tmp_path / 'other'}",
        columns=("id",),
        checkpoint_directory=str(tmp_path / "new"),
    )
    for way_on in (cast, left_out):
        again = SimulatedIngest(way_on, name="again")
        again.run()
        assert again.leave().state == "finished"
        assert rows(Path(way_on.target_path), "id") == [None]


def as_text(batch: pa.RecordBatch) -> pa.Table:
    """Return what a user's transform does about it."""
    return pa.table({"id": batch["id"], "at": [str(one) for one in batch["at"].to_pylist()]})
