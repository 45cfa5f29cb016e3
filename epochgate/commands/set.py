"""`epochgate set`: the settings of a job that runs, and changes of them."""

from __future__ import annotations

import argparse
import json

from epochgate.commands.assignments import assigned
from epochgate.commands.checkpoints import checkpoints_of
from epochgate.commands.savepoint import DirectoryUnusable
from epochgate.commands.status import aligned
from epochgate.console import say
from epochgate.errors import UsageError
from epochgate.exit_codes import codes_of

HELP = "show and change the settings of a job while it runs"
DESCRIPTION = """\
Change settings of a running job: the rate of `epochgate ingest`, each Setting and
RateLimit of a pipeline. All tasks change over between the same two checkpoints. The
command returns once a completed checkpoint holds the change: no failure undoes it
from then on, and later starts have it. Without NAME=JSON it shows the values."""

EPILOG = f"""\
examples:
  epochgate set table                           the settings of `epochgate ingest incoming table`
  epochgate set table rate=5000                 read at most 5,000 rows a second
  epochgate set table rate=null                 without a limit
  epochgate set checkpoints/orders limit=700 mode='"strict"'
                                                values are JSON

The job is asked by a file beside its checkpoints, so who asks must be the user
that it runs as, or root.
{codes_of("set")}"""


class NoJobRuns(UsageError):
    """No job runs that could be asked."""


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument(
        "place",
        metavar="DIR",
        help="a target of `epochgate ingest`, the working directory beside it, a directory of "
        "checkpoints, or the URL of checkpoints in an object store",
    )
    parser.add_argument("values", nargs="*", metavar="NAME=JSON", help="the changes")
    parser.add_argument(
        "--timeout",
        default="10m",
        metavar="TIME",
        help="how long the job may take, such as 30s or 1h (default: 10m)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")


def run(arguments: argparse.Namespace) -> int:
    """Ask the job. Raises AssignmentRefused, NoJobRuns, DirectoryUnusable, and what `ask_job`
    raises.
    """
    from epochgate.runtime.durations import parse_duration_s
    from epochgate.runtime.pipeline.setting_requests import KIND
    from epochgate.runtime.requests.asking import ask_job

    timeout_s = parse_duration_s(arguments.timeout)
    changes = dict(map(assigned, arguments.values))
    where = checkpoints_of(arguments.place)
    try:
        answer = ask_job(where, {"kind": KIND, "values": changes}, timeout_s=timeout_s)
    except OSError as error:
        raise DirectoryUnusable(where, error) from error
    if answer is None:
        raise NoJobRuns(
            f"no job runs with the checkpoints in {where}: start it, then change its settings"
        )
    values = answer["values"]
    if arguments.json:
        print(json.dumps(values))
    elif not values:
        print("the job has no settings")
    else:
        say(aligned((name, json.dumps(value)) for name, value in values.items()))
    return 0
