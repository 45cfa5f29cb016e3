"""An ingestion into a table: the same guarantee as into Parquet files, behind a word in TARGET."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from epochgate.runtime.testing.faulty_filesystem import Fault
from epochgate.spark.ingest.options import IngestOptions
from epochgate.spark.ingest.targets import TargetUnreadable, parse_target
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
        ("detla:/data", "no sink 'detla'; known are delta:"),
        ("detla:/data", r"written as '\./detla:/data'"),
        ("delta:", "names no place"),
    ],
)
def test_a_target_that_cannot_be_meant_is_refused_with_the_way_on(text: str, told: str) -> None:
    with pytest.raises(TargetUnreadable, match=told):
        IngestOptions("in", text)


def test_a_target_without_a_scheme_is_a_directory_of_parquet_files(tmp_path: Path) -> None:
    for text in ("out", "./delta:x", "C:out", "s3://bucket/out"):
        assert parse_target(text).scheme == "parquet"
    plain, table = IngestOptions("in", "out"), IngestOptions("in", "delta:out")
    assert plain.target_path == table.target_path
    assert plain.job_id != table.job_id


@pytest.mark.spark
def test_spark_ingests_into_a_delta_table(tmp_path: Path, spark: Any) -> None:
    from epochgate.spark.ingest import ingest

    pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
    expected = write_source(tmp_path, files=4, rows=200)
    target = f"delta:{tmp_path / 'out'}"
    result = ingest(spark, str(tmp_path / "in"), target, parallelism=2, checkpoint_every_s=0.2)
    assert (result.state, result.rows_visible) == ("finished", 800)
    assert rows(tmp_path / "out") == expected
