"""Sources of ours in streaming queries: each row once, in the batch that it was planned for."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epochgate.spark.ingest import ingest
from epochgate.spark.streaming import register
from tests.spark.shared import session_of

pytestmark = [pytest.mark.spark, pytest.mark.extended, pytest.mark.slow]

ROWS = 10


@pytest.fixture(scope="module")
def spark() -> Any:
    session = session_of("tests/spark/streaming/test_source.py")
    pytest.importorskip("pyspark.sql.datasource", reason="Spark 3.5 has no data sources in Python")
    from epochgate.spark.streaming.source import HAS_LIMITS

    if not HAS_LIMITS:
        pytest.skip("Spark before 4.2 does not tell a source in Python where it goes on")
    register(session)
    return session


def land(folder: Path, first: int, end: int) -> None:
    (folder / "landing").mkdir(exist_ok=True)
    for number in range(first, end):
        ids = range(number * ROWS, (number + 1) * ROWS)
        table = pa.table({"id": pa.array(ids, pa.int64()), "name": [f"n{one}" for one in ids]})
        pq.write_table(table, folder / "landing" / f"{number:03}.parquet")


class Batches:
    """The batches that a query was given: batch -> ids, each time that it ran."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.seen: list[tuple[int, list[int]]] = []
        self.during: Callable[[int], None] = lambda batch: None

    def run(self, source: str, schema: str | None = None, **options: str) -> None:
        """Run a query until what is there now was read."""
        reader = self.spark.readStream.format("epochgate").option("source", source)
        reader = reader.option("state", str(self.folder / "state")).option("settle", "0")
        for name, value in options.items():
            reader = reader.option(name, value)
        stream = (reader if schema is None else reader.schema(schema)).load()
        query = (
            stream.writeStream.foreachBatch(self._note)
            .option("checkpointLocation", str(self.folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    def _note(self, frame: Any, batch: int) -> None:
        self.seen.append((batch, sorted(row["id"] for row in frame.collect())))
        self.during(batch)


def ids(first: int, end: int) -> list[int]:
    return list(range(first * ROWS, end * ROWS))


@pytest.mark.versions
@pytest.mark.timeout(300)
def test_files_come_in_batches_of_the_size_asked_for_and_those_that_come_later_in_the_next(
    spark: Any, tmp_path: Path
) -> None:
    from pyspark.errors.exceptions.base import StreamingQueryException

    land(tmp_path, 0, 3)
    batches = Batches(spark, tmp_path)

    def fail(batch: int) -> None:
        land(tmp_path, 3, 4)
        raise RuntimeError("as a bug would")

    batches.during = fail
    landing = str(tmp_path / "landing")
    with pytest.raises(StreamingQueryException, match="as a bug would"):
        batches.run(landing, maxSplitsPerBatch="2")
    batches.during = lambda batch: None
    # What is planned stays as it is, also with another limit and more files.
    batches.run(landing, maxSplitsPerBatch="9", partitions="1")
    assert batches.seen == [(0, ids(0, 2)), (0, ids(0, 2)), (1, ids(2, 4))]
    batches.run(landing)
    assert len(batches.seen) == 3

    result = ingest(spark, landing, str(tmp_path / "table"), parallelism=2)
    assert result.rows_visible == 4 * ROWS
    read = pq.read_table(str(tmp_path / "table"))["id"].to_pylist()
    assert sorted(read) == sorted(one for _, of in batches.seen[1:] for one in of)


@pytest.mark.versions
@pytest.mark.timeout(300)
def test_a_source_of_the_users_is_read_as_a_resident_job_reads_it(
    spark: Any, tmp_path: Path
) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    for page in "abc":
        (pages / page).write_text(f"{ord(page)} {ord(page) + 100}")
    batches = Batches(spark, tmp_path)
    named = "tests.spark.streaming.pages_source:Pages"
    options = {"maxSplitsPerBatch": "2", "source.folder": str(pages)}
    batches.run(named, "id long, page string", **options)
    assert batches.seen == [(0, [97, 98, 197, 198]), (1, [99, 199])]


def test_rows_of_a_batch_that_runs_again_come_from_the_same_places(
    spark: Any, tmp_path: Path
) -> None:
    from pyspark.errors.exceptions.base import StreamingQueryException

    land(tmp_path, 0, 2)
    batches = Batches(spark, tmp_path)
    seen: list[list[tuple[int, str, int]]] = []

    def note(frame: Any, batch: int) -> None:
        seen.append(sorted((row.id, row.source_file, row.n) for row in frame.collect()))
        if len(seen) == 1:
            raise OSError("the first time")

    batches._note = note  # type: ignore[method-assign]  # of rows, not of ids
    added = "source_file=file.path,n=file.row"
    for _ in range(2):
        with contextlib.suppress(StreamingQueryException):
            batches.run(str(tmp_path / "landing"), addColumn=added)
    assert (
        seen[0]
        == seen[1]
        == [
            (number, str(tmp_path / "landing" / f"{number // ROWS:03}.parquet"), number % ROWS + 1)
            for number in range(2 * ROWS)
        ]
    )


@pytest.mark.timeout(300)
def test_the_progress_of_a_query_tells_how_many_files_wait(spark: Any, tmp_path: Path) -> None:
    land(tmp_path, 0, 5)
    stream = (
        spark.readStream.format("epochgate")
        .option("source", str(tmp_path / "landing"))
        .option("state", str(tmp_path / "state"))
        .option("settle", "0")
        .option("maxSplitsPerBatch", "2")
        .load()
    )
    query = (
        stream.writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    told = [json.loads(one.json)["sources"][0]["latestOffset"] for one in query.recentProgress]
    waiting = {one["batch"]: one["filesWaiting"] for one in told if one is not None}
    assert {batch: waiting[batch] for batch in (1, 2, 3)} == {1: 3, 2: 1, 3: 0}
