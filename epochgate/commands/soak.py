"""`epochgate soak`, which is `make soak`: ingestions that are killed over and over, each verified.

Decides when drivers are killed, and when it was enough. Each ingestion is `epochgate ingest` in a
process of its own, which kills its workers and executors itself; this process kills that one (-9)
at random moments and starts it again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from epochgate.errors import NegativeResult, UsageError

MASTER = "local-cluster[2,2,1024]"
ROWS_PER_S = 6_000
CHAOS_PER_RUN = 60
DRIVER_KILLS_PER_ROUND = 2
DRIVER_LIFE_S = (12.0, 40.0)
RUN_S_MAX = 600.0
LOG_LINES_SHOWN = 15

DESCRIPTION = f"""\
Ingest the flights data set again and again on {MASTER} while Python
workers and executors are killed (-9), workers are stopped (SIGSTOP) until they
are replaced and then let go, and the driver itself is killed and started again;
compare every result with the input, row by row, and count the kills."""

EPILOG = """\
examples:
  epochgate soak                    at least 100 kills, some ten minutes
  epochgate soak --kills 1000 --minutes 120
  epochgate soak --seed 5 --keep kept      other moments; keep what was written

Exit code 1 if a row is lost or duplicated anywhere, or if there were too few kills."""


class SoakFailed(NegativeResult):
    """A row was lost or duplicated, a job failed, or the kills did not come about."""


@dataclass
class Tally:
    """What was done so far."""

    rounds: int = 0
    rows: int = 0
    kills: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        names = {"worker": "workers", "executor": "executors", "stop": "workers stopped"}
        parts = [f"{self.kills[kind]} {name}" for kind, name in names.items()]
        return f"{self.kills.total()} kills ({', '.join(parts)}, {self.kills['driver']} drivers)"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "soak",
        help="the long run: at least a hundred kills, each ingestion verified",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--kills", type=int, default=100, metavar="N", help="kill at least N times (default: 100)")
    add(
        "--minutes",
        type=float,
        default=30.0,
        metavar="N",
        help="begin no ingestion after so long (default: 30)",
    )
    add("--seed", type=int, default=0, metavar="N", help="of all that is random (default: 0)")
    add("--keep", type=Path, metavar="DIR", help="work in this new folder, and leave it there")


def run(arguments: argparse.Namespace) -> int:
    """Soak; SoakFailed when a row is lost or duplicated, or when the kills are too few."""
    from epochgate.commands.ingest import require_packages
    from epochgate.spark.ingest.flights import write_months
    from epochgate.spark.ingest.verification import require_verifier

    if arguments.kills < 1 or arguments.minutes <= 0:
        raise UsageError("--kills must be 1 or more, and --minutes above 0")
    require_packages()
    require_verifier()
    if arguments.keep is None:
        folder = Path(tempfile.mkdtemp(prefix="epochgate-soak-"))
    else:
        folder = arguments.keep.absolute()
        if folder.exists():
            raise UsageError(f"--keep {folder}: it exists already; name a new folder")
        folder.mkdir(parents=True)
    try:
        write_months(folder / "source")
        tally = _soaked(folder, arguments)
    finally:
        if arguments.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    print(
        f"{tally}; every row exactly once in each of {tally.rounds} ingestions, "
        f"{tally.rows:,} rows in all"
    )
    if tally.kills.total() < arguments.kills:
        raise SoakFailed(
            f"only {tally.kills.total()} of {arguments.kills} kills in {arguments.minutes:g} "
            "minutes; give it more with --minutes"
        )
    return 0


def _soaked(folder: Path, arguments: argparse.Namespace) -> Tally:
    from epochgate.spark.ingest.verification import verify_csv

    chance = random.Random(arguments.seed)
    deadline_s = time.monotonic() + arguments.minutes * 60
    tally = Tally()
    while tally.kills.total() < arguments.kills and time.monotonic() < deadline_s:
        tally.rounds += 1
        place = folder / f"round-{tally.rounds}"
        place.mkdir()
        began_s = time.monotonic()
        _round(folder / "source", place, chance, tally)
        verdict = verify_csv(folder / "source" / "*.csv", place / "target")
        tally.rows += verdict.expected
        print(
            f"round {tally.rounds}: {time.monotonic() - began_s:.0f} s, {tally} so far; {verdict}",
            flush=True,
        )
        if not verdict.is_exact():
            raise SoakFailed(f"round {tally.rounds} of seed {arguments.seed}: {verdict}")
        if arguments.keep is None:
            shutil.rmtree(place)
    return tally


def _round(source: Path, place: Path, chance: random.Random, tally: Tally) -> None:
    """Ingest once, over as many driver processes as it takes."""
    kills, log = place / "kills.jsonl", place / "log.txt"
    kills.touch()
    for start in range(DRIVER_KILLS_PER_ROUND + 1):
        is_last = start == DRIVER_KILLS_PER_ROUND
        life_s = RUN_S_MAX if is_last else chance.uniform(*DRIVER_LIFE_S)
        code = _driver(source, place, log, kills, chance.randrange(1 << 30), life_s)
        if code is None and is_last:
            raise SoakFailed(f"the job did not end in {RUN_S_MAX:g} s; it said:\n{_end_of(log)}")
        if code is None:
            tally.kills["driver"] += 1
        elif code:
            raise SoakFailed(f"the job ended with exit code {code}; it said:\n{_end_of(log)}")
        else:
            break
    tally.kills.update(json.loads(line)["kind"] for line in kills.read_text().splitlines())


def _driver(
    source: Path, place: Path, log: Path, kills: Path, seed: int, life_s: float
) -> int | None:
    """Run `epochgate ingest`; its exit code, or None if it was killed after `life_s`."""
    command = [sys.executable, "-m", "epochgate", "ingest", str(source), str(place / "target")]
    command += ["--master", MASTER, "--rows-per-second", str(ROWS_PER_S)]
    command += ["--checkpoint-every", "300ms", "--heartbeat-timeout", "3s"]
    command += ["--restart", "rate:1000,1m,100ms", "--chaos", str(CHAOS_PER_RUN), "--chaos-stops"]
    command += ["--chaos-log", str(kills), "--seed", str(seed)]
    # What a killed driver leaves behind goes with the round's folder.
    temporary = place / "tmp"
    temporary.mkdir(exist_ok=True)
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with log.open("a") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
        )
        try:
            return process.wait(life_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            process.kill()
            process.wait()


def _end_of(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:])
