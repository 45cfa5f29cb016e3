"""`make soak`: ingestions that are killed over and over, each verified.

Decides which round comes next, and when it was enough; a round is one ingestion over several driver
processes.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from epochgate.benchmarks.object_server import BUCKET, seaweedfs
from epochgate.chaos.flights import write_months
from epochgate.chaos.verification import require_verifier
from epochgate.commands.ingest import require_packages
from epochgate.environment import set_in_environment
from epochgate.errors import EpochgateError, UsageError
from tests.soak.driver import SoakFailed, Tally
from tests.soak.flights import soak_flights
from tests.soak.landing import in_bucket, on_disk, soak_landing_zone

S3 = "s3-"
ROUNDS = ("flights", "s3-parquet", "csv", "s3-jsonl", "parquet", "s3-csv", "jsonl")

DESCRIPTION = """\
Ingest again and again on a local cluster while Python workers and executors are
killed (-9), workers are stopped (SIGSTOP) until they are replaced and then let
go, saves and commits hang for up to three seconds, and the driver itself is killed
and started again; compare every result with the input, row by row, and count the
kills. The first round reads a public data set; then come landing zones of Parquet
files with nested columns, of CSV and of JSON lines, in which files arrive, are
touched, delivered again, rewritten, taken away and brought back while they are
read, with another parallelism at each start; in turns on this machine's disk and,
with target and checkpoints, in an object store that is started for it (SeaweedFS,
s3://). In each landing zone the job ends once by its limits for saves and commits
and is started again. Once in each zone of Parquet files the target is set back;
what the refusals name is given up, and these rows, no others, may be missing."""

EPILOG = """\
examples:
  python -m tests.soak.run                       at least 200 kills, most of an hour
  python -m tests.soak.run --kills 1000 --minutes 120
  python -m tests.soak.run --rounds csv,s3-csv   landing zones of these files only
  python -m tests.soak.run --seed 5 --keep kept  other moments; keep what was written

Exit code 1 if a row is lost or duplicated anywhere, if a hanging store does not end
its job, if a target that was set back is not refused, or if there were too few kills."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line, `sys.argv` when `argv` is None, and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak.run",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--kills", type=int, default=200, metavar="N", help="kill at least N times (default: 200)")
    add(
        "--minutes",
        type=float,
        default=60.0,
        metavar="N",
        help="begin no round after so long (default: 60)",
    )
    add(
        "--rounds",
        type=_rounds,
        default=ROUNDS,
        metavar="A,B,...",
        help=f"what to ingest, in turns (default: {','.join(ROUNDS)})",
    )
    add("--seed", type=int, default=0, metavar="N", help="of all that is random (default: 0)")
    add("--keep", type=Path, metavar="DIR", help="work in this new folder, and leave it there")
    try:
        soak(parser.parse_args(argv))
    except EpochgateError as error:
        print(f"soak: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def _rounds(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if unknown := sorted(set(names).difference(ROUNDS)):
        raise argparse.ArgumentTypeError(f"unknown: {unknown}; choose from {', '.join(ROUNDS)}")
    return names


def soak(arguments: argparse.Namespace) -> None:
    """Soak; SoakFailed when a row is lost or duplicated, or when the kills are too few."""
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
        write_months(folder / "flights")
        with _object_store(folder, arguments.rounds) as store:
            tally = _soaked(folder, arguments, store)
    finally:
        if arguments.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    print(
        f"{tally}; every row that was not given up exactly once in each of {tally.rounds} "
        f"ingestions, {tally.rows:,} rows in all; the machines accept {tally.traces:,} traces of "
        f"drivers and tasks, {tally.events:,} events"
    )
    if tally.kills.total() < arguments.kills:
        raise SoakFailed(
            f"only {tally.kills.total()} of {arguments.kills} kills in {arguments.minutes:g} "
            "minutes; give it more with --minutes"
        )


@contextlib.contextmanager
def _object_store(folder: Path, rounds: Sequence[str]) -> Iterator[dict[str, str]]:
    """The environment of the clients of an object store, which runs until the block's end."""
    if not any(name.startswith(S3) for name in rounds):
        yield {}
        return
    (folder / "seaweedfs").mkdir()
    with seaweedfs(folder / "seaweedfs") as variables, set_in_environment(variables):
        yield variables


def _soaked(folder: Path, arguments: argparse.Namespace, store: Mapping[str, str]) -> Tally:
    """`store`: the environment of the object store's clients; empty where no round needs one."""
    deadline_s = time.monotonic() + arguments.minutes * 60
    tally = Tally()
    while tally.kills.total() < arguments.kills and time.monotonic() < deadline_s:
        name = arguments.rounds[tally.rounds % len(arguments.rounds)]
        tally.rounds += 1
        # Each round has chances of its own, so that one can be repeated without those before.
        chance = random.Random(f"{arguments.seed} {name} {tally.rounds}")
        place = folder / f"round-{tally.rounds}-{name}"
        place.mkdir()
        began_s = time.monotonic()
        if name == "flights":
            verdict = soak_flights(folder / "flights", place, chance, tally)
        else:
            grounds = in_bucket(place, BUCKET, store) if name.startswith(S3) else on_disk(place)
            kind = name.removeprefix(S3)
            verdict = soak_landing_zone(kind, grounds, place, chance, tally)
        tally.rows += verdict.expected
        print(
            f"round {tally.rounds}, {name}: {time.monotonic() - began_s:.0f} s, {tally} so far; "
            f"{verdict}",
            flush=True,
        )
        if not verdict.is_exact():
            raise SoakFailed(f"round {tally.rounds} of seed {arguments.seed}: {verdict}")
        if arguments.keep is None:
            shutil.rmtree(place)
    return tally


if __name__ == "__main__":
    sys.exit(main())
