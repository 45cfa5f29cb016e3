"""Types that a streaming query declares: each value is read as such from the text, or refused."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import types as t

from epochgate.errors import EpochgateError
from tests.spark.shared import session_of

pytest.importorskip("pyspark.sql.datasource", reason="Spark 3.5 has no data sources in Python")

from epochgate.spark.streaming.errors import OptionsWrong
from epochgate.spark.streaming.source import HAS_LIMITS, StreamReader
from epochgate.spark.streaming.source_options import parse_source
from epochgate.spark.streaming.source_rows import inferred, is_inferred

if not HAS_LIMITS:
    pytest.skip(
        "Spark before 4.2 does not tell a source in Python where it goes on",
        allow_module_level=True,
    )

NOON = datetime.datetime(2024, 7, 1, 12, tzinfo=datetime.UTC)


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., list[tuple[Any, ...]]]:
    def rows(
        name: str, text: str | bytes, schema: t.StructType, **more: str
    ) -> list[tuple[Any, ...]]:
        landing = tmp_path / "landing"
        landing.mkdir(exist_ok=True)
        (landing / name).write_bytes(text.encode() if isinstance(text, str) else text)
        options = {"source": str(landing), "state": str(tmp_path / "state"), "settle": "0", **more}
        reader = StreamReader(parse_source(options), schema)
        try:
            begun = reader.initialOffset()
            planned = reader.latestOffset(begun, reader.getDefaultReadLimit())
            partitions = reader.partitions(begun, planned)
            batches = [batch for one in partitions for batch in reader.read(one)]
        finally:
            reader.stop()
        return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]

    return rows


def declared(*columns: tuple[str, t.DataType]) -> t.StructType:
    return t.StructType([t.StructField(name, kind) for name, kind in columns])


@pytest.mark.parametrize(
    ("name", "text", "schema", "expected"),
    [
        (
            "zip.csv",
            "id,zip\n1,01234\n",
            declared(("id", t.LongType()), ("zip", t.StringType())),
            [(1, "01234")],
        ),
        (
            "wide.csv",
            "big,exact\n18446744073709551615,18446744073709551615\n",
            declared(("big", t.StringType()), ("exact", t.DecimalType(20, 0))),
            [("18446744073709551615", Decimal(18446744073709551615))],
        ),
        ("truth.csv", "t\nTRUE\n0\n", declared(("t", t.StringType())), [("TRUE",), ("0",)]),
        (
            "moment.csv",
            "at\n2024-07-01 12:00:00\n2024-07-01T14:00:00+02:00\n",
            declared(("at", t.TimestampType())),
            [(NOON,), (NOON,)],
        ),
        (
            "moment.jsonl",
            '{"at": "2024-07-01T12:00:00+02:00"}\n',
            declared(("at", t.StringType())),
            [("2024-07-01T12:00:00+02:00",)],
        ),
        ("some.csv", "a,id,b\nx,007,y\n", declared(("id", t.StringType())), [("007",)]),
        (
            "some.jsonl",
            '{"a": {"b": []}, "id": "007"}\n',
            declared(("id", t.StringType()), ("c", t.LongType())),
            [("007", None)],
        ),
    ],
    ids=lambda one: one if isinstance(one, str) and "." in one and "\n" not in one else "",
)
def test_a_declared_type_is_read_from_the_text(
    read: Callable[..., list[tuple[Any, ...]]],
    name: str,
    text: str,
    schema: t.StructType,
    expected: list[tuple[Any, ...]],
) -> None:
    assert read(name, text, schema) == expected


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        (r"id,t" + "\n" + r'1,"say \"hi\""', {"escape": "\\"}, (1, 'say "hi"')),
        ("id;t\n1;'a;b'", {"delimiter": ";", "quote": "'"}, (1, "a;b")),
        ("1\t\\N", {"header": "false", "delimiter": "tab", "null": "\\N"}, (1, None)),
        ("id,t\n1,Müller".encode("latin-1"), {"encoding": "latin-1"}, (1, "Müller")),
    ],
)
def test_text_files_are_read_in_the_dialect_that_the_options_name(
    read: Callable[..., list[tuple[Any, ...]]],
    text: str | bytes,
    options: dict[str, str],
    expected: tuple[Any, ...],
) -> None:
    schema = declared(("id", t.LongType()), ("t", t.StringType()))
    assert read("a.csv", text, schema, **options) == [expected]


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("escape", "ab", "escape='ab' must be one ASCII character"),
        ("delimiter", "", "delimiter='' must be one ASCII character"),
        ("header", "no", "header='no' is neither true nor false"),
        ("encoding", "utf-16", "encoding='utf-16'"),
    ],
)
def test_a_dialect_that_cannot_be_read_is_refused_by_option(
    option: str, value: str, told: str
) -> None:
    with pytest.raises(OptionsWrong, match=told):
        parse_source({"source": "in", "state": "state", option: value})


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [("digits.csv", "v\n1.005\n", t.DecimalType(10, 2)), ("small.csv", "v\n300\n", t.ByteType())],
)
def test_a_value_that_a_declared_type_cannot_hold_is_refused_by_file_line_and_column(
    read: Callable[..., list[tuple[Any, ...]]], name: str, text: str, kind: t.DataType
) -> None:
    with pytest.raises(EpochgateError, match=rf"(?s){name}.*line 2, column 'v'"):
        read(name, text, declared(("v", kind)))


def test_a_type_that_the_files_have_told_is_not_taken_for_a_declared_one(
    read: Callable[..., list[tuple[Any, ...]]], tmp_path: Path
) -> None:
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "a.csv").write_text("id,zip\n1,10115\n")
    options = {"source": str(tmp_path / "landing"), "state": "state", "settle": "0"}
    told = inferred(parse_source(options).arrow_schema())
    told = t.StructType.fromJson(json.loads(told.json()))
    assert [one.dataType for one in told] == [t.LongType(), t.LongType()]
    with pytest.raises(EpochgateError, match="'01234' is no BIGINT: as that it would be '1234'"):
        read("b.csv", "id,zip\n2,01234\n", told)
    declared_so = declared(("id", t.LongType()), ("zip", t.LongType()))
    assert (2, 1234) in read("b.csv", "id,zip\n2,01234\n", declared_so)


@pytest.mark.parametrize(
    ("name", "text"), [("b.jsonl", '{"id": 2, "late": 7}\n'), ("b.csv", "id,late\n2,7\n")]
)
def test_a_column_that_came_after_the_files_told_theirs_is_refused_and_not_left_out(
    read: Callable[..., list[tuple[Any, ...]]], tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / "landing").mkdir()
    first = {"b.jsonl": '{"id": 1}\n', "b.csv": "id\n1\n"}[name]
    (tmp_path / "landing" / f"a{Path(name).suffix}").write_text(first)
    options = {"source": str(tmp_path / "landing"), "state": "state", "settle": "0"}
    told = t.StructType.fromJson(json.loads(inferred(parse_source(options).arrow_schema()).json()))
    with pytest.raises(EpochgateError, match=rf"(?s){name}.*late"):
        read(name, text, told)
    assert set(read(name, text, declared(("id", t.LongType())))) == {(1,), (2,)}


def test_a_column_that_is_declared_twice_is_refused() -> None:
    twice = declared(("id", t.LongType()), ("id", t.StringType()))
    with pytest.raises(OptionsWrong, match="two columns of the name 'id'"):
        StreamReader(parse_source({"source": "in", "state": "state"}), twice)


@pytest.mark.spark
@pytest.mark.extended
@pytest.mark.slow
def test_a_query_has_what_its_schema_declares(tmp_path: Path) -> None:
    from epochgate.spark.streaming import register

    spark = session_of("tests/spark/streaming/test_declared_types.py")
    register(spark)
    (tmp_path / "landing").mkdir()
    options = {"source": str(tmp_path / "landing"), "state": str(tmp_path / "state"), "settle": "0"}
    text = "id,zip,at,exact\n1,01234,2024-07-01 12:00:00,18446744073709551615\n"
    (tmp_path / "landing" / "a.csv").write_text(text)
    told = spark.readStream.format("epochgate").options(**options).load().schema
    assert is_inferred(told)
    rows: list[Any] = []
    query = (
        spark.readStream.format("epochgate")
        .options(**options)
        .schema("id long, zip string, at timestamp, exact decimal(20,0)")
        .load()
        .selectExpr("id", "zip", "unix_seconds(at)", "exact")
        .writeStream.foreachBatch(lambda frame, _: rows.extend(frame.collect()))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert [tuple(row) for row in rows] == [
        (1, "01234", int(NOON.timestamp()), Decimal(18446744073709551615))
    ]
