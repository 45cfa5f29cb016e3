"""A job on Spark is asked for a savepoint from outside, and goes on from it with more subtasks."""

from __future__ import annotations

import json
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from epochgate import cli
from epochgate.pipeline import FunctionSource, MapOperator, Pipeline, RateLimit
from epochgate.runtime import OperatorContext, pack_parts, unpack_parts
from epochgate.runtime.savepoints import SavepointPlaceTaken
from epochgate.runtime.savepoints.asking import copy_newest

pytestmark = [pytest.mark.spark, pytest.mark.extended, pytest.mark.timeout(300)]

LAST = 400


def read(first: int) -> range:
    return range(first, first + 10)


class Table:
    """The table to which the driver writes, once for each checkpoint."""

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


class Numbered(MapOperator):
    """Counts the batches of its subtask, in one byte."""

    seen = 0

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        self.seen = (state or b"\0")[0]

    def map(self, batch: list[int]) -> list[list[int]]:
        self.seen += 1
        return [[self.seen, number] for number in batch]

    def snapshot(self, checkpoint_id: int) -> bytes:
        return bytes([self.seen])


class NumberedInText(Numbered):
    """The same, in a later form."""

    state_version = 2

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        self.seen = int(state or b"0")

    def snapshot(self, checkpoint_id: int) -> bytes:
        return str(self.seen).encode()

    def upgrade_state(self, version: int, state: bytes) -> bytes:
        return str(state[0]).encode()


def test_a_savepoint_of_older_code_is_upgraded_in_the_tasks(spark: Any, tmp_path: Path) -> None:
    written: dict[int, list[list[int]]] = {}

    def numbering(map: type[MapOperator], last: int) -> Pipeline:
        source = FunctionSource(range(0, last, 10), read, batch_records=10)
        return Pipeline(source=source, map=map, sink=written.__setitem__)

    first = tmp_path / "first"
    assert numbering(Numbered, 50).run(spark, first, parallelism=1).state == "finished"
    made = copy_newest(str(first))
    written.clear()
    again = numbering(NumberedInText, 80).run(
        spark, tmp_path / "second", parallelism=1, from_savepoint=made.path
    )
    assert again.state == "finished"
    newly = [
        row
        for checkpoint, rows in written.items()
        if checkpoint > made.checkpoint_id
        for row in rows
    ]
    assert sorted(newly) == [[6 + (n - 50) // 10, n] for n in range(50, 80)]


class Large(MapOperator):
    """Has a state of twenty parts, of which one changes with each batch."""

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        found = unpack_parts(state)
        self.parts = {f"{n}": found.get(f"{n}", bytes(32_768)) for n in range(20)}

    def map(self, batch: list[int]) -> list[int]:
        name = f"{batch[0] // 10 % 20}"
        self.parts[name] = batch[0].to_bytes(4, "big") + self.parts[name][:-4]
        return batch

    def snapshot(self, checkpoint_id: int) -> bytes:
        return pack_parts(self.parts)


def test_a_large_state_is_written_by_what_has_changed(spark: Any, tmp_path: Path) -> None:
    written: dict[int, list[int]] = {}
    source = FunctionSource(range(0, LAST, 10), read, batch_records=10)
    job = Pipeline(
        source=source, map=Large, sink=written.__setitem__, coordinators=[RateLimit(100.0)]
    )
    result = job.run(spark, tmp_path / "jobs", parallelism=1, checkpoint_interval_s=0.4)
    assert result.state == "finished"
    assert sorted(n for numbers in written.values() for n in numbers) == list(range(LAST))
    sizes = [one.stored_bytes for one in result.report.completed()]
    assert len(sizes) > 3
    assert sorted(sizes)[len(sizes) // 2] < 20 * 32_768 / 2
    latest = copy_newest(str(tmp_path / "jobs"))
    assert latest.size_bytes > 20 * 32_768, "a savepoint has all of it"
    assert cli.main(["checkpoints", "verify", str(tmp_path / "jobs")]) == 0


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
