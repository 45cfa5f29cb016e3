"""`epochgate draw`: diagrams and transition tables of machines, and whether the committed ones are
fresh.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from epochgate.errors import UsageError

FORMATS = ("svg", "png", "dot", "mermaid", "table")
OUTPUT = Path("diagrams/generated")

EPILOG = """\
examples:
  epochgate draw                          all machines, all formats, into diagrams/generated
  epochgate draw gateway -o shown         one machine, into the folder shown
  epochgate draw my_package.door:Door -o shown --format svg,table
                                          a machine of your own
  epochgate draw --check                  whether the committed set is fresh (exit code 1 if not)
  epochgate draw --list                   the machines that epochgate is made of"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "draw",
        help="draw the state machines: diagrams and transition tables",
        description="Draw state machines as diagrams and transition tables, from their rows.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "machines",
        nargs="*",
        metavar="MACHINE",
        help="a name that --list shows, or module:Class; all of epochgate's when none is given",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=OUTPUT,
        metavar="DIR",
        help=f"the folder to write to (default: {OUTPUT})",
    )
    parser.add_argument(
        "--format",
        type=formats,
        default=FORMATS,
        metavar="LIST",
        help=f"comma-separated: {', '.join(FORMATS)} (default: all)",
    )
    parser.add_argument("--check", action="store_true", help="write nothing; name what is stale")
    parser.add_argument("--list", action="store_true", help="list the machines and stop")


def formats(text: str) -> tuple[str, ...]:
    """Return the formats that a comma-separated list names; ArgumentTypeError for an unknown
    one.
    """
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if unknown := [name for name in names if name not in FORMATS]:
        raise argparse.ArgumentTypeError(
            f"unknown format {', '.join(unknown)}; choose from {', '.join(FORMATS)}"
        )
    if not names:
        raise argparse.ArgumentTypeError(f"no format given; choose from {', '.join(FORMATS)}")
    return names


def run(arguments: argparse.Namespace) -> int:
    """Draw, check or list; returns 1 when --check finds something stale."""
    raise UsageError("drawing is not here yet")
