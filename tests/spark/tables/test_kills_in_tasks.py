"""Real jobs whose tasks commit, whose workers and executors are killed: a reader that is not the
sink's own library finds each row once.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from epochgate.spark.ingest import IngestOptions
from epochgate.spark.ingest.chaos import Chaos, Kind
from epochgate.spark.ingest.plan import plan_ingest
from epochgate.spark.ingest.run import start_plan
from tests.spark.ingest.simulated import visible, write_source
from tests.spark.tables import delta_replay

pytestmark = [pytest.mark.spark, pytest.mark.kills, pytest.mark.slow, pytest.mark.timeout(1800)]
ROWS_PER_S = 2_000
S_PER_KILL = 1.5
"""Rows are there for so long: a replaced subtask is up again after a second."""
ENDS_S = 1500.0
STRIKES: tuple[Kind, ...] = ("worker", "executor", "worker", "stop")

Table = tuple[str, Callable[[], list[int]]]
"""A TARGET, and how a reader sees it."""


@pytest.fixture(params=["directory", "delta", "postgres"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    path = tmp_path / "table"
    if request.param == "directory":
        return str(path), lambda: visible(path)
    if request.param == "delta":
        pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
        return f"delta:{path}", lambda: delta_replay.rows(path)
    dsn: str = request.getfixturevalue("dsn")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create table events (x bigint, name text)")

    def read() -> list[int]:
        with psycopg.connect(dsn) as connection:
            return [x for (x,) in connection.execute("select x from events order by x")]

    return f"postgres:{dsn}#events", read


@pytest.mark.parametrize("kills", [3, pytest.param(50, marks=pytest.mark.deep)])
def test_each_row_is_there_once_whichever_processes_are_killed(
    spark: Any, table: Table, tmp_path: Path, kills: int, capsys: pytest.CaptureFixture[str]
) -> None:
    target, read = table
    files = int(kills * S_PER_KILL * ROWS_PER_S / 500) + 20
    rows = write_source(tmp_path, files, 500)
    options = IngestOptions(
        str(tmp_path / "in"),
        target,
        parallelism=2,
        checkpoint_every_s=0.2,
        checkpoint_directory=str(tmp_path / "checkpoints"),
        rows_per_second=ROWS_PER_S,
        heartbeat_timeout_s=2.0,
        restart="rate:1000,1m,100ms",
        commit_in="tasks",
    )
    kinds = list(itertools.islice(itertools.cycle(STRIKES), kills))
    with start_plan(spark, plan_ingest(options)) as handle:
        with Chaos(handle, kinds, seed=kills) as chaos:
            result = handle.wait(ENDS_S)
        assert chaos.error is None
        assert len(chaos.strikes) == kills, "the rows did not last for all strikes"
    assert result.state == "finished", result.reason
    assert read() == rows
    assert result.rows_visible == len(rows)
    with capsys.disabled():
        sys.stdout.write(f"\n{kills} kills into {target.partition(':')[0]}: {len(rows):,} rows\n")
