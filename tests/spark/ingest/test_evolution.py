"""New columns and wider types are taken from one checkpoint on, or refused with the difference."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, get_args

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epochgate.runtime.testing.faulty_filesystem import Fault
from tests.spark.ingest.simulated import SimulatedIngest, options_for, random_kills
from tests.spark.ingest.test_simulated import When


def write_growing(tmp_path: Path, kind: str = "csv") -> list[tuple[int, str | None, float | None]]:
    """Files with one column more, then one of a wider type; the rows as (x, name, price)."""
    folder = tmp_path / "in"
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[tuple[int, str | None, float | None]] = []
    parts: list[list[dict[str, Any]]] = [
        [{"x": n, "price": n + 0.25} for n in range(10)],
        [{"x": n, "name": f"n{n}"} for n in range(10, 20)],
        [{"name": f"n{n}", "x": n, "price": n + 0.25} for n in range(20, 30)],
    ]
    for number, part in enumerate(parts):
        rows += [(row["x"], row.get("name"), row.get("price")) for row in part]
        path = folder / f"{number}.{kind}"
        if kind == "parquet":
            narrow = pa.int32() if number == 0 else pa.int64()
            table = pa.Table.from_pylist(part)
            schema = table.schema.set(table.schema.get_field_index("x"), pa.field("x", narrow))
            if number == 0:
                schema = schema.set(1, pa.field("price", pa.float32()))
            pq.write_table(table.cast(schema), path)
        else:
            lines = [",".join(part[0]), *(",".join(map(str, row.values())) for row in part)]
            path.write_text("\n".join(lines) + "\n")
    return rows


def read(tmp_path: Path) -> list[Any]:
    """Return what DuckDB finds, whatever the files' schemas are."""
    return duckdb.execute(
        "select x, name, price from read_parquet(?, union_by_name=true) order by x",
        [f"{tmp_path}/out/**/*.parquet"],
    ).fetchall()


def schemas(tmp_path: Path) -> list[pa.Schema]:
    """Of each checkpoint's files, in the order of the checkpoints; one for each."""
    found = []
    for directory in sorted((tmp_path / "out").glob("checkpoint=*")):
        own = [pq.read_schema(path).remove_metadata() for path in directory.glob("*.parquet")]
        assert all(schema == own[0] for schema in own), directory
        found.append(own[0])
    return found


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_new_columns_and_wider_types_are_taken_from_one_checkpoint_on(
    tmp_path: Path, kind: str
) -> None:
    rows = write_growing(tmp_path, kind)
    options = options_for(tmp_path, schema_evolution="widen", parallelism=1)
    simulated = SimulatedIngest(options)
    simulated.run()
    result = simulated.leave()
    assert result.state == "finished", result.reason
    assert read(tmp_path) == rows
    first, *_, last = schemas(tmp_path)
    narrow = [pa.int64(), pa.float64()] if kind == "csv" else [pa.int32(), pa.float32()]
    assert first.types == narrow
    assert first.names == ["x", "price"]
    assert last.names == ["x", "price", "name"]
    assert last.types == [pa.int64(), pa.float64(), pa.string()]
    common = pq.read_schema(tmp_path / "out" / "_common_metadata")
    assert common.remove_metadata() == last
    table = pq.read_table(tmp_path / "out", schema=common)
    assert table.schema.types == last.types
    assert sorted(table.select(last.names).to_pylist(), key=lambda row: row["x"]) == [
        {"x": x, "price": price, "name": name} for x, name, price in rows
    ]
    frame = pd.read_parquet(tmp_path / "out", schema=common)
    assert sorted(frame["x"]) == [row[0] for row in rows]
    assert str(frame["x"].dtype) == "int64"
    lazily = pl.scan_parquet(
        f"{tmp_path}/out/**/*.parquet",
        schema=pl.Schema(common),
        missing_columns="insert",
        cast_options=pl.ScanCastOptions(integer_cast="upcast", float_cast="upcast"),
        hive_partitioning=False,
    )
    assert sorted(lazily.collect()["x"]) == [row[0] for row in rows]


@pytest.mark.parametrize("seed", range(6))
def test_rows_arrive_once_while_the_schema_grows_and_processes_die(
    tmp_path: Path, seed: int
) -> None:
    rows = write_growing(tmp_path)
    chance = random.Random(seed)
    whens: tuple[When, ...] = get_args(When)
    faults = [Fault(chance.randrange(60), when=chance.choice(whens)) for _ in range(4)]
    simulated = SimulatedIngest(options_for(tmp_path, schema_evolution="widen"), faults)
    simulated.run(random_kills(simulated, seed, share=0.02))
    result = simulated.leave()
    assert result.state == "finished", result.reason
    assert read(tmp_path) == rows


