"""A job's rows are in its Iceberg table once, whatever dies between two calls of the catalog."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from epochgate.runtime.testing.certification import Guarantee
from epochgate.runtime.testing.certification.run import Plan, Run
from epochgate.runtime.testing.faulty_filesystem import SimulatedCrash
from epochgate.spark.iceberg_sink import IcebergSink, IcebergTable
from tests.runtime.counting import DISTURBANCES, assert_disturbed
from tests.spark.tables.certified import IcebergCase
from tests.spark.tables.counting_job import TableJob
from tests.spark.tables.iceberg_replay import catalog, numbers, rows

pytest.importorskip("pyiceberg", reason="the extra `iceberg` is not installed")
TABLE = "sales.events"


@dataclass
class Fate:
    """Crashes the driver at one of its calls of the catalog, over all starts."""

    at: int = -1
    when: str = "before"
    calls: list[str] = field(default_factory=list)

    def of(self, catalog: str, name: str, properties: Mapping[str, str]) -> IcebergTable:
        return FatefulTable(catalog, name, properties, self)

    def strike(self, call: str, when: str) -> None:
        if when == "before":
            self.calls.append(call)
        if (len(self.calls) - 1, when) == (self.at, self.when):
            raise SimulatedCrash(f"{when} {call}")


class FatefulTable(IcebergTable):
    def __init__(self, catalog: str, name: str, properties: Mapping[str, str], fate: Fate) -> None:
        super().__init__(catalog, name, properties)
        self.fate = fate

    def create(self) -> None:
        self.fate.strike("create", "before")
        super().create()
        self.fate.strike("create", "after")

    def commit(self, *arguments: Any) -> None:
        self.fate.strike("commit", "before")
        super().commit(*arguments)
        self.fate.strike("commit", "after")


def sink(place: Path, fate: Fate | None = None) -> IcebergSink:
    properties = catalog(place)
    if fate is None:
        return IcebergSink("test", TABLE, properties)
    place.mkdir()
    return IcebergSink("test", TABLE, properties, open_table=fate.of)


@pytest.mark.parametrize("disturb", DISTURBANCES)
def test_every_row_arrives_once(tmp_path: Path, disturb: str) -> None:
    run = TableJob(sink(tmp_path))
    run.disturbed(disturb)
    run.run()
    assert run.job.result.state == "finished", run.job.result.reason
    assert rows(tmp_path) == list(range(20))
    assert rows(tmp_path, "name") == sorted(f"text {x}" for x in range(20))
    assert_disturbed(run.job, disturb)
    said = numbers(tmp_path, "epochgate.checkpoint")
    assert said == sorted(set(said)), "numbers only grow"


@pytest.mark.parametrize("calls", [4, pytest.param(None, marks=pytest.mark.deep)])
def test_rows_arrive_once_wherever_the_driver_dies_around_a_call_of_the_catalog(
    tmp_path: Path, calls: int | None
) -> None:
    """The first four are to make the table, to claim it, and two commits; others are alike."""
    undisturbed = Fate()
    TableJob(sink(tmp_path / "whole", undisturbed)).run()
    assert undisturbed.calls[:3] == ["create", "commit", "commit"]
    for at in range(calls or len(undisturbed.calls)):
        for when in ("before", "after"):
            place = tmp_path / f"{at}-{when}"
            run = _started(sink(place, Fate(at, when)))
            run.run()
            assert run.job.result.state == "finished", (at, when, run.job.result.reason)
            assert rows(place) == list(range(20)), (at, when)


def _started(sink: IcebergSink) -> TableJob:
    """A job whose first start may die while it takes the table."""
    while True:
        try:
            return TableJob(sink)
        except SimulatedCrash:
            continue


@pytest.mark.parametrize("seed", range(2))
def test_rows_arrive_once_although_processes_and_drivers_die_at_random(
    tmp_path: Path, seed: int
) -> None:
    _killed(tmp_path, seed, kills=8)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(20))
def test_rows_arrive_once_although_fifty_kills_come_at_random(tmp_path: Path, seed: int) -> None:
    _killed(tmp_path, seed, kills=50)


def _killed(tmp_path: Path, seed: int, kills: int) -> None:
    run = TableJob(sink(tmp_path))
    done = run.killed(random.Random(seed), kills)
    assert run.job.result.state == "finished", run.job.result.reason
    assert done > kills // 2
    assert rows(tmp_path) == list(range(20))


def test_metadata_is_on_the_device_before_the_catalog_points_to_it(tmp_path: Path) -> None:
    played = Run(IcebergCase(), tmp_path, Plan(Guarantee.COMPLETE)).play()
    assert played.broken is None
    done = [point.operation for point in played.points if point.call == "commit(1)"]
    committed = done.index("SqlCatalog.commit_table(...)")
    written = [at for at, one in enumerate(done) if "fsync" in one and ".metadata.json" in one]
    assert len(written) == 1, done
    assert written[0] > committed, "within it, and before the catalog's own transaction"
    manifests = [one for one in done[:committed] if "fsync" in one and ".avro" in one]
    assert len(manifests) == 2, done
