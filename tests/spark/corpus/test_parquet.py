"""Each Parquet file of the corpus has one right answer, which an independent reader gives too."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from epochgate.errors import EpochgateError
from epochgate.spark.files import FileEnumeration, SplitReader
from epochgate.spark.values.plain_types import plain
from tests.spark.corpus.answers import PARQUET_ANSWERS, Answer, copy_of, printed
from tests.spark.corpus.parquet_files import PARQUET, write
from tests.spark.values.cells import Rows, of_table


def read(source: Path, **options: Any) -> pa.Table:
    """All rows of a source."""
    enumeration = FileEnumeration(source, split_bytes_target=1, **options)
    splits, encoding = enumeration.discover(), options.get("encoding", "utf-8")
    batches = [
        read.batch
        for split in splits
        for read in SplitReader(enumeration.layout_of(split), batch_rows=3, encoding=encoding).read(
            split
        )
    ]
    layout = enumeration.layout
    return pa.Table.from_batches(batches, layout.output_schema if layout else pa.schema([]))


@pytest.mark.parametrize("key", PARQUET)
def test_a_file_has_one_answer(tmp_path: Path, key: str) -> None:
    one = PARQUET[key]
    source = tmp_path / "in"
    source.mkdir()
    write(key, source)
    if one.refused:
        with pytest.raises(EpochgateError) as caught:
            read(source)
        assert one.refused in str(caught.value)
        return
    found = read(source)
    assert found.schema == (one.read_as or one.table.schema)
    assert of_table(found) == of_table(one.table)


@pytest.mark.parametrize("key", [key for key, one in PARQUET.items() if not one.refused])
def test_a_file_is_read_with_the_types_that_spark_has(tmp_path: Path, key: str) -> None:
    path, table = write(key, tmp_path), PARQUET[key].table
    schema = pa.schema([pa.field(one.name, plain(one.type)) for one in table.schema])
    assert of_table(read(path, schema=schema)) == of_table(table)


@pytest.mark.parametrize("answer", PARQUET_ANSWERS, ids=lambda one: one["file"])
def test_a_file_of_others_has_one_answer(tmp_path: Path, answer: Answer) -> None:
    source = copy_of(answer, tmp_path)
    if "refused" in answer:
        with pytest.raises(EpochgateError) as caught:
            read(source)
        assert answer["refused"] in str(caught.value)
        return
    found = read(source)
    assert [str(field.type) for field in found.schema] == answer["types"]
    assert printed(found) == answer["rows"]


def of_duckdb(path: Path) -> Rows | None:
    """The rows that DuckDB finds; none if it refuses the file."""
    with duckdb.connect() as connection, contextlib.suppress(duckdb.Error):
        connection.execute("set timezone = 'Asia/Kolkata'")
        return of_table(connection.sql(f"from read_parquet('{path}')").to_arrow_table())
    return None


DUCKDB_DIFFERS = {
    "names_by_capitals": "renames a column",
    "durations": "has the numbers alone",
    "decimals_of_76": "has doubles",
    "uuids": "has texts",
    "json": "refuses the file",
    "no_columns": "refuses the file",
}


@pytest.mark.parametrize("key", [key for key, one in PARQUET.items() if not one.refused])
def test_an_independent_reader_finds_the_same(tmp_path: Path, key: str) -> None:
    found = of_duckdb(write(key, tmp_path))
    assert (found == of_table(PARQUET[key].table)) == (key not in DUCKDB_DIFFERS)


READABLE = [answer for answer in PARQUET_ANSWERS if "rows" in answer]


@pytest.mark.parametrize("answer", READABLE, ids=lambda one: one["file"])
def test_an_independent_reader_finds_the_same_in_files_of_others(
    tmp_path: Path, answer: Answer
) -> None:
    path = copy_of(answer, tmp_path)
    differs = path.name == "map_no_value.parquet"  # DuckDB refuses a map without values
    assert (of_duckdb(path) == of_table(read(path))) == (not differs)
