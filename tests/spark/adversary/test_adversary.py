"""A driver on real Spark under attack: what each attack costs it, and that no row is lost.

The bounds are those of docs/security.md. The attacks are made in the order of the table, on one
driver: what one leaves behind meets the next.
"""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.nemesis.judge import table_problems
from tests.spark.adversary.attacks import WITHOUT_KEY, Attack
from tests.spark.adversary.attacks_with_key import WITH_KEY, running
from tests.spark.adversary.driver_program import SECRETS, SOURCE, STATUS, STOP, TABLE
from tests.spark.adversary.target import LONG, SHORT, Size, Target
from tests.spark.adversary.watch import Cost, Watch, descriptors_of, history, resident_mb
from tests.spark.running import wait_for
from tests.spark.wire.harness import ROOT

ATTACKS = WITHOUT_KEY + WITH_KEY
PAGE = ROOT / "docs" / "security.md"
ROWS, FEED_EVERY_S = 4000, 0.2
AT_REST = 8
"""Descriptors that files and requests of the job itself may take at a moment."""
KEPT_MB = 160.0
"""What the allocator may keep of the 320 MB that the largest attack costs."""

on_spark = [pytest.mark.spark, pytest.mark.programs, pytest.mark.timeout(300)]


@dataclass
class Attacked:
    """A driver that works, with what was measured of it."""

    target: Target
    process: subprocess.Popen[str]
    feeder: Feeder
    rest_mb: float = 0.0
    rest_descriptors: int = 0
    attempts: list[Any] = field(default_factory=list)
    costs: dict[str, Cost] = field(default_factory=dict)


class Feeder:
    """Lays a file into the source every fifth of a second."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._feed, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()

    def _feed(self) -> None:
        first = 0
        while not self._is_over.wait(FEED_EVERY_S):
            ids = list(range(first, first + ROWS))
            rows = pa.table({"id": ids, "value": [number * 7 % 1009 for number in ids]})
            aside = self._folder / f"{first:09}.parquet"
            pq.write_table(rows, aside)
            aside.rename(self._folder / SOURCE / aside.name)
            first += ROWS


def patience() -> float:
    """Return how much longer things take on this machine than on one that does nothing else."""
    return max(1.0, os.getloadavg()[0] / (2 * (os.cpu_count() or 1)))


@contextmanager
def attacked(folder: Path, wire: str, size: Size) -> Iterator[Attacked]:
    (folder / SOURCE).mkdir()
    program = "tests.spark.adversary.driver_program"
    process = subprocess.Popen(
        [sys.executable, "-m", program, str(folder), wire],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
    )
    feeder = Feeder(folder)
    try:
        wait_for(lambda: (folder / SECRETS).exists() and (folder / STATUS).exists(), "the driver")
        one = Attacked(Target.in_folder(folder, size), process, feeder)
        await_commits(one, 3)
        running(one.target)
        one.rest_mb, one.rest_descriptors = resident_mb(process.pid), descriptors_of(process.pid)
        one.attempts = attempts(one)
        yield one
    finally:
        feeder.stop()
        if process.poll() is None:
            (folder / STOP).touch()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()


@pytest.fixture(scope="module", autouse=True)
def _descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(("auto", SHORT), id="plain"),
        pytest.param(("auto", LONG), id="plain-long", marks=pytest.mark.deep),
        pytest.param(("private", LONG), id="private-long", marks=pytest.mark.deep),
    ],
)
def driver(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    wire, size = request.param
    with attacked(tmp_path_factory.mktemp("adversary"), wire, size) as one:
        yield one


def commits(one: Attacked) -> int:
    return sum(line["event"] == "Committed" for line in history(one.target.folder))


def await_commits(one: Attacked, more: int) -> None:
    goal = commits(one) + more

    def is_reached() -> bool:
        assert one.process.poll() is None, "the driver has ended"
        return commits(one) >= goal

    wait_for(is_reached, f"{more} more commits")


def attempts(one: Attacked) -> list[Any]:
    tasks = one.target.status()["tasks"]
    return [(task["attempt"], task["pid"], task["identity"]) for task in tasks]


class TestDriver:
    pytestmark = on_spark

    @pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name.replace(" ", "-"))
    def test_pays_no_more_than_the_page_says(self, driver: Attacked, attack: Attack) -> None:
        running(driver.target)
        before = attempts(driver)
        with Watch(driver.target.folder, driver.process.pid) as watch:
            attack.strike(driver.target)
            running(driver.target)
            await_commits(driver, 1)
        driver.costs[attack.name] = cost = watch.cost
        assert (attempts(driver) != before) is attack.costs_attempts
        assert cost.rss_mb <= attack.rss_mb, cost
        assert cost.descriptors <= attack.descriptors, cost
        assert cost.gap_s <= attack.gap_s * patience(), cost
        at_rest = driver.rest_descriptors + AT_REST
        wait_for(lambda: descriptors_of(driver.process.pid) <= at_rest, "free descriptors")

    def test_has_each_row_once_after_all_of_them(self, driver: Attacked) -> None:
        driver.feeder.stop()
        source, table = (driver.target.folder / name for name in (SOURCE, TABLE))
        wait_for(lambda: table_problems(source, table) == [], "all rows", 30 * patience())
        assert resident_mb(driver.process.pid) <= driver.rest_mb + KEPT_MB
        told = history(driver.target.folder)
        (driver.target.folder / STOP).touch()
        assert driver.process.wait(60) == 0
        assert table_problems(source, table) == []
        assert not [line for line in told if line["event"] == "JobRestarts"]
        sys.stdout.write(f"\nat rest: {driver.rest_mb:.0f} MB\n")
        for name, cost in driver.costs.items():
            figures = f"{cost.rss_mb:.0f} | {cost.descriptors} | {cost.gap_s:.1f}"
            sys.stdout.write(f"| {name} | {figures} |\n")


def test_the_page_states_the_bounds() -> None:
    rows = re.findall(
        r"(?m)^\| ([^|]+) \| \S+ of (\d+) \| \S+ of (\d+) \| \S+ of (\d+) \|$", PAGE.read_text()
    )
    bounds = [(a.name, a.rss_mb, a.descriptors, int(a.gap_s)) for a in ATTACKS]
    assert [(name, int(mb), int(fds), int(s)) for name, mb, fds, s in rows] == bounds
