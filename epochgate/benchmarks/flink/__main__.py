"""`make bench-flink`: measures both systems in turn, prints the tables, and writes them into
docs/flink.md.
"""

from __future__ import annotations

import argparse
import sys
from datetime import date
from pathlib import Path

from epochgate.benchmarks import machine, page
from epochgate.benchmarks.asked import at_least_one
from epochgate.benchmarks.flink.measuring import ROUNDS, SUBTASKS, Effort, measure
from epochgate.benchmarks.flink.tables import QUESTIONS, tables
from epochgate.console import note
from epochgate.errors import EpochgateError

PAGE = Path("docs/flink.md")


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m epochgate.benchmarks.flink",
        description="Measure the same coordinator job on Flink 2.3.0 and on epochgate, in turn.",
    )
    parser.add_argument("--rounds", type=at_least_one, default=ROUNDS, help="default: %(default)s")
    parser.add_argument(
        "--subtasks", type=at_least_one, nargs="+", default=SUBTASKS, help="default: 4 100 500"
    )
    parser.add_argument("--write", action="store_true", help=f"write the figures into ./{PAGE}")
    asked = parser.parse_args(arguments)
    measured_on = machine.description(date.today())
    effort = Effort()
    try:
        found = measure(tuple(asked.subtasks), asked.rounds, effort, note)
        sections = {
            table.question: page.section(table, measured_on)
            for table in tables(found, asked.rounds, effort)
        }
        print("\n\n".join(sections.values()), flush=True)
        if asked.write:
            page.write(PAGE, sections, QUESTIONS)
    except EpochgateError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
