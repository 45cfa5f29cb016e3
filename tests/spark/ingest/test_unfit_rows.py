"""Rows that a target cannot hold end the job at once, with their file; and the advice works."""

from __future__ import annotations

import itertools
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epochgate.spark.ingest.options import IngestOptions
from epochgate.spark.parquet_sink import StagingWriter
from epochgate.spark.values.errors import RowsUnfit, RowsUnwritable
from tests.spark.ingest.simulated import SimulatedIngest, make_older, options_for
from tests.spark.tables import iceberg_replay

NO_TYPES: dict[str, tuple[pa.DataType, Any]] = {
    "a struct without fields": (pa.struct([]), {}),
    "a struct without fields in a list": (pa.list_(pa.struct([])), [{}]),
    "a duration": (pa.duration("us"), 5),
    "a time of day": (pa.time64("us"), 5),
    "39 digits": (pa.decimal256(39, 0), Decimal(7)),
    "an interval": (pa.month_day_nano_interval(), (1, 2, 3)),
}

NUMBERS = itertools.count()


def source(tmp_path: Path, table: pa.Table) -> Path:
    """A file that holds the rows."""
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "rows.parquet"
    pq.write_table(table, path)
    make_older(path)
    return path


def failed(options: IngestOptions) -> str:
    """The reason of a job that is refused, or fails at its first attempt."""
    try:
        simulated = SimulatedIngest(options)
    except RowsUnfit as unfit:
        return str(unfit)
    simulated.run()
    result = simulated.leave()
    assert result.state == "failed"
    assert result.report.regional_restarts + result.report.global_restarts == 0, result.reason
    return str(result.reason)


def rows(tmp_path: Path) -> list[tuple[Any, ...]]:
    query = f"from read_parquet('{tmp_path}/out/**/*.parquet', hive_partitioning = false)"
    return duckdb.execute(query).fetchall()


def arrives(options: IngestOptions) -> None:
    simulated = SimulatedIngest(options, name=f"again-{next(NUMBERS)}")
    simulated.run()
    result = simulated.leave()
    assert result.state == "finished", result.reason


def options_into(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> IngestOptions:
    """Options of an ingestion into a target of a kind."""
    if target == "parquet":
        return options_for(tmp_path)
    if target == "delta":
        return options_for(tmp_path, target=f"delta:{tmp_path / 'out'}")
    for name, said in iceberg_replay.catalog(tmp_path).items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{name.upper()}", said)
    return options_for(
        tmp_path,
        target="iceberg:lake.sales.events",
        checkpoint_directory=str(tmp_path / "checkpoints"),
    )


@pytest.mark.parametrize("target", ["parquet", "delta", "iceberg"])
@pytest.mark.parametrize("case", NO_TYPES)
def test_a_type_that_a_target_does_not_have_is_found_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, target: str
) -> None:
    kind, value = NO_TYPES[case]
    table = pa.table({"id": [1], "odd": pa.array([value], kind)})
    if (case, target) == ("a time of day", "iceberg"):
        pytest.skip("Iceberg has times of day")
    options = options_into(target, tmp_path, monkeypatch)
    if case.startswith(("a struct", "an interval")):
        # No Parquet file holds these, but a transform may make them.
        source(tmp_path, pa.table({"id": [1]}))
        options = replace(options, transform=lambda batch: table)
    else:
        source(tmp_path, table)
    reason = failed(options)
    for part in ("has no type for column 'odd'", "rows.parquet", "--schema", "--columns"):
        assert part in reason
    assert not list((tmp_path / "out").rglob("*.parquet"))
    if options.transform is None:
        arrives(replace(options, columns=("id",)))
    else:
        arrives(replace(options, transform=lambda batch: batch))


@pytest.mark.parametrize("target", ["delta", "iceberg"])
def test_a_column_of_a_table_that_takes_no_value_of_a_file_is_told_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    options = options_into(target, tmp_path, monkeypatch)
    source(tmp_path, pa.table({"id": [1], "at": pa.array([5], pa.date32())}))
    arrives(options)
    moments = pa.table({"id": [2], "at": pa.array([5], pa.timestamp("us"))})
    later = tmp_path / "later" / "later.parquet"
    later.parent.mkdir()
    pq.write_table(moments, later)
    options = replace(
        options, source=str(later.parent), checkpoint_directory=str(tmp_path / "others")
    )
    reason = failed(options)
    for part in ("'at' of the table is date32", "timestamp[us]", "later.parquet", "--schema"):
        assert part in reason
    arrives(transformed(options))


def transformed(options: IngestOptions) -> IngestOptions:
    """With moments as days, where these are some."""
    return replace(
        options,
        transform=lambda batch: batch.set_column(
            1, "at", pa.array([one.date() for one in batch["at"].to_pylist()])
        ),
    )


