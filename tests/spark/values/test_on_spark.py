"""Tables that Spark writes as files, and tables that its streaming queries move, in two zones."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st

from tests.spark.shared import session_of
from tests.spark.values import nasty
from tests.spark.values.cells import of_table
from tests.spark.values.sources import Format, write
from tests.spark.values.streamed import spelled
from tests.spark.values.targets import ZONES, Delta, Parquet, Target
from tests.spark.values.trip import told

pytest.importorskip("pyspark.sql.datasource", reason="Spark 3.5 has no data sources in Python")

from pyspark.sql.pandas.types import from_arrow_schema

from epochgate.spark.streaming import register
from epochgate.spark.streaming.source import HAS_LIMITS

pytestmark = [pytest.mark.spark, pytest.mark.programs]
TABLES, ROWS = 12, 4
MOMENT = pa.timestamp("us", tz="UTC")
COLUMNS = pa.schema([(f"c{at}", kind) for at, kind in enumerate(nasty.SPEAKABLE)])
MOMENTS = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
CLOCKS = {"timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"}
UNTOUCHED = {"ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}
WRITINGS: dict[str, tuple[str, dict[str, str], dict[str, Any]]] = {
    "parquet": ("parquet", {"compression": "zstd"}, {}),
    "parquet with INT96": ("parquet", {"compression": "gzip"}, {}),
    "csv": (
        "csv",
        {"header": "true", **MOMENTS, **CLOCKS, **UNTOUCHED},
        {"escape": "\\", "null": ("",)},
    ),
    "csv, packed": (
        "csv",
        {"header": "true", "compression": "gzip", "sep": ";", "nullValue": "<null>"}
        | {**MOMENTS, **CLOCKS, **UNTOUCHED},
        {"escape": "\\", "null": ("<null>",), "delimiter": ";"},
    ),
    "json": ("json", {**MOMENTS, **CLOCKS}, {}),
    "json, packed": ("json", {"compression": "gzip", **MOMENTS, **CLOCKS}, {}),
}
"""The format, the options by which Spark writes, and those by which it is read."""


@pytest.fixture
def spark(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A session of a zone, which a test's parameter names."""
    session = session_of("tests/spark/values/test_on_spark.py")
    session.conf.set("spark.sql.session.timeZone", request.param)
    register(session)
    yield session
    session.conf.unset("spark.sql.session.timeZone")


def drawn(number: int) -> list[pa.Table]:
    """Tables with a column of each type."""
    found: list[pa.Table] = []

    @seed(number)
    @settings(
        max_examples=TABLES,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.data())
    def draw(data: st.DataObject) -> None:
        columns = [
            pa.array([data.draw(nasty.values_of(one.type)) for _ in range(ROWS)], one.type)
            for one in COLUMNS
        ]
        found.append(pa.Table.from_arrays(columns, schema=COLUMNS))

    draw()
    return found


def sayable(table: pa.Table) -> pa.Table:
    """The values of which Spark's own text is all that they are: of moments, those whose offset
    has no seconds and whose year has four digits; of numbers, those that JSON has.
    """
    first, last = pa.scalar(0, MOMENT), pa.scalar((nasty.YEAR_9999 - 86_400) * 10**6, MOMENT)
    columns = []
    for column in table.columns:
        keep = pa.array([True] * len(column))
        if pa.types.is_floating(column.type):
            keep = pc.is_finite(column)
        elif column.type == MOMENT:
            keep = pc.and_(pc.greater_equal(column, first), pc.less(column, last))
        columns.append(pc.if_else(keep, column, pa.scalar(None, column.type)))
    return pa.Table.from_arrays(columns, schema=table.schema)


@pytest.mark.parametrize(
    ("spark", "writing"),
    list(zip(itertools.cycle(ZONES), WRITINGS, strict=False)),
    indirect=["spark"],
)
def test_what_spark_writes_arrives_as_it_was(spark: Any, tmp_path: Path, writing: str) -> None:
    kind, by, options = WRITINGS[writing]
    table = pa.concat_tables(drawn(len(writing)))
    if kind != "parquet":
        table, options = sayable(table), {"schema": COLUMNS, **options}
    types = "INT96" if "INT96" in writing else "TIMESTAMP_MICROS"
    spark.conf.set("spark.sql.parquet.outputTimestampType", types)
    frame = spark.createDataFrame(table, from_arrow_schema(COLUMNS)).repartition(2)
    frame.write.format(kind).options(**by).save(str(tmp_path / "in"))
    target = Parquet(tmp_path)
    assert target.ingest(**options).refusal == ""
    if types == "INT96":
        # It does not tell moments from what clocks say, and is read as those of UTC say.
        walls = [one.type if one.type.id != MOMENT.id else pa.timestamp("us") for one in COLUMNS]
        table = table.cast(pa.schema(list(zip(COLUMNS.names, walls, strict=True))))
    found, expected = target.rows(), of_table(table)
    assert found == expected, told(found - expected, expected - found)


@pytest.mark.parametrize(
    ("spark", "form", "sink"),
    [
        (ZONES[0], "csv", "parquet"),
        (ZONES[1], "jsonl", "delta"),
        (ZONES[1], "parquet", "parquet"),
    ],
    indirect=["spark"],
)
@pytest.mark.skipif(
    not HAS_LIMITS, reason="Spark before 4.2 does not tell a source where it goes on"
)
def test_a_query_moves_what_its_files_have(
    spark: Any, tmp_path: Path, form: Format, sink: str
) -> None:
    whole = pa.concat_tables(drawn(len(form)))
    if form != "parquet":
        whole = sayable(whole)
    half = whole.num_rows // 2
    tables = [whole.slice(0, half), whole.slice(half)]
    source = write(tmp_path / "in", whole, tables, form, random.Random(len(sink)))
    place = {"source": str(tmp_path / "in"), "state": str(tmp_path / "state"), "settle": "0"}
    place["partitions"] = "2"
    query = (
        spark.readStream.format("epochgate")
        .options(**spelled(source.options), **place)
        .schema(from_arrow_schema(COLUMNS))
        .load()
        .writeStream.format("epochgate")
        .options(sink=sink, path=str(tmp_path / "out"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    target: Target = Delta(tmp_path) if sink == "delta" else Parquet(tmp_path)
    found, expected = target.rows(), of_table(whole)
    assert found == expected, told(found - expected, expected - found)
