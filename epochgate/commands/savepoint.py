"""`epochgate savepoint`: a checkpoint of a job that stays, from which it can be started."""

from __future__ import annotations

import argparse
import json
import os
from typing import TYPE_CHECKING

from epochgate.commands.checkpoints import checkpoints_of
from epochgate.commands.status import aligned
from epochgate.console import say
from epochgate.errors import EpochgateError
from epochgate.exit_codes import codes_of

if TYPE_CHECKING:
    from epochgate.runtime.savepoints.savepoint import Savepoint

HELP = "make a savepoint of a job, from which a job can start"
DESCRIPTION = """\
Make a savepoint: a copy of a checkpoint with all files that it needs, which no
job removes. A running job takes a checkpoint for it and continues. Of an ended
job, the newest checkpoint is copied."""

EPILOG = f"""\
examples:
  epochgate savepoint table                     of `epochgate ingest incoming table`
  epochgate savepoint checkpoints/orders --to /backup/orders-before-upgrade
  epochgate savepoint s3://jobs/orders --to s3://jobs/orders.savepoints/monday
  epochgate checkpoints show /backup/orders-before-upgrade     what it holds
  epochgate ingest incoming table --from-savepoint PATH --checkpoint-dir NEW
                                                start from it (docs/savepoints.md)

The job is asked by a file beside its checkpoints, so who asks must be the user
that it runs as, or root.
{codes_of("savepoint")}"""


class DirectoryUnusable(EpochgateError):
    """A request could not be written, or an answer not be read: directory, reason."""

    def __str__(self) -> str:
        return (
            f"cannot ask the job with the checkpoints in {self.args[0]}: {self.args[1]}. Who asks "
            "must be able to write there: ask as the user that the job runs as"
        )


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument(
        "place",
        metavar="DIR",
        help="a target of `epochgate ingest`, the working directory beside it, a directory of "
        "checkpoints, or the URL of checkpoints in an object store",
    )
    parser.add_argument(
        "--to",
        metavar="PATH",
        help="a directory or URL that does not exist yet (default: one in DIR.savepoints)",
    )
    parser.add_argument(
        "--checkpoint",
        type=int,
        metavar="ID",
        help="copy this retained checkpoint (epochgate checkpoints list) instead of taking a new "
        "one",
    )
    parser.add_argument(
        "--timeout",
        default="10m",
        metavar="TIME",
        help="how long the job may take, such as 30s or 1h (default: 10m)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")


def run(arguments: argparse.Namespace) -> int:
    """Ask for it, and say where it is."""
    from epochgate.runtime.api.reports import size
    from epochgate.runtime.durations import parse_duration_s
    from epochgate.runtime.objects.client import is_url
    from epochgate.runtime.savepoints.asking import ask_savepoint, copy_retained

    timeout_s = parse_duration_s(arguments.timeout)
    place, to = arguments.place, arguments.to
    where = checkpoints_of(place)
    if to is not None and not is_url(to):
        to = os.path.abspath(to)
    try:
        if arguments.checkpoint is not None:
            savepoint = copy_retained(where, arguments.checkpoint, to)
            is_of_running_job = False
        else:
            savepoint, is_of_running_job = ask_savepoint(where, to, timeout_s=timeout_s)
    except OSError as error:
        raise DirectoryUnusable(where, error) from error
    if arguments.json:
        print(json.dumps({**savepoint.to_json(), "is_of_running_job": is_of_running_job}))
        return 0
    then = "the job goes on" if is_of_running_job else "copied, since the job has ended"
    if arguments.checkpoint is not None:
        then = "copied"
    told = [
        ("savepoint", savepoint.path),
        (
            "holds",
            f"checkpoint {savepoint.checkpoint_id} of job {savepoint.job_id}, "
            f"{size(savepoint.size_bytes)}; {then}",
        ),
        ("start from it", _way_on(savepoint)),
    ]
    say(aligned(told))
    return 0


def _way_on(savepoint: Savepoint) -> str:
    """Return what to give to the next start, by a program or by `epochgate ingest`."""
    if savepoint.job_id.startswith("ingest-"):
        return f"--from-savepoint {savepoint.path} --checkpoint-dir NEW"
    return f"from_savepoint={savepoint.path!r}, with a new directory of checkpoints"