def test_nanoseconds_that_fit_arrive_as_microseconds_and_others_are_refused(tmp_path: Path) -> None:
    moments = pa.array([1_000, None, 1_719_835_200_123_456_000], pa.timestamp("ns"))
    path = source(tmp_path, pa.table({"id": [1, 2, 3], "at": moments}))
    arrives(options_for(tmp_path))
    written = [pq.read_schema(one) for one in (tmp_path / "out").rglob("*.parquet")]
    assert [one.field("at").type for one in written] == [pa.timestamp("us")]
    assert [row[0] for row in rows(tmp_path)] == [1, 2, 3]
    later = pa.array([2_000, 1_719_835_200_123_456_789], pa.timestamp("ns"))
    pq.write_table(pa.table({"id": [4, 5], "at": later}), path.with_name("later.parquet"))
    make_older(path.with_name("later.parquet"))
    reason = failed(options_for(tmp_path))
    for part in ("'at'", "row 2 of", "later.parquet", "2024-07-01 12:00:00.123456789", "--schema"):
        assert part in reason
    assert len(rows(tmp_path)) == 3

    def as_text(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.set_column(1, "at", batch["at"].cast(pa.timestamp("us"), safe=False))

    arrives(options_for(tmp_path, transform=as_text))
    assert len(rows(tmp_path)) == 5


def test_what_spark_cannot_read_of_a_parquet_target_is_written_as_what_it_reads(
    tmp_path: Path,
) -> None:
    table = pa.table(
        {
            "half": pa.array([0.5], pa.float16()),
            "moment": pa.array([1_000], pa.timestamp("ns", "Europe/Berlin")),
            "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16], pa.binary(16))),
            "many": pa.array([[1_000]], pa.list_(pa.timestamp("ns"))),
            "pairs": pa.array([[("k", 0.5)]], pa.map_(pa.string(), pa.float16())),
            "digits": pa.array([Decimal("1.50")], pa.decimal256(20, 2)),
        }
    )
    source(tmp_path, table)
    arrives(options_for(tmp_path))
    (written,) = (pq.read_schema(one) for one in (tmp_path / "out").rglob("*.parquet"))
    assert written.types == [
        pa.float32(),
        pa.timestamp("us", "Europe/Berlin"),
        pa.binary(16),
        pa.list_(pa.timestamp("us")),
        pa.map_(pa.string(), pa.float32()),
        pa.decimal128(20, 2),
    ]


def test_what_the_library_cannot_write_is_no_failure_of_a_machine(tmp_path: Path) -> None:
    writer = StagingWriter(tmp_path, "r1", 0, 0)
    writer.write(pa.record_batch({"odd": pa.array([{}], pa.struct([]))}))
    with pytest.raises(RowsUnwritable, match=r"\(subtask 0, attempt 0\): .*'odd' with no child"):
        writer.prepare_commit(1)


def test_a_value_that_a_column_of_postgresql_does_not_hold_is_told_with_file_row_and_value(
    tmp_path: Path, dsn: str
) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create table t (id bigint, price numeric(10, 2))")
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "prices.csv"
    path.write_text("id,price\n1,1.5\n2,2.675\n")
    make_older(path)
    options = options_for(
        tmp_path,
        target=f"postgres:{dsn}#t",
        checkpoint_directory=str(tmp_path / "checkpoints"),
    )
    reason = failed(options)
    for part in ("'price'", "numeric(10,2)", "row 2 of", "prices.csv", "2.675", "--schema"):
        assert part in reason
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("alter table t alter price type numeric")
    arrives(options)
    with psycopg.connect(dsn) as connection:
        found = connection.execute("select * from t order by id").fetchall()
    assert found == [(1, Decimal("1.5")), (2, Decimal("2.675"))]


def test_a_file_of_a_type_that_the_target_does_not_have_may_be_left_out(tmp_path: Path) -> None:
    path = source(tmp_path, pa.table({"id": [1], "at": pa.array([5], pa.time64("us"))}))
    good = path.with_name("zzz.parquet")
    pq.write_table(pa.table({"id": [2], "at": pa.array([5], pa.date32())}), good)
    make_older(good)
    options = options_for(tmp_path, on_bad_file="skip")
    arrives(options)
    assert [row[0] for row in rows(tmp_path)] == [2]
    (told,) = Path(options.bad_files_path).read_text("utf-8").splitlines()
    assert "rows.parquet" in told
    assert "has no type for column 'at'" in told


def test_numbers_for_a_column_of_text_are_refused_at_the_start_and_a_schema_makes_them_texts(
    tmp_path: Path, dsn: str
) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create table t (id bigint, code text)")
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "codes.csv"
    path.write_text("id,code\n1,7\n2,40\n")
    make_older(path)
    options = options_for(
        tmp_path,
        target=f"postgres:{dsn}#t",
        checkpoint_directory=str(tmp_path / "checkpoints"),
    )
    with pytest.raises(RowsUnfit, match=r"'code' of the table is text.* int64 \(.*codes\.csv\)"):
        SimulatedIngest(options)
    assert not (tmp_path / "checkpoints").exists()
    arrives(replace(options, schema="id BIGINT, code STRING"))
    with psycopg.connect(dsn) as connection:
        found = connection.execute("select * from t order by id").fetchall()
    assert found == [(1, "7"), (2, "40")]
