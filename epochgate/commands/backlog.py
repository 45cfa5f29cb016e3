"""`epochgate backlog`: what an ingestion has found and not committed, and how long that takes."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from epochgate.commands.status import aligned
from epochgate.console import say
from epochgate.exit_codes import codes_of

if TYPE_CHECKING:
    from epochgate.spark.ingest.backlog import Backlog

HELP = "show what an ingestion has found and not yet committed"
DESCRIPTION = """\
Show how many files an ingestion has found and not committed, as of its newest
checkpoint, while it runs or after its end: bytes, rows as far as they can be
estimated, the oldest file, the rate of late and the time that the rest takes.
`epochgate files` lists the files themselves."""

EPILOG = f"""\
examples:
  epochgate backlog table              of `epochgate ingest landing table`
  epochgate backlog s3://jobs/orders   by its checkpoints in an object store
  epochgate backlog table --json       one JSON object, for programs

{codes_of("backlog")}"""


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument(
        "place",
        metavar="DIR",
        help="a target of `epochgate ingest`, the working directory beside it, a directory of "
        "checkpoints, or the URL of any of them in an object store",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")


def run(arguments: argparse.Namespace) -> int:
    """Show it. Raises what `backlog_at` raises."""
    from epochgate.spark.ingest.backlog import backlog_at

    backlog = backlog_at(arguments.place)
    if arguments.json:
        print(json.dumps(asdict(backlog)))
    else:
        say(told(backlog))
    return 0


def told(backlog: Backlog) -> Iterator[str]:
    """The text, line by line."""
    from epochgate.runtime.api.reports import size
    from epochgate.runtime.durations import span

    yield (
        f"{backlog.job_id}: {backlog.state}; as of checkpoint {backlog.checkpoint_id}, "
        f"{span(backlog.age_s)} ago"
    )
    rate, seconds = backlog.bytes_per_s, backlog.seconds_left
    rows = "not known" if backlog.rows is None else f"some {backlog.rows:,}"
    oldest = "-"
    if backlog.oldest_s is not None:
        oldest = f"modified {span(backlog.oldest_s)} ago: {backlog.oldest_path}"
    yield from aligned(
        [
            ("files", f"{backlog.files_waiting:,} waiting, {backlog.files_reading:,} being read"),
            ("bytes", size(backlog.bytes_left)),
            ("rows", rows if backlog.bytes_left else "0"),
            ("oldest", oldest),
            ("rate", "not known" if rate is None else f"{size(int(rate))} a second"),
            ("time left", "not known" if seconds is None else span(seconds)),
        ]
    )
