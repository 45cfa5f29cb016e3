"""`epochgate certify-sink`: strikes a sink with every failure at every call and every write, and
says which guarantee does not hold.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epochgate.commands.named_class import named_class
from epochgate.console import is_interactive, progress
from epochgate.errors import UsageError
from epochgate.exit_codes import codes_of

if TYPE_CHECKING:
    from epochgate.testing import SinkCase

HELP = "test a sink of your own with errors, lost answers, deaths and zombies at every write"
DESCRIPTION = (
    "Run a sink in a simulated job, once for each failure at each call and write. "
    "Print which guarantees hold, and the shortest schedule that breaks each other one."
)
EPILOG = f"""\
examples:
  epochgate certify-sink my_package.my_case:Case
                                         inject every failure at every call and write
  epochgate certify-sink my_case:Case --first
                                         stop at the first guarantee that does not hold
  epochgate certify-sink my_case:Case --only 1f0a93c2
                                         play one schedule again, by the token of a report
  epochgate certify-sink my_case:Case --allow-leftovers --json certificate.json
                                         orphans are only a warning; write the report to a file
  epochgate certify-sink my_case:Case --junit sink.xml
                                         a test case for each fault point, for a CI server

The case makes the sink, and reads the target as a reader does: see docs/certifying.md.

{codes_of("certify-sink")}"""


PROGRESS_EVERY_S = 30.0


class NoSinkCase(UsageError):
    """The object that is named is no case of a sink."""


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add = parser.add_argument
    add("case", metavar="MODULE:CASE", help="a SinkCase, or a function that returns one")
    add("--first", action="store_true", help="stop at the first guarantee that does not hold")
    add(
        "--allow-leftovers",
        action="store_true",
        help="staged data that outlives the job is a warning, not a failure",
    )
    add(
        "--stride",
        type=_stride,
        default=1,
        metavar="N",
        help="play every N-th schedule only (default: 1)",
    )
    add(
        "--only",
        default="",
        metavar="TOKEN",
        help="play one schedule again, by the token that a report shows",
    )
    add("--json", type=Path, metavar="FILE", help="write the report as JSON; - is stdout")
    add("--junit", type=Path, metavar="FILE", help="write the report as JUnit XML, for a CI server")


def _stride(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Certify, and return 1 when a guarantee does not hold."""
    from epochgate.runtime.testing.certification import certify, report, to_json, to_junit

    case = case_named(arguments.case)
    with progress("schedules") as bars:
        task = bars.add_task(arguments.case, total=None)
        certificate = certify(
            case,
            allows_leftovers=arguments.allow_leftovers,
            first_only=arguments.first,
            stride=arguments.stride,
            only=arguments.only,
            progress=_told(lambda done, total: bars.update(task, completed=done, total=total)),
        )
    if arguments.json is not None:
        text = json.dumps(to_json(certificate), indent=2)
        if str(arguments.json) == "-":
            print(text)
        else:
            arguments.json.write_text(text + "\n", encoding="utf-8")
    if arguments.junit is not None:
        arguments.junit.write_text(to_junit(certificate), encoding="utf-8")
    print(report(certificate), file=sys.stderr if str(arguments.json) == "-" else sys.stdout)
    return 0 if certificate.has_passed else 1


def _told(show: Callable[[int, int], None]) -> Callable[[int, int], None]:
    """Show progress, and without a terminal write a line of it now and then, as for a CI server."""
    last_s, is_shown = time.monotonic(), is_interactive()

    def tell(done: int, total: int) -> None:
        nonlocal last_s
        show(done, total)
        if not is_shown and time.monotonic() - last_s >= PROGRESS_EVERY_S:
            last_s = time.monotonic()
            print(f"{done:,} of {total:,} schedules", file=sys.stderr, flush=True)

    return tell


def case_named(name: str) -> SinkCase:
    """Import and make the case that is named as module:Case. Raises NoSinkCase."""
    from epochgate.testing import SinkCase

    module_name, attribute, named = named_class(name, NoSinkCase)
    case: Any = named
    if callable(named) and not isinstance(named, SinkCase):
        try:
            case = named()
        except TypeError as error:
            raise NoSinkCase(
                f"{attribute!r} in module {module_name!r} cannot be made without arguments: {error}"
            ) from error
    if not isinstance(case, SinkCase):
        raise NoSinkCase(
            f"{attribute!r} in module {module_name!r} is no SinkCase; derive a class from "
            "epochgate.testing.SinkCase with the methods `sink` and `rows`, or name a function "
            "that returns one"
        )
    return case