def test_a_later_start_goes_on_with_another_column(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("x,price\n1,1\n")
    first = SimulatedIngest(options_for(tmp_path))
    first.run()
    assert first.leave().state == "finished"
    (tmp_path / "in" / "b.csv").write_text("name,x\nn2,2\n")
    again = SimulatedIngest(options_for(tmp_path, schema_evolution="add"))
    again.run()
    assert again.leave().state == "finished"
    assert read(tmp_path) == [(1, None, 1), (2, "n2", None)]


def test_fields_that_come_late_in_json_lines_are_columns(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    lines = ['{"x": 1, "price": 2}'] * 50 + ['{"x": 2, "price": 2, "name": "late"}']
    (tmp_path / "in" / "a.jsonl").write_text("\n".join(lines))
    options = options_for(tmp_path, schema_evolution="add", split_bytes_target=400)
    simulated = SimulatedIngest(options)
    simulated.run()
    assert simulated.leave().state == "finished"
    assert read(tmp_path) == [(1, None, 2)] * 50 + [(2, "late", 2)]


@pytest.mark.parametrize(
    ("mode", "second", "part"),
    [
        ("add", "x,price\n2,2.5\n", "price"),
        ("widen", "x,price\n2,2.5\n", "price"),
        ("widen", "x,price\n2,cheap\n", "price"),
    ],
)
def test_a_text_that_is_no_value_of_a_known_column_is_a_bad_row(
    tmp_path: Path, mode: str, second: str, part: str
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("x,price\n1,1\n")
    first = SimulatedIngest(options_for(tmp_path, schema_evolution=mode))
    first.run()
    assert first.leave().state == "finished"
    (tmp_path / "in" / "b.csv").write_text(second)
    simulated = SimulatedIngest(options_for(tmp_path, schema_evolution=mode), name="again")
    simulated.run()
    result = simulated.leave()
    assert result.state == "failed"
    assert f"line 2, column '{part}'" in str(result.reason)


@pytest.mark.parametrize(
    ("mode", "kind", "difference"),
    [
        ("add", pa.float64(), "price: the target has BIGINT, found DOUBLE"),
        ("widen", pa.float64(), "not from BIGINT to DOUBLE, since Spark could not read"),
        ("widen", pa.string(), "price: the target has BIGINT, found STRING"),
    ],
)
def test_a_change_that_is_not_allowed_is_refused_with_the_difference(
    tmp_path: Path, mode: str, kind: pa.DataType, difference: str
) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"x": [1], "price": [1]}), tmp_path / "in" / "a.parquet")
    other = pa.table({"x": [2], "price": pa.array([2]).cast(kind)})
    pq.write_table(other, tmp_path / "in" / "b.parquet")
    simulated = SimulatedIngest(options_for(tmp_path, schema_evolution=mode, parallelism=1))
    simulated.run()
    result = simulated.leave()
    assert result.state == "failed"
    for part in (difference, f"--schema-evolution {mode} takes new columns"):
        assert part in str(result.reason)


def test_a_new_column_whose_name_is_a_known_one_to_spark_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"Name": ["ada"]}), tmp_path / "in" / "a.parquet")
    pq.write_table(pa.table({"name": ["grace"]}), tmp_path / "in" / "b.parquet")
    simulated = SimulatedIngest(options_for(tmp_path, schema_evolution="add", parallelism=1))
    simulated.run()
    result = simulated.leave()
    assert result.state == "failed"
    assert "name: the target has Name, the same name to Spark" in str(result.reason)
    assert "rename the columns in the transform" in str(result.reason)


@pytest.mark.parametrize("when", get_args(When))
def test_a_mixed_checkpoint_is_committed_wherever_the_driver_crashes(
    tmp_path: Path, when: When
) -> None:
    whole = tmp_path / "whole"
    write_growing(whole, "parquet")
    options: dict[str, Any] = {"schema_evolution": "widen", "batch_rows": 20}
    undisturbed = SimulatedIngest(options_for(whole, **options))
    undisturbed.run()
    undisturbed.leave()
    for at in range(when == "after", len(undisturbed.files.operations), 4):
        place = tmp_path / f"at-{at}"
        rows = write_growing(place, "parquet")
        simulated = SimulatedIngest(options_for(place, **options), [Fault(at, when=when)])
        simulated.run()
        assert simulated.leave().state == "finished", undisturbed.files.operations[at]
        assert read(place) == rows
