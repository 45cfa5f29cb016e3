"""Real ingestions into each table, committed from the driver or from the tasks, whose workers,
executors and drivers are killed (-9): a reader that is not the sink's own library finds each row
once.

A driver process strikes its own workers and executors as it is told; once it has, it is killed at a
random moment, and the next one goes on from its checkpoints. Files come until the last of them is
killed, so that no strike finds the rows at their end. Workers are also stopped, to go on once the
next driver runs, and the server of a table crashes now and then.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import psutil
import psycopg
import pytest

from epochgate.chaos.striking import Kind
from epochgate.spark.parquet_sink.gathered import CommitIn
from tests.spark.ingest.simulated import make_older, write_source
from tests.spark.tables.killed_targets import Row, Target, target_of

MASTER = "local-cluster[2,2,1024]"
FILE_ROWS, FILE_EVERY_S, ROWS_PER_S = 500, 0.5, 2000
"""Files come at half the pace at which a job may read, and faster than one that is struck does:
there is work at each strike."""
EARLY_S = 12.0
"""How long a driver lives at most that strikes nothing; it is up after the half of it."""
REST_S = 2.0
"""How long a driver lives at most once it has struck all that it should."""
STRIKE_S = 90.0
START_S = 120.0
END_S = 600.0
POLL_S = 0.1
DEEP = int(os.environ.get("EPOCHGATE_KILLS", "50"))

Blow = Kind | Literal["driver", "server"]


@pytest.fixture
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Target]:
    """The kind of table that the test names."""
    with target_of(request.param, tmp_path) as target:
        yield target


def blows(kills: int, chance: random.Random, *, has_server: bool) -> list[Blow]:
    """`kills` kills in random order, the last of a driver. Beside many of them there are stops, and
    crashes of the server before each third kill of a driver.
    """
    kinds: tuple[Blow, ...] = ("worker", "executor", "worker", "driver")
    killed = list(itertools.islice(itertools.cycle(kinds), kills - 1))
    stop: list[Blow] = ["stop"]
    mixed = killed + stop * (kills // 8)
    if kills > len(kinds):
        chance.shuffle(mixed)
    mixed.append("driver")
    if not has_server:
        return mixed
    drivers = itertools.count(1)
    crashes = [blow == "driver" and next(drivers) % 3 == 0 for blow in mixed]
    return [
        each
        for blow, is_crash in zip(mixed, crashes, strict=True)
        for each in (("server", blow) if is_crash else (blow,))
    ]


SHORT, LONG = pytest.mark.kills, (pytest.mark.deep, pytest.mark.kills)
TABLES = ("directory", "objects", "delta", "delta objects", "postgres")
BY_THE_DRIVER = ("iceberg", "iceberg objects sql", "iceberg objects rest")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(5400)
@pytest.mark.parametrize(
    ("target", "commit_in", "kills"),
    [
        *[pytest.param(table, "tasks", 3, marks=SHORT) for table in TABLES],
        *[pytest.param(table, "driver", 3, marks=SHORT) for table in BY_THE_DRIVER],
        *[pytest.param(table, "tasks", DEEP, marks=LONG) for table in TABLES],
        *[pytest.param(table, "driver", DEEP, marks=LONG) for table in (*TABLES, *BY_THE_DRIVER)],
    ],
    indirect=["target"],
)
def test_each_row_is_there_once_whichever_processes_are_killed(
    target: Target,
    commit_in: CommitIn,
    kills: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with capsys.disabled():
        sys.stdout.write(struck_to_the_end(target, commit_in, kills, tmp_path))


MERGED = ("delta", "iceberg", "postgres")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(5400)
@pytest.mark.parametrize(
    ("target", "kills"),
    [
        *[pytest.param(table, 3, marks=SHORT) for table in MERGED],
        *[pytest.param(table, DEEP, marks=LONG) for table in MERGED],
    ],
    indirect=["target"],
)
def test_each_key_has_its_last_row_whichever_processes_are_killed(
    target: Target, kills: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if target.kind == "postgres":
        dsn = target.name.removeprefix("postgres:").removesuffix("#events")
        with psycopg.connect(dsn) as connection:
            connection.execute("alter table events add unique (x)")
    with capsys.disabled():
        sys.stdout.write(struck_to_the_end(target, "driver", kills, tmp_path, merges=True))


def struck_to_the_end(
    target: Target, commit_in: CommitIn, kills: int, place: Path, *, merges: bool = False
) -> str:
    """Strike an ingestion so often, let it end, and compare; return what a person is told."""
    began_s = time.monotonic()
    chance = random.Random(int(os.environ.get("EPOCHGATE_SEED", "0")))
    left = blows(kills, chance, has_server=target.crash is not None)
    with Struck(target, commit_in, place, left, chance, merges=merges) as struck:
        while struck.left:
            struck.live()
        struck.to_its_end()
    counts = struck.done
    assert counts["worker"] + counts["executor"] + counts["driver"] == kills
    assert min(counts["worker"], counts["executor"], counts["driver"]) > 0
    assert struck.grown >= counts["driver"] // 4, "most drivers were killed before they did much"
    assert target.read() == struck.expected, struck.said()
    told = ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items()))
    return (
        f"\n{target.kind}, {'merged' if merges else 'committed'} in the {commit_in}: {kills} kills "
        f"({told}; {struck.grown} drivers after a commit): {len(struck.expected):,} rows, "
        f"{struck.seen:,} of them there at the last kill, each once, "
        f"{target.cuts()} answers lost, "
        f"in {time.monotonic() - began_s:.0f} s\n"
    )


class Struck:
    """One ingestion over many driver processes, struck by what is `left` in its order; `merges`:
    half of the rows come again, with another name that counts.
    """

    def __init__(
        self,
        target: Target,
        commit_in: CommitIn,
        place: Path,
        left: list[Blow],
        chance: random.Random,
        *,
        merges: bool = False,
    ) -> None:
        self.merges, self._known = merges, set[Row]()
        self.target, self.commit_in, self.place = target, commit_in, place
        self.left, self.chance = left, chance
        self.done: Counter[Blow] = Counter()
        self.grown = self.seen = 0
        self.expected: list[Row] = []
        self._log, self._record = place / "log.txt", place / "strikes.jsonl"
        self._next_file_s = time.monotonic()
        self._stopped: list[psutil.Process] = []
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Struck:
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._resume_stopped()

    def live(self) -> None:
        """Start a driver that strikes what is next, and kill it after a while."""
        strikes = list(
            itertools.takewhile(lambda kind: kind not in ("driver", "server"), self.left)
        )
        self._record.write_text("")
        chaos = f"seed={self.chance.randrange(1000)},log={self._record}"
        if strikes:
            chaos = f"kinds={'+'.join(strikes)},{chaos}"
        process = self._started("--follow", "--rows-per-second", str(ROWS_PER_S), "--chaos", chaos)
        if strikes:
            self._wait(process, START_S + STRIKE_S * len(strikes), lambda: self._are_done(strikes))
            assert self._are_done(strikes), self.said()
            self._next(len(strikes))
        is_crashed = self.left[0] == "server"
        if is_crashed:
            assert self.target.crash is not None
            self.target.crash()
            self._next()
        self._wait(process, self.chance.uniform(0.0, REST_S if strikes else EARLY_S))
        self._resume_stopped()
        self._stopped = [
            psutil.Process(pid) for pid in self._pids("stop") if psutil.pid_exists(pid)
        ]
        if process.poll() is None:
            process.kill()
            process.wait()
            self._next()
            self._look()
        else:  # without its server, a driver may give up; it says so, and nothing is lost by it
            assert is_crashed, self.said()

    def to_its_end(self) -> None:
        """Let a last driver take what is left."""
        process = self._started()
        assert process.wait(END_S) == 0, self.said()

    def said(self) -> str:
        """Return what the last drivers have said."""
        return self._log.read_text(errors="replace")[-3000:]

    def _next(self, count: int = 1) -> None:
        self.done.update(self.left[:count])
        del self.left[:count]

    def _resume_stopped(self) -> None:
        for stopped in self._stopped:
            with contextlib.suppress(psutil.NoSuchProcess):
                stopped.resume()

    def _are_done(self, strikes: list[Blow]) -> bool:
        return self._record.read_bytes().count(b"\n") == len(strikes)

    def _pids(self, kind: Kind) -> list[int]:
        recorded = map(json.loads, self._record.read_text().splitlines())
        return [one["pid"] for one in recorded if one["kind"] == kind]

    def _look(self) -> None:
        """No row is there twice, none is lost that was there before, and none is unknown."""
        found = self.target.read()
        assert len(found) == len({x for x, _ in found}), self.said()
        assert set(found) <= self._known, self.said()
        assert len(found) >= self.seen, self.said()
        self.grown += len(found) > self.seen
        self.seen = len(found)

    def _wait(
        self,
        process: subprocess.Popen[bytes],
        seconds: float,
        until: Callable[[], bool] = lambda: False,
    ) -> None:
        """Deliver files until then, or until the driver has ended."""
        end_s = time.monotonic() + seconds
        while process.poll() is None and not until() and (now_s := time.monotonic()) < end_s:
            if now_s >= self._next_file_s:
                first = len(self.expected)
                written = write_source(self.place, 1, FILE_ROWS, first=first)
                self.expected += [(x, f"text {x}") for x in written]
                self._known.update(self.expected[first:])
                if self.merges:
                    self._write_again(written[::2])
                self._next_file_s = now_s + FILE_EVERY_S
            time.sleep(min(POLL_S, end_s - now_s))

    def _write_again(self, some: list[int]) -> None:
        lines = [f"{x},text {x} again\n" for x in some]
        path = self.place / "in" / f"again-{some[0]:06d}.csv"
        path.write_text("x,name\n" + "".join(lines))
        make_older(path)
        for x in some:
            self.expected[x] = (x, f"text {x} again")
            self._known.add(self.expected[x])

    def _started(self, *more: str) -> subprocess.Popen[bytes]:
        (self.place / "in").mkdir(exist_ok=True)
        command = [sys.executable, "-m", "epochgate", "ingest", str(self.place / "in")]
        command += [self.target.name, "--checkpoint-dir", str(self.place / "checkpoints")]
        command += ["--master", MASTER, "--parallelism", "2", "--checkpoint-every", "300ms"]
        command += ["--commit-in", self.commit_in, "--heartbeat-timeout", "2s"]
        command += ["--restart", "rate:1000,1m,100ms", *more]
        command += ["--merge-on", "x", "--merge-order", "name"] if self.merges else []
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.target.environment},
            )
        return self._process
