"""A job on Spark is asked for a savepoint from outside, and goes on from it with more subtasks."""

from __future__ import annotations

import json
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from epochgate import cli
from epochgate.pipeline import FunctionSource, Pipeline, RateLimit
from epochgate.runtime.savepoints import SavepointPlaceTaken

pytestmark = [pytest.mark.spark, pytest.mark.timeout(120)]

LAST = 400


def read(first: int) -> range:
    return range(first, first + 10)


class Table:
    """Where the driver writes, once for each checkpoint."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        with sqlite3.connect(self.path) as db:
            db.execute("CREATE TABLE IF NOT EXISTS numbers (n PRIMARY KEY)")

    def __call__(self, checkpoint: int, numbers: list[int]) -> None:
        with sqlite3.connect(self.path) as db:
            db.executemany("INSERT OR IGNORE INTO numbers VALUES (?)", [(n,) for n in numbers])

    def numbers(self) -> list[int]:
        with sqlite3.connect(self.path) as db:
            return [n for (n,) in db.execute("SELECT n FROM numbers ORDER BY n")]


def pipeline(table: Table, per_s: float | None) -> Pipeline:
    source = FunctionSource(range(0, LAST, 10), read, batch_records=5)
    return Pipeline(source=source, sink=table, coordinators=[RateLimit(per_s)])


def test_the_command_line_asks_the_job_and_another_start_goes_on_from_it(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, first, fresh = Table(tmp_path / "numbers.db"), tmp_path / "first", tmp_path / "fresh"
    place = tmp_path / "savepoint"
    started = pipeline(table, 100.0).start(
        spark, first, parallelism=1, job_id="numbers", checkpoint_interval_s=0.3
    )
    with started as job:
        deadline_s = time.monotonic() + 60
        while len(table.numbers()) < 20:
            assert time.monotonic() < deadline_s
            time.sleep(0.05)  # until something is committed, which has no notice for others
        assert cli.main(["savepoint", str(first), "--to", str(place), "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["path"], told["job_id"]) == (str(place), "numbers")
        assert told["is_of_running_job"]
        with pytest.raises(SavepointPlaceTaken):
            job.savepoint(place).result(60)
        beside = job.savepoint().result(60)
        assert beside.path.startswith(f"{first}.savepoints/")
        assert job.status().state == "running"
        job.stop()
        assert job.wait(60).state == "finished"
    assert len(table.numbers()) < LAST
    assert cli.main(["checkpoints", "verify", str(place)]) == 0
    assert "1 of 1 whole" in capsys.readouterr().out
    assert cli.main(["status", str(first)]) == 0
    assert str(place) in capsys.readouterr().out
    # The sink takes what it has again without an effect, so the older savepoint may be started.
    result = pipeline(table, None).run(spark, fresh, parallelism=2, from_savepoint=place)
    assert result.state == "finished"
    assert table.numbers() == list(range(LAST))
