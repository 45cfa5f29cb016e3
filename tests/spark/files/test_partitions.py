"""Directories named column=value are columns, of types that are inferred or asked for."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epochgate.spark.files import FileEnumeration
from epochgate.spark.files.partitions import (
    PartitionColumnInFile,
    PartitionsDiffer,
    PartitionValueInvalid,
)
from tests.spark.files.reading import batches, rows, write

DAY = datetime.date(2024, 1, 1)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_directories_named_column_value_are_columns_of_each_row(tmp_path: Path, kind: str) -> None:
    for day, hour, number in (("2024-01-01", "7", 1), ("2024-01-02", "12", 2)):
        path = tmp_path / f"dt={day}" / f"hour={hour}" / f"a.{kind}"
        path.parent.mkdir(parents=True)
        if kind == "parquet":
            pq.write_table(pa.table({"x": [number]}), path)
        else:
            path.write_text(f"x\n{number}\n" if kind == "csv" else f'{{"x": {number}}}\n')
    second = {"x": 2, "dt": datetime.date(2024, 1, 2), "hour": 12}
    assert rows(tmp_path) == [{"x": 1, "dt": DAY, "hour": 7}, second]
    assert rows(tmp_path / "dt=*" / "*" / "*") == rows(tmp_path)
    assert rows(tmp_path, projection=["hour", "x"])[1] == {"hour": 12, "x": 2}
    assert rows(tmp_path, projection=["dt"])[0] == {"dt": DAY}
    assert rows(tmp_path / "dt=2024-01-02") == [{"x": 2, "hour": 12}]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-20"], pa.int64()),
        (["2024-01-01", "__HIVE_DEFAULT_PARTITION__"], pa.date32()),
        (["07", "12"], pa.string()),
        (["1", "x"], pa.string()),
        (["2024-01-01", "2024-1-2"], pa.string()),
        (["9" * 19], pa.string()),
        (["__HIVE_DEFAULT_PARTITION__"], pa.string()),
    ],
)
def test_the_type_is_the_narrowest_that_all_directories_of_the_first_look_are(
    tmp_path: Path, values: list[str], kind: pa.DataType
) -> None:
    for value in values:
        write(tmp_path / f"k={value}" / "a.csv", "x\n1\n")
    found = batches(tmp_path)
    assert {one.batch.schema.field("k").type for one in found} == {kind}
    expected = sum("HIVE" in value for value in values)
    assert sum(one.batch.column("k").null_count for one in found) == expected


def test_names_and_values_may_be_escaped(tmp_path: Path) -> None:
    write(tmp_path / "k%20y=a%2Fb" / "a.csv", "x\n1\n")
    assert rows(tmp_path) == [{"x": 1, "k y": "a/b"}]


def test_a_schema_says_the_type_and_which_values_are_needed(tmp_path: Path) -> None:
    write(tmp_path / "k=7" / "a.csv", "x\n1\n")
    write(tmp_path / "k=__HIVE_DEFAULT_PARTITION__" / "a.csv", "x\n2\n")
    schema = pa.schema([("k", pa.string()), ("x", pa.int32())])
    assert rows(tmp_path, schema=schema) == [{"x": 1, "k": "7"}, {"x": 2, "k": None}]
    needed = pa.schema([pa.field("k", pa.string(), nullable=False), ("x", pa.int32())])
    with pytest.raises(PartitionValueInvalid, match="__HIVE_DEFAULT_PARTITION__"):
        rows(tmp_path, schema=needed)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_later_directory_that_is_no_value_of_the_type_is_refused_or_left_out(
    tmp_path: Path, restarts: bool
) -> None:
    write(tmp_path / "dt=2024-01-01" / "a.csv", "x\n1\n")
    for policy in ("fail", "skip"):
        enumeration = FileEnumeration(tmp_path, on_bad_file=policy)
        enumeration.discover()
        if restarts:
            data = enumeration.snapshot()
            enumeration = FileEnumeration(tmp_path, on_bad_file=policy)
            enumeration.restore(data)
        path = write(tmp_path / "dt=today" / "a.csv", "x\n1\n")
        if policy == "skip":
            assert enumeration.discover() == []
            assert "'today' is no DATE" in next(iter(enumeration.skipped)).reason
            continue
        with pytest.raises(PartitionValueInvalid) as caught:
            enumeration.discover()
        for part in (str(path), "dt=today", "'dt STRING'", "--schema", "--on-bad-file skip"):
            assert part in str(caught.value)
        path.unlink()


def test_files_of_other_directories_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "a=1" / "a.csv", "x\n1\n")
    write(tmp_path / "b.csv", "x\n1\n")
    with pytest.raises(PartitionsDiffer, match=r"(?s)a=1.*: a\n.*b\.csv: \(none\)"):
        rows(tmp_path)


def test_a_column_in_files_and_directories_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "x=5" / "a.csv", "x\n1\n")
    for schema in (None, pa.schema([("x", pa.int64())])):
        with pytest.raises(PartitionColumnInFile, match="has a column 'x'"):
            rows(tmp_path, schema=schema)


def test_a_new_level_of_directories_is_a_new_column_if_the_schema_may_evolve(
    tmp_path: Path,
) -> None:
    write(tmp_path / "a.csv", "x\n1\n")
    write(tmp_path / "k=5" / "b.csv", "x\n2\n")
    assert rows(tmp_path, evolution="add") == [{"x": 1}, {"x": 2, "k": 5}]
