"""A job's rows are in its Delta table once, whatever dies between two calls of the library."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import pytest

from epochgate.runtime.testing.faulty_filesystem import SimulatedCrash
from epochgate.spark.delta_sink import DeltaLog, DeltaSink
from epochgate.spark.parquet_sink.gathered import CommitIn
from tests.runtime.counting import DISTURBANCES, assert_disturbed
from tests.spark.tables.counting_job import TableJob
from tests.spark.tables.delta_replay import numbers, rows

pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
WHERE = pytest.mark.parametrize("commit_in", get_args(CommitIn))


@dataclass
class Fate:
    """Crashes the driver at one of its writes to the log, over all starts."""

    at: int = -1
    when: str = "before"
    calls: list[str] = field(default_factory=list)

    def of(self, path: str) -> DeltaLog:
        return FatefulLog(path, self)


class FatefulLog(DeltaLog):
    def __init__(self, path: str, fate: Fate) -> None:
        super().__init__(path)
        self.fate = fate

    def create(self, *arguments: Any) -> None:
        with self.struck("create"):
            super().create(*arguments)

    def append(self, *arguments: Any) -> None:
        with self.struck("append"):
            super().append(*arguments)

    def add_columns(self, *arguments: Any) -> None:
        with self.struck("add_columns"):
            super().add_columns(*arguments)

    def struck(self, name: str) -> Strike:
        self.fate.calls.append(name)
        return Strike(self.fate.when if len(self.fate.calls) - 1 == self.fate.at else "")


class Strike:
    def __init__(self, when: str) -> None:
        self.when = when

    def __enter__(self) -> None:
        if self.when == "before":
            raise SimulatedCrash("before the call")

    def __exit__(self, *error: object) -> None:
        if self.when == "after" and error[0] is None:
            raise SimulatedCrash("after the call, before its answer")


@WHERE
@pytest.mark.parametrize("disturb", DISTURBANCES)
def test_every_row_arrives_once(tmp_path: Path, disturb: str, commit_in: CommitIn) -> None:
    run = TableJob(DeltaSink(str(tmp_path / "table"), commit_in=commit_in))
    run.disturbed(disturb)
    run.run()
    assert run.job.result.state == "finished", run.job.result.reason
    assert rows(tmp_path / "table") == list(range(20))
    assert rows(tmp_path / "table", "name") == sorted(f"text {x}" for x in range(20))
    assert_disturbed(run.job, disturb)


@WHERE
def test_rows_arrive_once_wherever_the_driver_dies_around_a_write_of_the_log(
    tmp_path: Path, commit_in: CommitIn
) -> None:
    undisturbed = Fate()
    TableJob(DeltaSink(str(tmp_path / "whole"), log=undisturbed.of, commit_in=commit_in)).run()
    assert undisturbed.calls[:3] == ["create", "append", "append"]
    for at in range(len(undisturbed.calls)):
        for when in ("before", "after"):
            fate, table = Fate(at, when), tmp_path / f"{at}-{when}"
            run = TableJob(DeltaSink(str(table), log=fate.of, commit_in=commit_in))
            run.run()
            assert run.job.result.state == "finished", (at, when, run.job.result.reason)
            assert run.job.starts == 2
            assert rows(table) == list(range(20)), (at, when)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_driver_may_die_while_it_claims_a_table(tmp_path: Path, when: str) -> None:
    fate, table = Fate(2, when), tmp_path / "table"
    run = TableJob(DeltaSink(str(table), log=fate.of))

    def die_once() -> None:
        if len(fate.calls) == 2 and run.job.starts == 1:
            run.start_again()

    run.run(die_once)
    assert (run.job.starts, len(fate.calls) > 3) == (2, True)
    assert rows(table) == list(range(20))


def test_numbers_in_the_log_only_grow_over_restarts(tmp_path: Path) -> None:
    table = tmp_path / "table"
    run = TableJob(DeltaSink(str(table)))
    run.disturbed("driver")
    run.run()
    checkpoints, drivers = numbers(table, "job"), numbers(table, "job/driver")
    assert checkpoints == sorted(set(checkpoints))
    assert drivers == sorted(drivers)
    assert drivers[-1] == run.job.starts


@WHERE
@pytest.mark.parametrize("seed", range(3))
def test_rows_arrive_once_although_processes_and_drivers_die_at_random(
    tmp_path: Path, seed: int, commit_in: CommitIn
) -> None:
    _killed(tmp_path, seed, commit_in, kills=8)


@WHERE
@pytest.mark.deep
@pytest.mark.parametrize("seed", range(20))
def test_rows_arrive_once_although_fifty_kills_come_at_random(
    tmp_path: Path, seed: int, commit_in: CommitIn
) -> None:
    _killed(tmp_path, seed, commit_in, kills=50)


def _killed(tmp_path: Path, seed: int, commit_in: CommitIn, kills: int) -> None:
    chance, table = random.Random(seed), tmp_path / "table"
    run = TableJob(DeltaSink(str(table), commit_in=commit_in))
    done = run.killed(chance, kills)
    assert run.job.result.state == "finished", run.job.result.reason
    assert done > kills // 2
    assert rows(table) == list(range(20))
