"""Streaming sources that a control prunes: what a batch has was decided when it was planned."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epochgate.spark.streaming import Control, plans
from tests.spark.shared import session_of
from tests.spark.streaming import pruned_program
from tests.spark.streaming.pruned_program import control_in, run_query

pytestmark = [
    pytest.mark.spark,
    pytest.mark.extended,
    pytest.mark.slow,
    pytest.mark.versions,
    pytest.mark.timeout(300),
]
ROOT = Path(__file__).parents[3]
ROWS = 10


@pytest.fixture(scope="module")
def spark() -> Any:
    session = session_of("tests/spark/streaming/test_pruned_source.py")
    pytest.importorskip("pyspark.sql.datasource", reason="Spark 3.5 has no data sources in Python")
    from epochgate.spark.streaming.source import HAS_LIMITS

    if not HAS_LIMITS:
        pytest.skip("Spark before 4.2 does not tell a source in Python where it goes on")
    return session


def land(folder: Path, number: int, region: str) -> None:
    """The file of this number, with its ten ids."""
    of = folder / "landing" / f"region={region}"
    of.mkdir(parents=True, exist_ok=True)
    ids = pa.array(range(number * ROWS, (number + 1) * ROWS), pa.int64())
    pq.write_table(pa.table({"id": ids}), of / f"{number:03}.parquet")


def written(folder: Path) -> dict[str, list[int]]:
    """The ids of each batch; read without Spark."""
    return {
        batch.name: sorted(
            number
            for file in batch.glob("*.parquet")
            for number in pq.read_table(file)["id"].to_pylist()
        )
        for batch in sorted((folder / "out").iterdir())
    }


def ids(*numbers: int) -> list[int]:
    return [one for number in numbers for one in range(number * ROWS, (number + 1) * ROWS)]


def pruned(folder: Path) -> list[list[str]]:
    """The names of the files that each plan has pruned."""
    return [
        [Path(name.partition("#")[0]).name for name in plan.pruned]
        for plan in plans(str(folder / "state"))
    ]


def test_a_control_prunes_files_and_rows_of_the_batches_that_are_planned_after_an_update(
    spark: Any, tmp_path: Path
) -> None:
    control = control_in(tmp_path)
    for number, region in enumerate(["south", "north", "south"]):
        land(tmp_path, number, region)
    control.update(regions=["south"], least=5)
    run_query(spark, tmp_path)
    assert written(tmp_path) == {"000": ids(0, 2)[5:]}
    assert pruned(tmp_path) == [["001.parquet"]]

    control.update(least=45)
    land(tmp_path, 3, "south")
    run_query(spark, tmp_path)
    assert written(tmp_path) == {"000": ids(0, 2)[5:], "001": []}
    assert pruned(tmp_path) == [["001.parquet"], ["003.parquet"]]

    control.update(regions=None)
    for number in (4, 5, 6):
        land(tmp_path, number, "north")
    run_query(spark, tmp_path)
    assert written(tmp_path) == {
        "000": ids(0, 2)[5:],
        "001": [],
        "002": ids(4, 5)[5:],
        "003": ids(6),
    }
    assert [plan.filter and plan.filter.version for plan in plans(str(tmp_path / "state"))] == [
        *(1, 2, 3, 3)
    ]


@pytest.mark.kills
@pytest.mark.parametrize("is_logged", [True, False], ids=["logged", "planned alone"])
def test_a_batch_whose_driver_is_killed_before_it_runs_is_pruned_as_it_was_planned(
    spark: Any, tmp_path: Path, is_logged: bool
) -> None:
    control = control_in(tmp_path)
    for number, region in enumerate(["south", "south", "north", "south", "south", "south"]):
        land(tmp_path, number, region)
    control.update(regions=["south"], least=35)
    # Batch 0 has the rows of file 3 from 35 on, and file 4; batch 1 has file 5.
    killed_in_batch_1(tmp_path)
    planned = plans(str(tmp_path / "state"))
    if not is_logged:
        for file in (tmp_path / "checkpoint" / "offsets").glob("*1*"):
            file.unlink()

    control.update(regions=["north"], least=0)
    land(tmp_path, 6, "south")
    land(tmp_path, 7, "north")
    run_query(spark, tmp_path)
    assert written(tmp_path) == {"000": ids(3, 4)[5:], "001": ids(5), "002": ids(7)}
    assert plans(str(tmp_path / "state"))[:2] == planned
    assert pruned(tmp_path) == [
        ["002.parquet", "000.parquet", "001.parquet"],
        [],
        ["006.parquet"],
    ]


def killed_in_batch_1(folder: Path) -> None:
    """A driver is killed between the plan of batch 1 and its first write."""
    program = [sys.executable, pruned_program.__file__, str(folder), "1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    output: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(program, text=True, cwd=ROOT, env=environment, **output) as driver:
        assert driver.stdout is not None
        for line in driver.stdout:
            if line == "batch 1 is planned\n":
                driver.send_signal(signal.SIGKILL)
    assert driver.returncode == -signal.SIGKILL


def test_a_source_of_the_users_judges_its_splits_by_the_values(spark: Any, tmp_path: Path) -> None:
    from epochgate.spark.streaming import register

    register(spark)
    pages = tmp_path / "pages"
    pages.mkdir()
    for page in "abc":
        (pages / page).write_text(f"{ord(page)}")
    control = Control("pages", {"pages": ["a"]}, store=str(tmp_path / "controls"))
    seen: list[list[int]] = []

    def run() -> None:
        stream = (
            spark.readStream.format("epochgate")
            .options(**control.source_options())
            .schema("id long, page string")
            .option("source", "tests.spark.streaming.pages_source:ChosenPages")
            .option("source.folder", str(pages))
            .option("state", str(tmp_path / "state"))
            .load()
        )
        query = stream.writeStream.foreachBatch(
            lambda frame, batch: seen.append(sorted(row["id"] for row in frame.collect()))
        )
        query = query.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query.trigger(availableNow=True).start().awaitTermination()

    run()
    # Another process knows the control by its store alone.
    Control("pages", store=str(tmp_path / "controls")).update(pages=["b", "d"])
    (pages / "d").write_text("100")
    run()
    assert seen == [[97], [100]]
    assert [plan.pruned for plan in plans(str(tmp_path / "state"))] == [["b", "c"], []]
