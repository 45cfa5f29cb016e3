"""Functions of `foreachBatch` on a real Spark, also on one without data sources in Python: `once`,
a control, and both.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.errors import StreamingQueryException

from epochgate.spark.streaming import Control, DeltaLedger, DirectoryLedger, once, register
from epochgate.spark.streaming.registration import NoDataSources
from tests.spark.streaming.queries import Numbers
from tests.spark.tables import delta_replay

pytestmark = [pytest.mark.spark, pytest.mark.extended, pytest.mark.versions]


@pytest.fixture
def source(tmp_path: Path) -> Numbers:
    made = Numbers(tmp_path, "parquet")
    made.add_files(2)
    return made


def run(spark: Any, source: Numbers, function: Callable[..., Any]) -> list[int]:
    """Run the query to its end: the batches that ran."""
    query = (
        source.frame(spark)
        .writeStream.foreachBatch(function)
        .option("checkpointLocation", str(source.checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return [progress["batchId"] for progress in query.recentProgress]


def test_once_calls_the_function_once_for_each_batch_of_the_query(
    spark: Any, source: Numbers, tmp_path: Path
) -> None:
    ledger, target = DirectoryLedger(str(tmp_path / "ledger")), str(tmp_path / "sums")

    def add_up(df: Any, batch: int) -> None:
        df.groupBy().sum("id").write.mode("append").json(target)

    guarded = once(ledger, add_up, checkpoint=str(source.checkpoint))
    assert run(spark, source, guarded) == [0, 1]
    source.forget_end(1)
    source.add_files(1)
    assert run(spark, source, guarded) == [1, 2]
    query = json.loads((source.checkpoint / "metadata").read_text())["id"]
    assert set(ledger.notes().read().queries) == {query}
    lines = [line for file in Path(target).glob("*.json") for line in file.read_text().split()]
    assert sorted(lines) == ['{"sum(id)":145}', '{"sum(id)":245}', '{"sum(id)":45}']


def test_a_query_without_a_checkpoint_location_is_refused_before_the_function_is_called(
    spark: Any, source: Numbers, tmp_path: Path
) -> None:
    called: list[int] = []

    def note(df: Any, batch: int) -> None:
        called.append(batch)

    function = once(DirectoryLedger(str(tmp_path / "ledger")), note)
    query = source.frame(spark).writeStream.foreachBatch(function).start()
    with pytest.raises(StreamingQueryException, match=r'Set \.option\("checkpointLocation"'):
        query.awaitTermination()
    assert called == []


def test_a_checkpoint_that_is_not_the_query_s_is_refused_with_the_one_that_is(
    spark: Any, source: Numbers, tmp_path: Path
) -> None:
    called: list[int] = []

    def note(df: Any, batch: int) -> None:
        called.append(batch)

    source.checkpoint = tmp_path / "check point, 10%"
    ledger = DirectoryLedger(str(tmp_path / "ledger"))
    with pytest.raises(StreamingQueryException) as raised:
        run(spark, source, once(ledger, note, checkpoint=str(tmp_path / "elsewhere")))
    assert f"Give checkpoint={str(source.checkpoint)!r}" in str(raised.value)
    assert called == []
    assert run(spark, source, once(ledger, note, checkpoint=f"file://{source.checkpoint}/")) == [
        0,
        1,
    ]


def test_a_control_gives_a_batch_that_runs_again_what_it_saw_before(
    spark: Any, source: Numbers, tmp_path: Path
) -> None:
    control = Control("pricing", {"limit": 900}, store=str(tmp_path / "controls"))
    seen: list[tuple[int, int]] = []

    def note(df: Any, batch: int, values: dict[str, Any]) -> None:
        seen.append((batch, values["limit"]))

    assert run(spark, source, control.apply(note)) == [0, 1]
    control.update(limit=700)
    source.forget_end(1)
    source.add_files(1)
    assert run(spark, source, control.apply(note)) == [1, 2]
    assert seen == [(0, 900), (1, 900), (1, 900), (2, 700)]
    assert control.effective_from() == 2


def test_once_and_a_control_write_each_batch_once_with_its_values_in_one_transaction(
    spark: Any, source: Numbers, tmp_path: Path
) -> None:
    deltalake = pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
    import pyarrow as pa

    table = tmp_path / "table"
    control = Control("pricing", {"factor": 1}, store=str(tmp_path / "controls"))

    def write(df: Any, batch: int, values: dict[str, Any], transaction: Any) -> None:
        ids = [values["factor"] * row["id"] for row in df.collect()]
        deltalake.write_deltalake(
            str(table),
            pa.table({"id": ids}),
            mode="append",
            commit_properties=transaction.properties(),
        )

    steered = once(DeltaLedger(str(table)), control.apply(write))
    assert run(spark, source, steered) == [0, 1]
    control.update(factor=-1)
    source.forget_end(1)
    source.add_files(1)
    assert run(spark, source, steered) == [1, 2]
    assert delta_replay.rows(table, "id") == sorted([*range(20), *range(-29, -19)])


def test_a_spark_without_data_sources_is_refused_with_what_works_on_it() -> None:
    with pytest.raises(NoDataSources, match=r"Spark 3\.5\.9 .* foreachBatch with .* instead"):
        register(cast("Any", SimpleNamespace(version="3.5.9")))
