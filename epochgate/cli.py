"""The command line: finds the command, runs it, and turns its outcome into an exit code.

Each command is a module under `epochgate.commands`, listed in `COMMANDS`, with three texts and two
functions: `declare` declares its arguments, and `run` does the work and returns the exit code. The
modules are imported to list the commands, so they import whatever is heavy inside `run`. Exit
codes: 0 success, 1 a negative result or a job that failed, 2 misuse, 130 interrupted. An error that
epochgate raises on purpose is one message on stderr; anything else is a fault of epochgate and
keeps its traceback.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NoReturn, Protocol, cast

from epochgate import __version__, proving
from epochgate.console import printable
from epochgate.errors import EpochgateError

COMMANDS = (
    "demo",
    "ingest",
    "unread",
    "files",
    "backlog",
    "compact",
    "status",
    "ui",
    "checkpoints",
    "commits",
    "savepoint",
    "set",
    "control",
    "bench",
    "draw",
    "check",
    "explore",
    "fuzz",
    "validate",
    "certify-sink",
    "class-archive",
    "completion",
)
"""The commands in the order in which help lists them; `epochgate.commands` has the module of each,
with _ for -.
"""

SUCCESS, NEGATIVE, MISUSE, INTERRUPTED, NO_READER = 0, 1, 2, 130, 141

DESCRIPTION = """\
Exactly-once coordination for Spark jobs. Its state machines are declared once: the
rows that run in production are the rows that are model checked and drawn."""

EPILOG = """\
examples:
  epochgate ingest landing table     copy the rows of files into Parquet, each once
  epochgate status table             show the state of that job, running or ended
  epochgate check                    model check the protocol

`epochgate COMMAND --help` explains a command and shows examples.
Exit codes: 0 success, 1 a negative result or a job that failed, 2 misuse."""


class Command(Protocol):
    """The parts of a module under `epochgate.commands`."""

    HELP: str
    """One line about it, for the list of commands."""
    DESCRIPTION: str
    EPILOG: str
    """Examples, and exit codes."""

    def declare(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Do the work and return the exit code; raises EpochgateError for what the user can
        mend.
        """
        ...


def command(name: str) -> Command:
    """Return the module of one command."""
    return cast(Command, import_module(f"epochgate.commands.{name.replace('-', '_')}"))


class Parser(argparse.ArgumentParser):
    """Refuses what it does not know itself, below its own usage and beside the nearest name."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the arguments; there is nothing that another parser might know."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            options = [one for one in self._option_string_actions if one.startswith("--")]
            meant = _meant(unknown[0].partition("=")[0], options)
            super().error(f"unrecognized arguments: {' '.join(unknown)}{meant}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """End with the message, and for a choice that there is not with the nearest."""
        found = re.search(r"invalid choice: '(.*)' \(choose from (.*)\)", message)
        super().error(
            message + (_meant(found[1], re.findall(r"[\w-]+", found[2])) if found else "")
        )


def _meant(given: str, known: Sequence[str]) -> str:
    near = get_close_matches(given, known, 1)
    return f"; did you mean {near[0]}?" if near else ""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    top = Parser(
        prog="epochgate",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"epochgate {__version__}")
    subparsers = top.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name in COMMANDS:
        try:
            module = command(name)
        except proving.ProvingKitMissing:
            subparsers.add_parser(name, help=f"part of {proving.DISTRIBUTION}, not installed")
            continue
        module.declare(
            subparsers.add_parser(
                name,
                help=module.HELP,
                description=module.DESCRIPTION,
                epilog=module.EPILOG,
                formatter_class=argparse.RawDescriptionHelpFormatter,
            )
        )
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line, `sys.argv` when `argv` is None, and return its exit code."""
    given = sys.argv[1:] if argv is None else argv
    if given and given[0] in proving.COMMANDS:
        try:
            command(given[0])
        except proving.ProvingKitMissing:
            missing = proving.ProvingKitMissing("this command")
            print(f"epochgate {given[0]}: {missing}", file=sys.stderr)
            return missing.exit_code
    top = parser()
    for one in given:
        if not _is_text(one):
            told = f"epochgate: argument {printable(one)} has bytes that are no UTF-8; rename it"
            print(told, file=sys.stderr)
            return MISUSE
    arguments = _parsed(top, given)
    if isinstance(arguments, int):
        return arguments
    if arguments.command is None:
        top.print_help(sys.stderr)
        return MISUSE
    try:
        return command(arguments.command).run(arguments)
    except EpochgateError as error:
        told = printable(str(error), keep="\n\t")
        print(f"epochgate {arguments.command}: {told}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print(f"epochgate {arguments.command}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has left, as `head` does; Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NO_READER


def _parsed(top: argparse.ArgumentParser, given: Sequence[str]) -> argparse.Namespace | int:
    """The arguments, or the exit code of a command line that asks for no more, or is wrong."""
    try:
        return top.parse_args(_expanded(given))
    except SystemExit as exit:  # argparse has printed its message, or the help asked for
        return int(exit.code or SUCCESS)
    except EpochgateError as error:
        told = printable(str(error), keep="\n\t")
        print(f"epochgate {given[0]}: {told}", file=sys.stderr)
        return error.exit_code


def _expanded(given: Sequence[str]) -> list[str]:
    """With what a file of options says, where the command reads one."""
    if not given or given[0] not in COMMANDS:
        return list(given)
    expand = getattr(command(given[0]), "expand", None)
    return list(given) if expand is None else [given[0], *expand(given[1:])]


def _is_text(argument: str) -> bool:
    """Return whether it can be written down: Python keeps bytes that are no UTF-8 as surrogates."""
    return not any("\udc80" <= one <= "\udcff" for one in argument)
