"""Real ingestions into each table, whose driver is killed (-9) at fifty random moments, with
workers killed in between and the database's server now and then: a reader that is not the sink's
own library finds each row once.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

import duckdb
import psycopg
import pytest

from epochgate.benchmarks import object_server
from epochgate.spark.parquet_sink.gathered import CommitIn
from tests.soak.folders import ObjectTable
from tests.spark.ingest.simulated import write_source
from tests.spark.tables import delta_replay, iceberg_replay
from tests.spark.tables.postgres_server import Server

FILES, ROWS = 40, 500
LIFE_S = 8.0
"""How long a driver lives at most once its subtasks are up; of some, not before."""
START_S = 120.0
END_S = 600.0
POLL_S = 0.1


@dataclass
class Target:
    """What a driver is told, and how a reader sees it; `strike` disturbs the store meanwhile."""

    name: str
    read: Callable[[], list[int]]
    environment: dict[str, str] = field(default_factory=dict)
    strike: Callable[[], None] | None = None
    commit_in: CommitIn = "driver"


@pytest.fixture(params=["directory", "objects", "delta", "iceberg", "postgres"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Target]:
    if request.param == "directory":
        yield Target(str(tmp_path / "table"), lambda: numbers_in(tmp_path / "table"))
    elif request.param == "objects":
        yield from _of_object_store(tmp_path)
    elif request.param == "delta":
        pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
        table = tmp_path / "table"
        yield Target(f"delta:{table}", lambda: delta_replay.rows(table))
    elif request.param == "iceberg":
        pytest.importorskip("pyiceberg", reason="the extra `iceberg` is not installed")
        described = {
            f"PYICEBERG_CATALOG__LAKE__{name.upper()}": value
            for name, value in iceberg_replay.catalog(tmp_path).items()
        }
        yield Target("iceberg:lake.sales.events", lambda: iceberg_replay.rows(tmp_path), described)
    else:
        yield from _of_postgres()


def numbers_in(files: Path) -> list[int]:
    """What DuckDB finds in a directory."""
    if not any(files.rglob("*.parquet")):
        return []
    found = duckdb.execute("select x from read_parquet(?) order by x", [f"{files}/**/*.parquet"])
    return [x for (x,) in found.fetchall()]


def _of_object_store(tmp_path: Path) -> Iterator[Target]:
    folder, on = tmp_path / "server", object_server.ports(object_server.PORTS)
    folder.mkdir()
    with ExitStack() as running:
        try:
            variables = running.enter_context(object_server.seaweedfs(folder, on))
        except object_server.ServerMissing as missing:
            pytest.skip(str(missing))
        bucket = object_server.BUCKET
        table = ObjectTable(f"{bucket}/table", tmp_path / "copies", variables)

        def strike() -> None:
            running.close()
            running.enter_context(object_server.seaweedfs(folder, on))
            readable_s = time.monotonic() + START_S
            while True:  # the server answers before it has found all of its volumes
                try:
                    table.files()
                    return
                except OSError:
                    if time.monotonic() > readable_s:
                        raise
                time.sleep(POLL_S)

        yield Target(f"s3://{bucket}/table", lambda: numbers_in(table.files()), variables, strike)


def _of_postgres() -> Iterator[Target]:
    server = Server()
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute("create table events (x bigint, name text)")

    def read() -> list[int]:
        with psycopg.connect(server.dsn) as connection:
            found = connection.execute("select x from events order by x").fetchall()
        return [x for (x,) in found]

    def strike() -> None:
        server.crash()
        server.start()

    yield Target(f"postgres:{server.dsn}#events", read, strike=strike)
    server.remove()


@pytest.mark.deep
@pytest.mark.spark
@pytest.mark.timeout(5400)
@pytest.mark.parametrize("commit_in", get_args(CommitIn))
def test_rows_are_there_once_after_fifty_kills_of_the_driver(
    target: Target, commit_in: CommitIn, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if commit_in == "tasks" and target.name.startswith("iceberg"):
        pytest.skip("Iceberg tables are committed to by the driver")
    target.commit_in = commit_in
    run = Runs(target, tmp_path, random.Random(int(os.environ.get("EPOCHGATE_SEED", "0"))))
    while run.kills < int(os.environ.get("EPOCHGATE_KILLS", "50")):
        run.killed()
    assert run.grown >= run.kills // 4, "too many drivers were killed before they did anything"
    run.to_its_end()
    assert target.read() == run.expected, run.said()
    with capsys.disabled():
        sys.stdout.write(f"\n{run.told()}: {len(run.expected):,} rows, each once\n")


class Runs:
    """One ingestion over many driver processes; more files come where one has taken all."""

    def __init__(self, target: Target, place: Path, chance: random.Random) -> None:
        self.target, self.place, self.chance = target, place, chance
        self.kills = self.ends = self.strikes = self.seen = self.grown = 0
        self.expected: list[int] = []
        self.log, self.log_before = place / "log.txt", 0
        self._deliver()

    def killed(self) -> None:
        """Start a driver, and kill it after a while, unless it has ended."""
        process = self._started("--chaos", "2", "--rows-per-second", "2000")
        life_s = self.chance.uniform(0.0, LIFE_S)
        strikes = self.target.strike is not None and self.chance.random() < 0.3
        if self.chance.random() < 0.8:
            self._come_up(process)
        code = self._waited(process, life_s / 2)
        if strikes and code is None and self.target.strike is not None:
            self.target.strike()
            self.strikes += 1
        code = self._waited(process, life_s / 2)
        if code is None:
            process.kill()
            process.wait()
            self.kills += 1
            self.look()
            return
        # A start that finds no server says so, and nothing is lost by it.
        assert code == 0 or strikes, self.said()
        self.ends += 1
        self._deliver()

    def look(self) -> None:
        """No row is there twice, none is lost that was there before, and none is unknown."""
        found = self.target.read()
        assert len(found) == len(set(found)), self.said()
        assert set(found) <= set(self.expected), self.said()
        assert len(found) >= self.seen, self.said()
        self.grown += len(found) > self.seen
        self.seen = len(found)

    def to_its_end(self) -> None:
        """Let a last driver take what is left."""
        process = self._started()
        assert self._waited(process, END_S) == 0, self.said()

    def told(self) -> str:
        """What was done."""
        crashes = f", {self.strikes} crashes of the server" if self.target.strike else ""
        return (
            f"{self.kills} kills of the driver, {self.grown} of them after a commit{crashes}, "
            f"{self.ends} ends between"
        )

    def said(self) -> str:
        """What the last drivers have said."""
        return self.log.read_text(errors="replace")[-3000:]

    def _deliver(self) -> None:
        self.expected += write_source(self.place, FILES, ROWS, first=len(self.expected))

    def _waited(self, process: subprocess.Popen[bytes], seconds: float) -> int | None:
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def _come_up(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until the subtasks of this driver are up, or the driver has ended."""
        end_s = time.monotonic() + START_S
        while b" up after " not in self.log.read_bytes()[self.log_before :]:
            if self._waited(process, POLL_S) is not None or time.monotonic() > end_s:
                return

    def _started(self, *more: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "epochgate", "ingest", str(self.place / "in")]
        command += [self.target.name, "--checkpoint-dir", str(self.place / "checkpoints")]
        command += ["--parallelism", "2", "--checkpoint-every", "300ms"]
        command += ["--commit-in", self.target.commit_in]
        command += ["--restart", "rate:1000,1m,100ms", *more]
        with self.log.open("ab") as output:
            self.log_before = output.tell()
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.target.environment},
            )
