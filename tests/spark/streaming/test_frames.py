"""`df.write.format("epochgate")`: append and overwrite, as Spark defines them, all at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from tests.spark.streaming.queries import Numbers

pytestmark = [pytest.mark.spark, pytest.mark.extended]
TRIED = [pytest.param(kind, marks=pytest.mark.versions) for kind in ("parquet", "delta")]
KINDS = (*TRIED, "postgres", pytest.param("iceberg", marks=pytest.mark.deep))


def write(frame: Any, target: Numbers, mode: str) -> None:
    writer = frame.write.format("epochgate").mode(mode)
    for key, value in target.options().items():
        writer = writer.option(key, value)
    writer.save()


@pytest.mark.parametrize("kind", KINDS)
def test_append_adds_and_overwrite_replaces(
    tmp_path: Path, session: Any, kind: str, request: pytest.FixtureRequest
) -> None:
    dsn = request.getfixturevalue("dsn") if kind == "postgres" else ""
    target = Numbers(tmp_path, kind, dsn)
    write(session.range(3), target, "append")
    write(session.range(3, 5), target, "append")
    assert target.rows() == [0, 1, 2, 3, 4]
    write(session.range(7, 9), target, "overwrite")
    assert target.rows() == [7, 8]
    write(session.range(0), target, "overwrite")
    write(session.range(2), target, "append")
    assert target.rows() == [0, 1]
    assert target.staged() == []


@pytest.mark.versions
def test_values_of_each_type_arrive_as_spark_has_them(tmp_path: Path, session: Any) -> None:
    frame = session.sql(
        "select timestamp'2024-01-01 12:00:00' as at, timestamp_ntz'2024-01-01 12:00:00' as there,"
        " date'2024-01-01' as day, cast(1.5 as decimal(10, 2)) as price, array(1, null) as few,"
        " cast('x' as binary) as raw, named_struct('b', 'x', 'a', 1) as place, int(null) as none"
    )
    target = Numbers(tmp_path, "parquet")
    write(frame, target, "append")
    read = session.read.parquet(str(target.target)).drop("checkpoint")  # of the folder
    assert read.collect() == frame.collect()


@pytest.mark.versions
def test_other_modes_are_refused_by_spark(tmp_path: Path, session: Any) -> None:
    target = Numbers(tmp_path, "parquet")
    with pytest.raises(AnalysisException, match="ErrorIfExists"):
        write(session.range(3), target, "error")


def test_a_write_that_the_table_refuses_leaves_nothing(
    tmp_path: Path, session: Any, dsn: str
) -> None:
    import psycopg

    target = Numbers(tmp_path, "postgres", dsn)
    write(session.range(3), target, "append")
    with psycopg.connect(dsn) as connection:
        connection.execute("create unique index on numbers (id)")
    with pytest.raises(Exception, match="RowsRefused"):
        write(session.range(2, 5), target, "append")
    assert target.rows() == [0, 1, 2]
    with psycopg.connect(dsn) as connection:
        left = connection.execute("select count(*) from epochgate_staged_numbers").fetchone()
    assert left == (0,)


def test_a_query_and_frames_write_to_one_table(tmp_path: Path, session: Any) -> None:
    target = Numbers(tmp_path, "delta")
    target.add_files(1)
    write(session.range(100, 102), target, "append")
    assert target.run(session) == [0]
    write(session.range(102, 104), target, "append")
    target.add_files(1)
    assert target.run(session) == [1]
    assert target.rows() == [*target.expected, 100, 101, 102, 103]
