"""Rows by the values of columns: every reader finds them, and a crash loses and doubles none."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epochgate.errors import UsageError
from epochgate.runtime.testing.faulty_filesystem import Fault
from epochgate.spark.ingest.options import IngestMisconfigured, IngestOptions
from epochgate.spark.ingest.targets import sink_of
from epochgate.spark.parquet_sink import Committable, ParquetTarget, StagingWriter
from epochgate.spark.parquet_sink.partitions import (
    PartitioningChanged,
    PartitionUnusable,
    partitioned,
    with_columns,
)
from tests.runtime.objects.stores import Memory
from tests.spark.ingest.simulated import SimulatedIngest, options_for, visible, write_source
from tests.spark.sink.test_object_ingest import TARGET, SimulatedObjectIngest, rows_in

VALUES = ["plain", "with space", "a/b=c", "100%", "é+ü", "it's", '"', "#?*:[]{}\\^", None]


def written(path: Path, **columns: Any) -> ParquetTarget:
    target = ParquetTarget(path, "job", "r1")
    target.claim(None)
    writer = StagingWriter(
        target.working_directory, "r1", 0, 1, partition_by=[name for name in columns if name != "x"]
    )
    writer.write(pa.RecordBatch.from_pydict(columns))
    target.commit(7, writer.prepare_commit(7))
    return target


READERS: dict[str, Callable[[Path], list[Any]]] = {
    "duckdb": lambda path: duckdb.execute(f"select c, x from read_parquet('{path}/**')").fetchall(),
    "polars": lambda path: pl.read_parquet(path).select("c", "x").rows(),
    "pandas": lambda path: pd.read_parquet(path)[["c", "x"]].astype(object).values.tolist(),
    "pyarrow": lambda path: [(r["c"], r["x"]) for r in pq.read_table(path).to_pylist()],
}


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_finds_every_row_with_its_partition(tmp_path: Path, reader: str) -> None:
    # pandas cannot put categories together of which one is missing.
    values = VALUES[:-1] if reader == "pandas" else VALUES
    written(tmp_path / "out", c=values, x=list(range(len(values)))).release()
    assert {x: c for c, x in READERS[reader](tmp_path / "out")} == dict(enumerate(values))


def test_each_partition_is_a_directory_below_the_checkpoint(tmp_path: Path) -> None:
    days = [datetime.date(2024, 1, 2), datetime.date(2024, 1, 3), datetime.date(2024, 1, 2)]
    target = written(tmp_path / "out", c=["de", "de", ""], d=days, x=[1, 2, 3])
    directories = {
        one.parent.relative_to(tmp_path / "out").as_posix()
        for one in (tmp_path / "out").rglob("*.parquet")
    }
    assert directories == {
        "checkpoint=000000000007/c=de/d=2024-01-02",
        "checkpoint=000000000007/c=de/d=2024-01-03",
        "checkpoint=000000000007/c=__HIVE_DEFAULT_PARTITION__/d=2024-01-02",
    }
    assert target.partition_columns() == ["c", "d"]
    schema = target.schema()
    assert schema is not None
    assert schema.names == ["c", "d", "x"], "new writers keep to all columns"
    target.release()


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (["nothing"], "the output has c, x"),
        (["x"], "it is double; take a text"),
        (["c", "x"], "it is double"),
    ],
)
def test_what_cannot_be_partitioned_by_is_refused(
    tmp_path: Path, columns: list[str], reason: str
) -> None:
    writer = StagingWriter(tmp_path, "r1", 0, 1, partition_by=columns)
    with pytest.raises(PartitionUnusable, match=reason):
        writer.write(pa.RecordBatch.from_pydict({"c": ["a"], "x": [1.5]}))


def test_a_partition_needs_a_name_that_fits_and_a_column_beside_it(tmp_path: Path) -> None:
    writer = StagingWriter(tmp_path, "r1", 0, 1, partition_by=["c"])
    with pytest.raises(PartitionUnusable, match="no column would be left"):
        writer.write(pa.RecordBatch.from_pydict({"c": ["a"]}))
    with pytest.raises(PartitionUnusable, match="too long for a directory"):
        partitioned(pa.table({"c": ["a" * 300], "x": [1]}), ["c"])


@pytest.mark.parametrize("text", ["", "__HIVE_DEFAULT_PARTITION__"])
def test_a_text_that_readers_would_show_as_missing_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text(f"c,x\na,1\n{text},2\n")
    job = SimulatedIngest(options_for(tmp_path, partition_by=("c",)))
    job.run()
    result = job.leave()
    assert result.state == "failed"
    assert "column 'c'" in (result.reason or "")
    assert "as missing" in (result.reason or "")
    assert visible(tmp_path / "out") == []
    if text == "":
        other = str(tmp_path / "other")
        options = options_for(tmp_path, target=other, partition_by=("c",), null=("",))
        followed = SimulatedIngest(options)
        followed.run()
        assert followed.leave().state == "finished", "the advice helps"
        assert visible(other) == [1, 2]


@pytest.mark.parametrize("values", [VALUES, [True, False], [1, -2], [datetime.date(2024, 1, 2)]])
def test_a_value_comes_back_as_it_was(values: list[Any]) -> None:
    table = pa.table({"c": pa.array(values), "x": list(range(len(values)))})
    parts = partitioned(table, ["c"])
    back = pa.concat_tables(with_columns(part, name, table.schema) for name, part in parts)
    assert back.sort_by("x").equals(table)


@pytest.mark.parametrize("directory", ["../out", "c=a/..", "c", "c=a//d=b", "/c=a", 7])
def test_a_committable_that_leads_out_of_its_checkpoint_is_refused(directory: Any) -> None:
    path = "staged/r1/part-00000-1-000000-r1.parquet.staged"
    values = [0, 1, 0, path, 1, 1, 1, "id", directory]
    with pytest.raises(ValueError, match="not the directory of a partition"):
        Committable.from_list(values)
    assert Committable.from_list([*values[:8], "c=a/d=b"]).visible_path.startswith("c=a/d=b/part-")


def test_a_start_with_other_partitions_is_refused_and_leaves_the_target_free(
    tmp_path: Path,
) -> None:
    write_source(tmp_path, files=1)
    simulated = SimulatedIngest(options_for(tmp_path, partition_by=("name",)))
    simulated.run()
    assert simulated.leave().state == "finished"
    for other in ((), ("x",), ("name", "x")):
        with pytest.raises(PartitioningChanged, match="partitioned by name, and this start asks"):
            SimulatedIngest(options_for(tmp_path, partition_by=other))
    again = SimulatedIngest(options_for(tmp_path, partition_by=("name",)))
    again.run()
    assert again.leave().state == "finished"


def test_a_partitioned_target_keeps_its_columns(tmp_path: Path) -> None:
    with pytest.raises(IngestMisconfigured, match="Leave one of them out"):
        options_for(tmp_path, partition_by=("name",), schema_evolution="add")


def test_a_table_of_postgresql_is_partitioned_by_its_own_means(tmp_path: Path) -> None:
    options = options_for(
        tmp_path,
        target="postgres:dbname=x#t",
        checkpoint_directory=str(tmp_path / "c"),
        partition_by=("name",),
    )
    with pytest.raises(UsageError, match="partition_by is for Parquet files, Delta and Iceberg"):
        sink_of(options, None, Memory().open)


def with_parity(batch: pa.RecordBatch) -> pa.Table:
    parity = [x % 2 for x in batch["x"].to_pylist()]
    return pa.Table.from_batches([batch]).append_column("parity", pa.array(parity))


def options_by_parity(place: Path) -> IngestOptions:
    return options_for(place, partition_by=("parity",), transform=with_parity)


def crash_everywhere(
    tmp_path: Path, when: Literal["before", "during", "after"], files: int
) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    write_source(whole, files=files, rows=4)
    undisturbed = SimulatedIngest(options_by_parity(whole))
    undisturbed.run()
    assert len(undisturbed.leave().report.completed()) > 1 + files
    operations = undisturbed.files.operations
    for at in range(len(operations)):
        place = tmp_path / f"at-{at}"
        place.mkdir()
        rows = write_source(place, files=files, rows=4)
        simulated = SimulatedIngest(options_by_parity(place), [Fault(at, when=when)])
        simulated.run()
        result = simulated.leave()
        assert result.state == "finished", (operations[at], result.reason)
        assert visible(place / "out") == rows, operations[at]
        assert result.rows_visible == len(rows), operations[at]


def test_rows_arrive_once_wherever_the_driver_crashes(tmp_path: Path) -> None:
    crash_everywhere(tmp_path, "after", files=1)


@pytest.mark.deep
@pytest.mark.parametrize("when", ["before", "during", "after"])
def test_rows_of_two_files_arrive_once_wherever_the_driver_crashes(
    tmp_path: Path, when: Literal["before", "during", "after"]
) -> None:
    crash_everywhere(tmp_path, when, files=2)


def test_rows_arrive_once_in_partitions_of_an_object_store(tmp_path: Path) -> None:
    memory, rows = Memory(), write_source(tmp_path)
    simulated = SimulatedObjectIngest(
        tmp_path, memory, [Fault(12, when="after")], partition_by=("name",)
    )
    simulated.run()
    assert simulated.leave().state == "finished"
    assert rows_in(memory, tmp_path) == rows
    with pytest.raises(PartitioningChanged):
        SimulatedObjectIngest(tmp_path, memory)
    assert memory.open(TARGET).list("data")
