"""Drivers of a steered query that are killed: a batch has one limit in every driver."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.shared import session_of
from tests.spark.streaming import coordinated_program, steered_program
from tests.spark.streaming.killing import KILLS, KINDS, Killing
from tests.spark.streaming.steered_program import control_in, run_query

pytestmark = [pytest.mark.spark, pytest.mark.kills, pytest.mark.slow]

ROWS = 20
AHEAD = 8
"""Files that a driver finds at its start."""
CLUSTER = "local-cluster[2,1,1024]"


@pytest.fixture(scope="module")
def spark() -> Any:
    return session_of("tests/spark/streaming/test_control_killed.py")


def land(landing: Path, files: range) -> None:
    for number in files:
        table = pa.table({"id": pa.array(range(number * ROWS, (number + 1) * ROWS), pa.int64())})
        pq.write_table(table, landing / f"{number:03}.parquet")


def start(
    folder: Path, waits_in: int = -1, program: Any = steered_program
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, program.__file__, str(folder), str(waits_in)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=Path(__file__).parents[3],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )


def read(folder: Path) -> tuple[list[int], dict[int, set[int]]]:
    """All numbers that were written, and the limits of each batch's rows; not read by Spark."""
    numbers: list[int] = []
    limits: dict[int, set[int]] = {}
    for file in sorted((folder / "out").glob("*/*.parquet")):
        for row in pq.read_table(file).to_pylist():
            numbers.append(row["id"])
            limits.setdefault(row["batch"], set()).add(row["limit"])
    return sorted(numbers), limits


def killed_in_batch_1(folder: Path, files: int, program: Any = steered_program) -> list[str]:
    """Return what a driver says that is killed before it writes anything of batch 1."""
    (folder / "landing").mkdir()
    land(folder / "landing", range(files))
    said = []
    with start(folder, 1, program) as driver:
        assert driver.stdout is not None
        for line in driver.stdout:
            said.append(line.strip())
            if line.startswith("batch 1 has"):
                driver.send_signal(signal.SIGKILL)
    assert driver.returncode == -signal.SIGKILL
    return said


def test_a_batch_whose_driver_is_killed_before_it_runs_has_what_was_decided(
    spark: Any, tmp_path: Path
) -> None:
    said = killed_in_batch_1(tmp_path, 3)
    assert said == ["batch 0 is written with limit 900", "batch 1 has limit 900"]
    control = control_in(tmp_path)
    control.update(limit=700)
    run_query(spark, tmp_path)
    numbers, limits = read(tmp_path)
    assert numbers == list(range(3 * ROWS))
    assert limits == {0: {900}, 1: {900}, 2: {700}}
    assert control.effective_from() == 2


@pytest.mark.versions
@pytest.mark.timeout(300)
def test_a_coordinator_chooses_once_for_each_batch_though_its_driver_is_killed_in_one(
    spark: Any, tmp_path: Path
) -> None:
    assert killed_in_batch_1(tmp_path, 4, coordinated_program) == ["batch 1 has limit 898"]
    control = coordinated_program.control_in(tmp_path)
    coordinated_program.run_query(spark, tmp_path, control)
    control.close()
    numbers, limits = read(tmp_path)
    assert numbers == list(range(4 * ROWS))
    assert limits == {0: {899}, 1: {898}, 2: {897}, 3: {896}}
    assert [one.value["limit"] for one in control.history()] == [899, 898, 897, 896]
    calls = [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]
    # Each with the batches whose end Spark had logged by then.
    assert calls == [
        [["start", 0], []],
        [["choose", 0, None], []],
        [["complete", 1], [0]],
        [["choose", 1, ROWS], [0]],
        [["start", 2], [0, 1]],
        [["choose", 2, ROWS], [0, 1]],
        [["complete", 3], [0, 1, 2]],
        [["choose", 3, ROWS], [0, 1, 2]],
        [["close"], [0, 1, 2, 3]],
    ]


@pytest.mark.deep
@pytest.mark.timeout(7200)
def test_kills_and_updates_at_random_moments_leave_one_limit_in_each_batch(tmp_path: Path) -> None:
    chance, files = random.Random("control"), 0
    (tmp_path / "landing").mkdir()
    control = control_in(tmp_path)
    program = ["-m", "tests.spark.streaming.steered_program", str(tmp_path), "-1", CLUSTER]
    killing = Killing(program, tmp_path / "checkpoint", chance)
    told: dict[int, int] = {}

    def feed() -> None:
        nonlocal files
        for one in control.history():
            assert told.setdefault(one.batch, one.value["limit"]) == one.value["limit"]
        if chance.random() < 0.7:
            control.update(limit=control.value["limit"] - 1)
        ahead = AHEAD - (files - killing.batches)
        land(tmp_path / "landing", range(files, files + max(0, ahead)))
        files += max(0, ahead)

    killing.run(feed)
    assert killing.killed == dict.fromkeys(KINDS, KILLS)
    numbers, limits = read(tmp_path)
    assert numbers == list(range(files * ROWS))
    assert all(len(of) == 1 for of in limits.values())
    assert {batch: {limit} for batch, limit in told.items()}.items() <= limits.items()
    in_order = [min(limits[batch]) for batch in sorted(limits)]
    assert in_order == sorted(in_order, reverse=True)
    assert limits[control.effective_from()] == {control.value["limit"]}
