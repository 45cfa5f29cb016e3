"""`epochgate files`: the files that an ingestion has found, each with its state."""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from epochgate.commands.checkpoints import OutputRefused
from epochgate.commands.status import aligned
from epochgate.console import say
from epochgate.exit_codes import codes_of
from epochgate.runtime.durations import clock

if TYPE_CHECKING:
    from epochgate.spark.ingest.found_files import FoundFile

STATES = ("waiting", "reading", "committed", "left-out", "passed-over", "unrecorded")
HEAD = ("state", "rows", "rejected", "checkpoint", "when", "path")

HELP = "list the files that an ingestion has found, with the state of each"
DESCRIPTION = """\
List each file that an ingestion has found: whether it waits, is being read, is
committed or was left out and why; its rows, its rejected rows, and the checkpoint
that holds the last of them. The command reads the newest checkpoint, while the
job runs or after its end, and changes nothing."""

EPILOG = f"""\
examples:
  epochgate files table                          of `epochgate ingest landing table`
  epochgate files table --state left-out         why each of them was left out
  epochgate files table --name '2026-11-*.csv'   those whose name or path matches
  epochgate files table --since 2026-11-29       committed from then on
  epochgate files s3://jobs/orders --json        a JSON object on each line
  epochgate files table --parquet files.parquet  a table for DuckDB or pandas

{codes_of("files")}"""


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument(
        "place",
        metavar="DIR",
        help="a target of `epochgate ingest`, the working directory beside it, a directory of "
        "checkpoints, a savepoint, or the URL of any of them in an object store",
    )
    parser.add_argument(
        "--state",
        action="append",
        choices=STATES,
        metavar="STATE",
        help=f"those in this state: {', '.join(STATES)}; may be repeated",
    )
    parser.add_argument(
        "--name", metavar="PATTERN", help="those whose name or whole path matches it, as `*.csv`"
    )
    parser.add_argument(
        "--since",
        metavar="TIME",
        help="those that were committed from then on, or that were modified from then on and are "
        "not committed: 2026-11-29 or 2026-11-29T12:30:00+01:00; without a zone it is UTC",
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print a JSON object for each file")
    output.add_argument(
        "--parquet", type=Path, metavar="FILE", help="write a Parquet file instead of text"
    )


def run(arguments: argparse.Namespace) -> int:
    """List them. Raises NothingFound, TimeUnreadable, and what reading checkpoints raises."""
    from epochgate.spark.files.modified import parse_time_ns
    from epochgate.spark.ingest.found_files import files_at

    since = arguments.since
    since_s = None if since is None else parse_time_ns("since", since) / 1e9
    found = [
        file
        for file in files_at(arguments.place)
        if (not arguments.state or file.state in arguments.state)
        and (arguments.name is None or _matches(file.path, arguments.name))
        and (since_s is None or _moment(file) >= since_s)
    ]
    if arguments.parquet is not None:
        _write(found, arguments.parquet)
    elif arguments.json:
        for file in found:
            print(json.dumps(asdict(file)))
    else:
        say(told(found, time.time()))
    return 0


def _matches(path: str, pattern: str) -> bool:
    return any(fnmatch.fnmatchcase(text, pattern) for text in (path, os.path.basename(path)))


def _moment(file: FoundFile) -> float:
    return file.committed_at if file.committed_at is not None else (file.modified_ns or 0) / 1e9


def told(found: Sequence[FoundFile], now: float) -> Iterator[str]:
    """The text, line by line: a table, the reasons, and how many there are in each state."""
    if found:
        yield from aligned([HEAD, *(_row(file, now) for file in found)])
        yield ""
    counted: Counter[str] = Counter(file.state for file in found)
    rows = sum(file.rows or 0 for file in found)
    states = ", ".join(f"{counted[state]:,} {state}" for state in STATES if counted[state])
    yield f"{len(found):,} files{': ' * bool(states)}{states}; {rows:,} rows"


def _row(file: FoundFile, now: float) -> tuple[str, ...]:
    again = "" if file.delivery == 1 else f" (content {file.delivery})"
    return (
        file.state,
        "-" if file.rows is None else f"{file.rows:,}",
        "-" if file.rows_rejected is None else f"{file.rows_rejected:,}",
        "-" if file.checkpoint_id is None else str(file.checkpoint_id),
        "-" if file.committed_at is None else clock(file.committed_at, now),
        f"{file.path}{again}{f': {file.reason}' if file.reason else ''}",
    )


def _write(found: Sequence[FoundFile], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {
        "path": pa.string(),
        "delivery": pa.int32(),
        "state": pa.string(),
        "size_bytes": pa.int64(),
        "modified": pa.timestamp("us", "UTC"),
        "rows": pa.int64(),
        "rows_rejected": pa.int64(),
        "checkpoint_id": pa.int64(),
        "committed_at": pa.timestamp("us", "UTC"),
        "reason": pa.string(),
    }
    rows = []
    for file in found:
        values = asdict(file)
        modified, at = values.pop("modified_ns"), values.pop("committed_at")
        values["modified"] = None if modified is None else modified // 1_000
        values["committed_at"] = None if at is None else int(at * 1e6)
        rows.append(values)
    try:
        pq.write_table(pa.Table.from_pylist(rows, pa.schema(columns)), path)
    except OSError as error:
        raise OutputRefused(f"cannot write {str(path)!r}: {error.strerror or error}") from error
