"""`epochgate explore`: goes through the states of a closed system by hand."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from epochgate.commands.check_options import declare_constants
from epochgate.errors import UsageError
from epochgate.exit_codes import codes_of

if TYPE_CHECKING:
    from epochgate.exploring.links import View
    from epochgate.fsm.checker.exploring import Explorer
    from epochgate.pages.serving import Answer, Request

HELP = "go through the states of a system by hand, in the browser or the terminal"
DESCRIPTION = """\
Show a state of a closed system by the names of its machines and fields, each step
that is possible there and what it would change, and take one: the rows that run
jobs and that `epochgate check` compiles. Go back and forward, to the
counterexample of a claim, or to a state in which a condition holds. Each place
has a link. The pages are answered on this machine alone, at a loopback address."""

EPILOG = f"""\
examples:
  epochgate explore reference                    a page at http://127.0.0.1:7357/
  epochgate explore my_package.door:House --set visitors=3
  epochgate explore my_package.door:House --load check.json
                                                 a counterexample of `check --json`
  epochgate explore reference --terminal         without a browser
  epochgate explore --trace traces               what jobs have written (`--journal`)

A condition is an expression, as a claim's method may return one:
  visitor[0].state == "inside" and not door.is_locked

{codes_of("explore")}"""

PORT = 7357


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add = parser.add_argument
    add(
        "system",
        nargs="?",
        metavar="SYSTEM",
        help="a name that `check --list` shows, or module:Class",
    )
    add(
        "--trace",
        metavar="TRACE",
        help="go through what jobs have written instead: a file, or a directory with all below it",
    )
    declare_constants(parser)
    add(
        "--load",
        type=Path,
        metavar="FILE",
        help="begin with the counterexample of `check --json FILE`, or with the names of steps",
    )
    add("--terminal", action="store_true", help="read commands from stdin instead")
    add(
        "--port",
        type=int,
        default=PORT,
        metavar="PORT",
        help=f"port of the pages (default: {PORT}); 0 takes any free one",
    )
    add(
        "--max-seconds",
        type=float,
        default=20.0,
        metavar="S",
        help="end a search for a state after S seconds (default: 20)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Explore until the user ends it."""
    from epochgate.commands.check import found
    from epochgate.exploring.links import View
    from epochgate.exploring.loading import loaded
    from epochgate.fsm.checker.exploring import Explorer

    if not arguments.max_seconds > 0:
        raise UsageError(f"--max-seconds {arguments.max_seconds:g}: a search takes some time")
    if (arguments.system is None) == (arguments.trace is None):
        raise UsageError("name a SYSTEM, or --trace TRACE, and not both")
    if arguments.trace is not None:
        return through_traces(arguments)
    system = found(arguments.system)[0]
    explorer = Explorer(system(**dict(arguments.set)))
    first = View() if arguments.load is None else loaded(arguments.load, explorer)
    if arguments.terminal:
        in_terminal(explorer, arguments.max_seconds, first)
    else:
        in_browser(arguments, explorer, first)
    return 0


def through_traces(arguments: argparse.Namespace) -> int:
    """Go through the traces of jobs; raises UsageError."""
    from epochgate.console import say
    from epochgate.exploring.traces import TraceSite, in_terminal as traced
    from epochgate.runtime.tracing.stepping import steppers

    if arguments.set or arguments.load:
        raise UsageError("--set and --load are about a system; leave them out with --trace")
    try:
        traces = steppers([arguments.trace])
    except OSError as error:
        raise UsageError(f"cannot read {arguments.trace}: {error}") from error
    if not arguments.terminal:
        serve(TraceSite(traces).answer, arguments.trace, arguments.port)
        return 0
    if len(traces) > 1:
        names = ", ".join(one.name for one in traces)
        raise UsageError(f"the terminal shows one trace, and there are {names}; name its file")
    for line in traced(traces[0], _lines()):
        say([line])
    return 0


def in_terminal(explorer: Explorer, max_seconds: float, first: View) -> None:
    """Answer commands until the end of stdin."""
    from epochgate.console import printable
    from epochgate.exploring.terminal import Terminal

    for line in Terminal(explorer, max_seconds, first).told(_lines()):
        print(printable(line))


def _lines() -> Iterator[str]:
    """Each line of stdin; of a terminal, after a prompt."""
    while True:
        try:
            yield input("> " if sys.stdin.isatty() else "")
        except EOFError:
            return


def in_browser(arguments: argparse.Namespace, explorer: Explorer, first: View) -> None:
    """Answer pages until the user interrupts it."""
    from epochgate.exploring.site import Site

    site = Site(arguments.system, explorer, arguments.max_seconds, first)
    serve(site.answer, arguments.system, arguments.port)


def serve(answer: Callable[[Request], Answer], name: str, port: int) -> None:
    """Answer pages until the user interrupts it."""
    from epochgate.pages.serving import Server

    server = Server(answer, port=port)
    print(f"exploring {name} at {server.url} (Ctrl-C ends it)", flush=True)
    server.run_until_interrupted()
