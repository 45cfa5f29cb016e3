"""The files of the corpus through every door on real Spark, many at a time, as they are declared.

Files of a batch have the same columns. Those of texts are declared as STRING, so that each field
has to arrive letter by letter; of Parquet the types are those of the files. Which file a row is of
is told by a directory. `make check` reads the largest batches, `make check-deep` all.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark.sql.datasource", reason="Spark 3.5 has no data sources in Python")

from epochgate.pipeline import Pipeline
from epochgate.spark.ingest import ingest
from epochgate.spark.streaming import register
from epochgate.spark.streaming.source import HAS_LIMITS
from tests.spark.corpus.answers import TEXT_ANSWERS, copy_of
from tests.spark.corpus.doors import Files, Reading, packed, unpacked
from tests.spark.corpus.parquet_files import PARQUET, write
from tests.spark.corpus.test_doors import NOT_OF_SPARK, laid, refused_for, suits
from tests.spark.corpus.test_parquet import read
from tests.spark.shared import session_of
from tests.spark.values.cells import Rows, of_table

pytestmark = [pytest.mark.spark, pytest.mark.programs, pytest.mark.timeout(300)]
if not HAS_LIMITS:
    pytest.skip(
        "Spark before 4.2 does not tell a source in Python where it goes on",
        allow_module_level=True,
    )
CLOCKS = ("clocks_of_milliseconds", "clocks_of_microseconds", "clocks_of_nanoseconds")
NOT_ON_SPARK = {*NOT_OF_SPARK, *CLOCKS}
"""Also those of a type that Spark 4.3 has, and refuses."""
IN_MAKE_CHECK = 2
"""How many batches `make check` reads."""
FILE = "of_file"
Lay = Callable[[Path], Path]
"""Puts a file into a folder."""


@dataclass
class Batch:
    """Files that are read together, and the types that they are declared to have."""

    schema: pa.Schema
    options: dict[str, Any]
    files: list[Lay]

    def reading(self, place: Path) -> Reading:
        """The files, each in a directory that tells which it is."""
        for number, lay in enumerate(self.files):
            folder = place / "in" / f"{FILE}=file {number}"
            folder.mkdir(parents=True)
            lay(folder)
        return Reading(place, self.schema.append(pa.field(FILE, pa.string())), self.options)


def batches(place: Path) -> list[Batch]:
    """All files that have rows and are not refused, the largest batches first."""
    found: dict[str, Batch] = {}

    def add(kind: str, schema: pa.Schema, options: dict[str, Any], lay: Lay) -> None:
        key = json.dumps([kind, sorted(str(one) for one in schema), options])
        found.setdefault(key, Batch(schema, options, [])).files.append(lay)

    for number, answer in enumerate(TEXT_ANSWERS):
        if refused_for(answer) is None and answer.get("types") and suits(answer, "frame"):
            folder = place / f"{number}"
            folder.mkdir(parents=True)
            reading = laid(answer, folder)
            given = {"dialect": reading.dialect, "encoding": reading.encoding}
            names = read(reading.source, schema=reading.schema, **given).column_names
            as_text = pa.schema([pa.field(name, pa.string()) for name in names])
            kind = Path(answer["file"]).suffix
            add(kind, as_text, dict(reading.options), partial(copy_of, answer))
    for key, one in PARQUET.items():
        if not one.refused + one.refused_by_target and key not in NOT_ON_SPARK and one.table.schema:
            add(".parquet", one.table.schema, {}, partial(write, key))
    return sorted(found.values(), key=lambda batch: -len(batch.files))


def by_ingest(spark: Any, reading: Reading) -> Rows:
    given = {**reading.options, "null": tuple(reading.options.get("null", ())) or None}
    target = reading.place / "out"
    ingest(spark, str(reading.source), str(target), schema=reading.schema, parallelism=2, **given)
    found: Rows = Rows()
    for path in target.rglob("*.parquet"):
        found += of_table(pq.ParquetFile(path).read())
    return found


def by_pipeline(spark: Any, reading: Reading) -> Rows:
    committed: dict[int, list[bytes]] = {}
    pipeline = Pipeline(source=Files(reading), map=packed, sink=committed.__setitem__)
    pipeline.run(spark, reading.place / "checkpoints", parallelism=2)
    return unpacked(committed)


def by_stream(spark: Any, reading: Reading) -> Rows:
    found: Rows = Rows()
    (
        spark.readStream.format("epochgate")
        .options(**reading.of_spark(), state=str(reading.place / "state"))
        .schema(reading.struct(lambda: pa.schema([])))
        .load()
        .writeStream.foreachBatch(lambda frame, _: found.update(of_table(frame.toArrow())))
        .option("checkpointLocation", str(reading.place / "checkpoint"))
        .trigger(availableNow=True)
        .start()
        .awaitTermination()
    )
    return found


def by_frame(spark: Any, reading: Reading) -> Rows:
    frame = (
        spark.read.format("epochgate")
        .options(**reading.of_spark())
        .schema(reading.struct(lambda: pa.schema([])))
        .load()
    )
    return of_table(frame.toArrow())


DOORS = (by_ingest, by_pipeline, by_stream, by_frame)


def go_through_all(batch: Batch, place: Path) -> None:
    spark = session_of("tests/spark/corpus/test_doors_on_spark.py")
    register(spark)
    reading = batch.reading(place)
    expected = of_table(
        read(
            reading.source,
            schema=reading.schema,
            dialect=reading.dialect,
            encoding=reading.encoding,
        )
    )
    for door in DOORS:
        assert door(spark, reading) == expected, (door, batch)


@pytest.mark.parametrize("number", range(IN_MAKE_CHECK))
def test_files_of_one_kind_are_the_same_at_every_door(tmp_path: Path, number: int) -> None:
    go_through_all(batches(tmp_path / "each")[number], tmp_path / "batch")


@pytest.mark.deep
@pytest.mark.timeout(1800)
def test_all_files_are_the_same_at_every_door(tmp_path: Path) -> None:
    for number, batch in enumerate(batches(tmp_path / "each")):
        go_through_all(batch, tmp_path / f"batch {number}")
