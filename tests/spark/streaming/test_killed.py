"""Processes of a streaming query are killed (-9), at named steps of a commit and at random moments.

A reader that is not the sink's library finds each row once.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.errors import StreamingQueryException

from tests.spark.running import command, send_signal
from tests.spark.streaming.queries import Numbers

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[3]
POINTS = ("stage", "staged", "commit", "look", "note", "apply", "applied", "sweep", "committed")
"""Where `faulty_sink` can strike."""
SMALL = [("applied", "delta"), ("apply", "parquet")]
EVERY = [
    pytest.param(point, kind, marks=pytest.mark.deep)
    for point in POINTS
    for kind in ("parquet", "delta", "postgres")
    if (point, kind) not in SMALL
]
TRIED = [pytest.param(*one, marks=pytest.mark.versions) for one in SMALL]
KILLS = 25
FILES = 60


def numbers(root: Path, kind: str, request: pytest.FixtureRequest) -> Numbers:
    dsn = request.getfixturevalue("dsn") if kind == "postgres" else ""
    return Numbers(root, kind, dsn)


@pytest.mark.parametrize(("point", "kind"), [*TRIED, *EVERY])
def test_a_process_killed_at_a_named_step_loses_and_doubles_no_row(
    tmp_path: Path, session: Any, point: str, kind: str, request: pytest.FixtureRequest
) -> None:
    query = numbers(tmp_path, kind, request)
    query.add_files(2)
    query.fault.write_text(f"kill {point} 1")
    with contextlib.suppress(StreamingQueryException):
        query.run(session)
    assert not query.fault.exists(), "the step was reached"
    query.add_files(1)
    query.run(session)
    assert query.rows() == query.expected
    assert query.staged() == []


def victims(driver: psutil.Process) -> Iterator[tuple[str, psutil.Process]]:
    """What can be killed now, each with what it is."""
    yield "driver Python", driver
    for process in driver.children(recursive=True):
        with contextlib.suppress(psutil.Error):
            text = command(process)
            if "CoarseGrainedExecutorBackend" in text:
                yield "executor", process
            elif "SparkSubmit" in text:
                yield "driver JVM", process
            elif "pyspark" in text and "java" not in text:
                yield "worker", process


def kill_one(driver: subprocess.Popen[bytes], choice: random.Random) -> str:
    """Kill a process of a kind that is drawn first; "" if it was gone."""
    with contextlib.suppress(psutil.Error, ProcessLookupError):
        found = list(victims(psutil.Process(driver.pid)))
        kind = choice.choice(sorted({kind for kind, _ in found}))
        send_signal(choice.choice([p for k, p in found if k == kind]).pid, signal.SIGKILL)
        return kind
    return ""


def planned(query: Numbers) -> int:
    """How many batches have offsets: a kill comes once there is another one, so that each of them
    strikes a query at work.
    """
    return len(list(query.checkpoint.glob("offsets/[0-9]*")))


@pytest.mark.deep
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", ["parquet", "delta", "postgres"])
def test_rows_are_there_once_after_kills_at_random_moments(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    choice, killed = random.Random(kind), dict[str, int]()
    query = numbers(tmp_path, kind, request)
    query.add_files(FILES)
    arguments = [str(tmp_path), kind, query.dsn]
    while True:
        driver = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.streaming.killed_query", *arguments],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        try:
            seen = planned(query)
            while driver.poll() is None:
                if planned(query) == seen or sum(killed.values()) >= KILLS:
                    time.sleep(0.05)
                    continue
                time.sleep(choice.uniform(0, 1.5))  # the moment is the seed's
                victim = kill_one(driver, choice)
                killed[victim] = killed.get(victim, 0) + bool(victim)
                seen = planned(query)
        finally:
            driver.kill()
            driver.wait()
        if driver.returncode == 0:
            break
    assert sum(killed.values()) > 3, killed
    assert query.rows() == query.expected
    assert query.staged() == []
