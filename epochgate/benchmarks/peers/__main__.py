"""`make bench-ingest-peers`: measures all loaders in turn, prints the tables, and writes them into
docs/comparison-ingest.md.
"""

from __future__ import annotations

import argparse
import sys
from datetime import date
from pathlib import Path

from epochgate.benchmarks import machine, page
from epochgate.benchmarks.asked import at_least_one, not_negative
from epochgate.benchmarks.peers import tables
from epochgate.benchmarks.peers.installation import versions
from epochgate.benchmarks.peers.loaders import LOADERS
from epochgate.benchmarks.peers.measuring import Effort, measure
from epochgate.console import note
from epochgate.errors import EpochgateError

PAGE = Path("docs/comparison-ingest.md")


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    names = tuple(dict.fromkeys(one.name for one in LOADERS))
    parser = argparse.ArgumentParser(
        prog="python -m epochgate.benchmarks.peers",
        description="Load the same files by epochgate and by other tools, in turn, and kill each.",
    )
    for flag, default in Effort._field_defaults.items():
        kind = not_negative if flag == "kills" else at_least_one
        told = f"--{flag.replace('_', '-')}"
        parser.add_argument(told, type=kind, default=default, help="default: %(default)s")
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="default: all")
    parser.add_argument("--write", action="store_true", help=f"write the figures into ./{PAGE}")
    asked = parser.parse_args(arguments)
    effort = Effort(**{name: getattr(asked, name) for name in Effort._fields})
    try:
        told = ", ".join(f"{name} {version}" for name, version in versions().items())
        measured_on = f"{machine.description(date.today())}; {told}"
        found = measure(effort, tuple(asked.only), note)
        made = [tables.speed(found, effort)]
        if effort.kills:
            made.append(tables.kills(found, effort))
        sections = {one.question: page.section(one, measured_on) for one in made}
        print("\n\n".join(sections.values()), flush=True)
        if asked.write:
            page.write(PAGE, sections, tables.QUESTIONS)
    except EpochgateError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
