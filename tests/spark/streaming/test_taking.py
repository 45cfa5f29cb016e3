"""The streaming source takes files as an ingestion does: by time, new ones only, with hints, and
with rescued values; and tells how many wait.
"""

from __future__ import annotations

import datetime
import json
import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import types as t

from epochgate.spark.streaming import OptionsWrong

pytest.importorskip("pyspark.sql.datasource", reason="Spark 3.5 has no data sources in Python")

from epochgate.spark.streaming.source import HAS_LIMITS, ReadsStreams, StreamReader
from epochgate.spark.streaming.source_messages import SourceFailed
from epochgate.spark.streaming.source_options import parse_source
from epochgate.spark.streaming.source_rows import NoRow

if not HAS_LIMITS:
    pytest.skip(
        "Spark before 4.2 does not tell a source in Python where it goes on",
        allow_module_level=True,
    )

AT = 1_700_000_000


class Query:
    """The questions of Spark to the source, in this process; a start may be another one."""

    def __init__(self, folder: Path) -> None:
        self.landing = folder / "landing"
        self.landing.mkdir(exist_ok=True)
        self._given = {
            "source": str(self.landing),
            "state": str(folder / "state"),
            "settle": "0",
            "format": "csv",
        }
        self.at: Any = None

    def write(self, name: str, text: str, at: int = AT) -> None:
        (self.landing / name).write_text(text)
        os.utime(self.landing / name, (at, at))

    def schema(self, **options: str) -> t.StructType:
        source = ReadsStreams()
        source.options = {**self._given, **options}
        return t.StructType.fromJson(json.loads(source.schema().json()))

    def reader(self, schema: t.StructType | None = None, **options: str) -> StreamReader:
        given = parse_source({**self._given, **options})
        return StreamReader(given, self.schema(**options) if schema is None else schema)

    def batch(self, reader: StreamReader) -> list[dict[str, Any]]:
        """The rows of the next batch."""
        self.at = self.at or reader.initialOffset()
        end = reader.latestOffset(self.at, reader.getDefaultReadLimit())
        parts = reader.partitions(self.at, end)
        self.at = end
        return [row for one in parts for rows in reader.read(one) for row in rows.to_pylist()]

    def rows(self, schema: t.StructType | None = None, **options: Any) -> list[dict[str, Any]]:
        reader = self.reader(schema, **options)
        try:
            return self.batch(reader)
        finally:
            reader.stop()


@pytest.fixture
def query(tmp_path: Path) -> Query:
    return Query(tmp_path)


def declared(*columns: tuple[str, t.DataType]) -> t.StructType:
    return t.StructType([t.StructField(*column) for column in columns])


def time_of(seconds: int) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat()


def test_files_are_taken_by_the_times_at_which_they_were_modified(query: Query) -> None:
    for number in range(4):
        query.write(f"{number}.csv", f"x\n{number}\n", AT + number)
    rows = query.rows(modifiedAfter=time_of(AT), modifiedBefore=time_of(AT + 3))
    assert [row["x"] for row in rows] == [1, 2]


def test_the_first_batch_of_new_files_alone_is_of_those_that_came_after_the_first_start(
    query: Query,
) -> None:
    query.write("a.csv", "x\n1\n")
    options = {"newOnly": "true"}
    schema = query.schema()
    reader = query.reader(schema, **options)
    assert query.batch(reader) == []
    reader.stop()
    # Spark forgets a stream without a batch: the next start has another one.
    query.at = None
    query.write("b.csv", "x\n2\n")
    assert [row["x"] for row in query.rows(schema, **options)] == [2]
    query.write("c.csv", "x\n3\n")
    assert [row["x"] for row in query.rows(schema, **options)] == [3]


