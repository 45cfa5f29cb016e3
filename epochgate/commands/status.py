"""`epochgate status`: shows the state of a job, running or ended, from the history beside its
checkpoints.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from epochgate.commands.configuration import is_configuration, jobs_in
from epochgate.console import say
from epochgate.runtime.durations import clock, span

if TYPE_CHECKING:
    from epochgate.runtime.observing.run_summary import RunSummary
    from epochgate.runtime.observing.status import RunStatus

from epochgate.exit_codes import codes_of

HELP = "show the state of a job, running or ended"
DESCRIPTION = """\
Show the state of a job, while it runs or after its end: files and rows done,
checkpoints with the duration of each subtask, failures and restarts. The command
reads the history beside the job's checkpoints. The lock of their directory shows
whether a job runs or was killed; an object store has none."""

EPILOG = f"""\
examples:
  epochgate status table                 of `epochgate ingest incoming table`
  epochgate status checkpoints/orders    of a job of your own, by its checkpoints
  epochgate status s3://jobs/orders      the same in an object store
  epochgate status table --json          one JSON object, for programs
  epochgate status jobs.toml             each job of a file of `ingest --config`

{codes_of("status")}"""

EARLIER_SHOWN = 5
CHECKPOINTS_SHOWN = 5
FAILURES_SHOWN = 5


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument(
        "directory",
        metavar="DIR",
        help="a target of `epochgate ingest`, the working directory beside it, a directory of "
        "checkpoints, or the URL of a target or checkpoints in an object store; or a file of "
        "`ingest --config`, for each of its jobs",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")


def run(arguments: argparse.Namespace) -> int:
    """Show it; 1 when it has failed, or was canceled or killed."""
    from epochgate.runtime.observing.status import checkpoints_in, status_of

    if is_configuration(arguments.directory):
        return _of_all(arguments)
    status = status_of(checkpoints_in(arguments.directory), now=time.time())
    if arguments.json:
        print(json.dumps(status.to_json()))
    else:
        say(told(status))
    return 0 if status.is_well() else 1


def _of_all(arguments: argparse.Namespace) -> int:
    """Show each job of a file of options; 1 when one of them is not well."""
    from epochgate.runtime.observing.status import NothingToSee, checkpoints_in, status_of

    now, shown, is_well = time.time(), [], True
    for target, place in jobs_in(arguments.directory).items():
        try:
            status = status_of(checkpoints_in(place), now=now)
        except NothingToSee as error:
            shown.append({"target": target, "state": "not begun", "reason": str(error)})
            lines: Iterable[str] = [f"not begun: {error}"]
        else:
            is_well = is_well and status.is_well()
            shown.append({"target": target, **status.to_json()})
            lines = told(status)
        if not arguments.json:
            say([f"{target}:", *(f"  {line}".rstrip() for line in lines), ""])
    if arguments.json:
        print(json.dumps(shown))
    return 0 if is_well else 1


def told(status: RunStatus) -> Iterator[str]:
    """The text, line by line."""
    from epochgate.jobs.totals import totals

    run = status.run
    if run is None:
        yield from _told_without_run(status)
    else:
        yield from _told_head(status, run)
        yield from aligned(totals(run, status.at))
        yield from _told_checkpoints(run, status.at)
        yield from _told_failures(run, status.at)
    if status.earlier:
        yield ""
        yield "earlier runs"
        yield from aligned(
            (clock(one.started_at, status.at), *_earlier(one))
            for one in status.earlier[:EARLIER_SHOWN]
        )


def _told_without_run(status: RunStatus) -> Iterator[str]:
    if status.state == "starting":
        who = "another driver" if status.holder is None else status.holder.claim
        yield f"starting: {who} holds the checkpoints; there is no history yet"
    else:
        yield (
            f"{status.directory} has no history: no job has begun there, or it kept none; if its "
            "checkpoints are elsewhere (--checkpoint-dir), name that place"
        )


def _told_head(status: RunStatus, run: RunSummary) -> Iterator[str]:
    from epochgate.runtime.api.reports import one_line

    until = status.at if run.ended_at is None else run.ended_at
    if status.state == "killed":
        until = run.last_at
    why = f": {one_line(run.reason)}" if run.reason else ""
    yield f"{run.job_id}: {status.state} after {span(until - run.started_at)}{why}"
    whence = f"checkpoint {run.resumed_from}" if run.resumed_from else "the beginning"
    yield (
        f"started {clock(run.started_at, status.at)} from {whence}, {run.parallelism} subtasks, "
        f"driver {run.pid} on {run.host}"
    )
    if status.state == "killed":
        goes_on = f"checkpoint {run.resumes_from}" if run.resumes_from else "the beginning"
        yield (
            f"its driver died {span(status.at - run.last_at)} ago; the next start of the job "
            f"begins from {goes_on}"
        )
    elif run.ended_at is None:
        lives = "; whether its driver lives, an object store does not tell"
        known = "" if status.holder is not None else lives
        yield f"last event {span(status.at - run.last_at)} ago{known}"


def _told_checkpoints(run: RunSummary, now: float) -> Iterator[str]:
    if not run.checkpoints:
        return
    from epochgate.runtime.api.reports import size

    yield ""
    yield from aligned(
        [
            ("checkpoint", "when", "duration", "stored", ""),
            *(
                (
                    str(one["checkpoint_id"]),
                    clock(one["at"], now),
                    f"{one['duration_s']:.2f} s",
                    size(one["stored_bytes"]) if one["outcome"] == "completed" else "-",
                    "" if one["outcome"] == "completed" else f"{one['outcome']}: {one['reason']}",
                )
                for one in run.checkpoints[-CHECKPOINTS_SHOWN:]
            ),
        ]
    )
    last = run.last_checkpoint
    if last is None:
        return
    yield ""
    taken: dict[str, Any] = last["subtasks_s"]
    yield from aligned(
        [
            ("subtask", f"its part of checkpoint {last['checkpoint_id']}", "attempt"),
            *(
                (subtask, f"{taken[subtask]:.3f} s", str(run.attempts.get(subtask, 0)))
                for subtask in sorted(taken, key=int)
            ),
        ]
    )
    if len(taken) < run.parallelism:
        yield f"the slowest {len(taken)} of {run.parallelism}"


def _told_failures(run: RunSummary, now: float) -> Iterator[str]:
    if not run.failures:
        return
    yield ""
    yield "failures"
    for one in run.failures[-FAILURES_SHOWN:]:
        attempt = "" if one["attempt"] is None else f" in attempt {one['attempt']}"
        yield f"  {clock(one['at'], now)}  {one['who']}{attempt}: {one['reason']}"


def _earlier(run: RunSummary) -> tuple[str, str]:
    state = "killed" if run.ended_at is None else run.state
    return state, (
        f"after {span((run.ended_at or run.last_at) - run.started_at)}, "
        f"{run.checkpoints_completed:,} checkpoints, "
        f"{run.committed.get('rows_committed', 0):,} rows committed"
    )


def aligned(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Rows of cells, each column as wide as its widest cell.

    >>> list(aligned([("a", "b"), ("long", "c")]))
    ['a     b', 'long  c']
    """
    kept = list(rows)
    widths = [max(map(len, column)) for column in zip(*kept, strict=True)]
    for row in kept:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()
