"""A steered query on real Spark: each row says which value it was written with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from epochgate.runtime.steering import QueryUnknown
from epochgate.spark.streaming import Control
from tests.spark.running import wait_for
from tests.spark.shared import session_of
from tests.test_readme import block_with

pytestmark = [pytest.mark.spark, pytest.mark.extended, pytest.mark.slow]

ROWS = 20


@pytest.fixture(scope="module")
def spark() -> Any:
    return session_of("tests/spark/streaming/test_control.py")


class Query:
    """A query over files of numbers, one file to a batch, which writes what is below the limit."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.landing, self.out = folder / "landing", folder / "out"
        self.control = Control("pricing", {"limit": 900, "mode": "strict"}, store=str(folder / "c"))
        self._files = 0

    def land(self, files: int = 1) -> None:
        """More batches for the query."""
        for _ in range(files):
            first = self._files * ROWS
            frame = self.spark.range(first, first + ROWS, numPartitions=1)
            name = str(self.landing / f"{self._files:03}")
            frame.write.parquet(name)
            self._files += 1

    def run(self, function: Callable[..., Any] | None = None) -> None:
        """Run the query until what has landed is processed."""
        from pyspark.sql.functions import lit

        def write(frame: Any, batch: int, values: dict[str, Any]) -> None:
            marked = frame.withColumn("limit", lit(values["limit"])).withColumn("batch", lit(batch))
            # Written again as a whole, so that a batch that runs twice has its rows once.
            marked.write.mode("overwrite").parquet(str(self.out / f"{batch:03}"))

        stream = (
            self.spark.readStream.schema("id long")
            .option("maxFilesPerTrigger", 1)
            .parquet(str(self.landing / "*"))
        )
        query = (
            stream.writeStream.foreachBatch(self.control.apply(function or write))
            .option("checkpointLocation", str(self.folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    def written(self) -> dict[int, set[int]]:
        """Batch -> the limits that its rows carry."""
        rows = self.spark.read.parquet(str(self.out / "*")).select("batch", "limit").distinct()
        found: dict[int, set[int]] = {}
        for row in rows.collect():
            found.setdefault(row["batch"], set()).add(row["limit"])
        return found


@pytest.fixture
def query(spark: Any, tmp_path: Path) -> Query:
    return Query(spark, tmp_path)


@pytest.mark.versions
def test_an_update_is_in_every_row_of_the_next_batch_and_in_none_before(query: Query) -> None:
    query.land(2)
    query.run()
    version = query.control.update(limit=700)
    query.land(2)
    query.run()
    assert query.written() == {0: {900}, 1: {900}, 2: {700}, 3: {700}}
    assert query.control.effective_from(version) == 2
    assert [(one.batch, one.value["limit"]) for one in query.control.history()] == [
        (0, 900),
        (1, 900),
        (2, 700),
        (3, 700),
    ]


@pytest.mark.versions
def test_a_batch_that_runs_again_after_an_update_sees_what_it_saw_before(query: Query) -> None:
    from pyspark.errors.exceptions.base import StreamingQueryException

    seen: list[tuple[int, int]] = []

    def fail(frame: Any, batch: int, values: dict[str, Any]) -> None:
        seen.append((batch, values["limit"]))
        raise RuntimeError("as a bug would")

    query.land(2)
    with pytest.raises(StreamingQueryException, match="as a bug would") as raised:
        query.run(fail)
    assert "limit = 900   as it was initially" in str(raised.value)
    query.control.update(limit=700)
    query.run()
    assert seen == [(0, 900)]
    assert query.written() == {0: {900}, 1: {700}}
    figures = query.control.metrics()
    assert (figures["decided"], figures["replayed"], figures["changed"]) == (2, 1, 1)


def test_the_function_may_change_the_values_that_it_is_given(query: Query) -> None:
    seen = []

    def spoil(frame: Any, values: dict[str, Any]) -> None:
        seen.append(dict(values))
        values.clear()

    query.land(2)
    query.run(spoil)
    assert seen == [{"limit": 900, "mode": "strict"}] * 2


def test_the_listener_of_the_guide_shows_the_figures_of_the_query(spark: Any, query: Query) -> None:
    from prometheus_client import REGISTRY

    made: list[Any] = []
    streams = SimpleNamespace(addListener=made.append)
    names: dict[str, Any] = {"control": query.control, "spark": SimpleNamespace(streams=streams)}
    # A program that a person copies, and no other.
    exec(block_with("addListener", "docs/steering.md"), names)  # noqa: S102 -- the page is ours
    (listener,) = made

    def shown(figure: str) -> float | None:
        labels = {"control": "pricing", "query": query.control.queries()[0], "figure": figure}
        return REGISTRY.get_sample_value("epochgate_control", labels)

    spark.streams.addListener(listener)
    try:
        query.land(2)
        query.run()
        wait_for(lambda: shown("batch") == 1, "the second batch on the page")
    finally:
        spark.streams.removeListener(listener)
        figures = {name: shown(name) for name in ("decided", "effective_from", "pending")}
        REGISTRY.unregister(names["FIGURES"])
    assert figures == {"decided": 2, "effective_from": 0, "pending": 0}


def test_a_session_of_spark_connect_is_told_to_name_the_checkpoint(tmp_path: Path) -> None:
    class Frame:
        sparkSession = object()  # noqa: N815 -- Spark's name

    steered = Control("pricing", {"limit": 900}, store=str(tmp_path / "c")).apply(print)
    with pytest.raises(QueryUnknown, match=r"apply\(function, checkpoint="):
        steered(Frame(), 0)


def test_the_function_is_sent_with_names_alone_and_finds_its_query_in_the_checkpoint(
    tmp_path: Path,
) -> None:
    from pyspark import cloudpickle

    seen = tmp_path / "seen"

    def note(frame: Any, batch: int, values: dict[str, Any]) -> None:
        with open(seen, "a") as file:
            file.write(f"{batch}: {values['limit']}\n")

    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    (checkpoint / "metadata").write_text('{"id":"0c1a-42"}')
    control = Control("pricing", {"limit": 900}, store=str(tmp_path / "c"))
    steered = control.apply(note, checkpoint=str(checkpoint))
    steered(None, 0)
    control.update(limit=700)
    sent = cloudpickle.loads(cloudpickle.dumps(steered))  # type: ignore[no-untyped-call]
    sent(None, 0)
    sent(None, 1)
    assert seen.read_text() == "0: 900\n0: 900\n1: 700\n"
    assert control.queries() == ["0c1a-42"]