def test_hints_declare_some_columns_and_the_others_are_inferred(query: Query) -> None:
    query.write("a.csv", "id,zip,at\n1,10115,2024-07-01T12:00:00+02:00\n2,01067,\n")
    given = {"schemaHints": "zip STRING, at TIMESTAMP"}
    schema = query.schema(**given)
    assert schema.simpleString() == "struct<id:bigint,zip:string,at:timestamp>"
    rows = query.rows(schema, **given)
    assert [row["zip"] for row in rows] == ["10115", "01067"]
    assert rows[0]["at"] == datetime.datetime(2024, 7, 1, 10, tzinfo=datetime.UTC)
    query.write("b.csv", "id,zip,at\n03,1,\n")
    with pytest.raises(SourceFailed, match=r"'03'"):
        query.rows(schema, **given)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"schemaHints": "id"}, "schemaHints cannot be read"),
        ({"schemaHints": "id BIGINT NOT NULL"}, "NOT NULL"),
        ({"onBadRow": "reject"}, "neither fail nor rescue"),
        ({"modifiedAfter": "yesterday"}, "modifiedAfter='yesterday' is no time"),
        ({"modifiedBefore": "soon"}, "modifiedBefore='soon' is no time"),
        ({"newOnly": "perhaps"}, "neither true nor false"),
        ({"notify": "inotify"}, "no option 'notify'"),
        ({"source": "module:Name", "newOnly": "true"}, "newOnly is an option of files"),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused(
    query: Query, given: dict[str, str], says: str
) -> None:
    with pytest.raises(OptionsWrong, match=says):
        query.reader(declared(("id", t.LongType())), **given)


def test_hints_beside_a_declared_schema_are_refused(query: Query) -> None:
    with pytest.raises(OptionsWrong, match="given together"):
        query.reader(declared(("id", t.LongType())), schemaHints="id STRING")


def test_values_that_do_not_fit_are_rescued_beside_inferred_columns(query: Query) -> None:
    query.write("a.csv", "id,amount\n1,2.5\n")
    schema = query.schema(onBadRow="rescue")
    assert schema.simpleString() == "struct<id:bigint,amount:double,_rescued:string>"
    query.write("b.csv", "id,amount,more\n2,much,x\n")
    rows = query.rows(schema, onBadRow="rescue")
    assert rows[0] == {"id": 1, "amount": 2.5, "_rescued": None}
    assert (rows[1]["id"], rows[1]["amount"]) == (2, None)
    rescued = json.loads(rows[1]["_rescued"])
    assert rescued == {
        "amount": "much",
        "more": "x",
        "_file_path": str(query.landing / "b.csv"),
    }


def test_values_that_do_not_fit_are_rescued_beside_declared_columns(query: Query) -> None:
    query.write("a.csv", "id,amount\n1,much\n2,3\n")
    columns = (("id", t.LongType()), ("amount", t.LongType()))
    with pytest.raises(SourceFailed, match="'much'"):
        query.rows(declared(*columns))
    with pytest.raises(OptionsWrong, match="_rescued string"):
        query.reader(declared(*columns), onBadRow="rescue")
    query.at = None
    rows = query.rows(declared(*columns, ("_rescued", t.StringType())), onBadRow="rescue")
    assert [(row["id"], row["amount"]) for row in rows] == [(1, None), (2, 3)]
    assert json.loads(rows[0]["_rescued"])["amount"] == "much"
    assert rows[1]["_rescued"] is None


def test_what_is_no_row_fails_the_query_also_where_values_are_rescued(query: Query) -> None:
    query.write("a.csv", "id,amount\n1,2\n2,3,4\n")
    with pytest.raises(NoRow, match=r"line 3 of .*a\.csv: 3 fields, expected 2"):
        query.rows(onBadRow="rescue")


def test_the_backlog_is_told_behind_the_newest_batch(query: Query) -> None:
    for number in range(5):
        query.write(f"{number}.csv", f"x\n{number}\n")
    reader = query.reader(maxSplitsPerBatch="2")
    assert reader.reportLatestOffset() is None
    assert [row["x"] for row in query.batch(reader)] == [0, 1]
    told = reader.reportLatestOffset()
    assert told == {**query.at, "filesWaiting": 3, "bytesWaiting": 12}
    query.batch(reader)
    query.batch(reader)
    told = reader.reportLatestOffset()
    assert told is not None
    assert (told["batch"], told["filesWaiting"], told["bytesWaiting"]) == (3, 0, 0)
    reader.stop()
