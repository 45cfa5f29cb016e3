"""`epochgate bench`: measures, prints the figures, and writes them into docs/benchmarks.md."""

from __future__ import annotations

import argparse
from datetime import date
from importlib import import_module
from pathlib import Path

from epochgate.exit_codes import codes_of

PAGE = Path("docs/benchmarks.md")
QUESTIONS = (
    "ingest",
    "crash",
    "known-files",
    "known-objects",
    "sinks",
    "recovery",
    "events",
    "scaling",
    "listeners",
    "journal",
    "streaming",
    "steering",
    "wire",
    "checker",
    "checker-reduction",
    "checker-start",
    "checker-spark",
)
"""In the order of the page; the module of each is `epochgate.benchmarks.<name>`, with `_` for `-`.
"""

HELP = "measure throughput, recovery and checkpoints"
DESCRIPTION = """\
Measure on this machine: the ingestion beside what else brings files into files
with Spark (ingest), what a crash of the driver costs them (crash), what it
costs to know a million files (known-files), what finding new objects costs
beside many known ones (known-objects), what a checkpoint and its commit cost,
by sink (sinks), how soon killed workers and executors are replaced
(recovery), control events per second through the gateways (events), how the
driver's work grows with the number of subtasks (scaling), what the log and the
history cost (listeners), what a journal costs (journal), what a batch of a
streaming query costs by sink (streaming) and what a control adds to it
(steering), what an encrypted wire costs (wire), how fast the checker is beside
Spin (checker), what reducing the orders of steps saves both (checker-reduction),
how soon it answers (checker-start) and what Spark adds to a search
(checker-spark). About half an hour for all; what else runs on the machine shows
in the figures."""

EPILOG = f"""\
examples:
  epochgate bench                    measure everything and print it
  epochgate bench events scaling     only these two, which need no Java
  epochgate bench sinks              five minutes; SeaweedFS and PostgreSQL where installed
  epochgate bench --write            also put the figures into ./docs/benchmarks.md

{codes_of("bench")}"""


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument(
        "questions",
        nargs="*",
        type=question,
        metavar="QUESTION",
        help=f"{', '.join(QUESTIONS)}; all when none is given",
    )
    parser.add_argument(
        "--write", action="store_true", help=f"write the figures into ./{PAGE}, between its marks"
    )


def question(text: str) -> str:
    """Return the name of a question; ArgumentTypeError for an unknown one."""
    if text not in QUESTIONS:
        raise argparse.ArgumentTypeError(
            f"unknown question {text!r}; choose from {', '.join(QUESTIONS)}"
        )
    return text


def run(arguments: argparse.Namespace) -> int:
    """Measure one question after the other, and print each as soon as it is answered."""
    from epochgate.benchmarks import machine, page
    from epochgate.console import note

    for name in [name for name in QUESTIONS if name in (arguments.questions or QUESTIONS)]:
        measured_on = machine.description(date.today())
        note(f"[bold]{name}[/bold]")
        table = import_module(f"epochgate.benchmarks.{name.replace('-', '_')}").measure(note=note)
        section = page.section(table, measured_on)
        print(f"{section}\n", flush=True)
        if arguments.write:
            page.write(PAGE, {name: section}, QUESTIONS)
    return 0
