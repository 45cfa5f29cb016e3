"""`epochgate unread`: what lies in a source and is not read, and why."""

from __future__ import annotations

import argparse
import json
from itertools import groupby

from epochgate.console import say
from epochgate.exit_codes import codes_of

HELP = "list what lies in a source and is not read"
DESCRIPTION = """\
List what lies below a source of `epochgate ingest` and is not read, by reason.
No file is opened. Files that cannot be read although they should be, and rests
of files, are in the list of bad files instead; `epochgate ingest` names it."""

EPILOG = f"""\
examples:
  epochgate unread landing
  epochgate unread 'landing/*.csv'
  epochgate unread s3://bucket/landing --json

{codes_of("unread")}"""


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument(
        "source", metavar="SOURCE", help="a directory, a file, a pattern in quotes, or a URL"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def run(arguments: argparse.Namespace) -> int:
    """List the paths; raises UsageError, SourceMissing, SourceUnreadable or ObjectStoreUnusable."""
    from epochgate.runtime.objects.errors import ObjectStoreError, ObjectStoreUnusable
    from epochgate.spark.files.access import FileAccess
    from epochgate.spark.files.finding import ADVICE

    try:
        unread = FileAccess().unread(arguments.source)
    except ObjectStoreError as error:
        raise ObjectStoreUnusable(arguments.source, error.strerror) from error
    if arguments.json:
        print(json.dumps([{"path": path, "reason": reason} for path, reason in unread], indent=2))
        return 0
    if not unread:
        say(["all files are read"])
    by_reason = sorted(unread, key=lambda one: (one[1], one[0]))
    for reason, paths in groupby(by_reason, key=lambda one: one[1]):
        say([f"{reason}: {ADVICE[reason]}", *(f"  {path}" for path, _ in paths)])
    return 0
