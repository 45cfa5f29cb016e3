"""`epochgate draw`: diagrams and transition tables of machines, and whether they are fresh."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from epochgate.commands.named_class import named_class
from epochgate.errors import UsageError
from epochgate.exit_codes import codes_of

if TYPE_CHECKING:
    from epochgate.diagrams.collection import Collection
    from epochgate.fsm import Machine, System

FORMATS = ("svg", "png", "dot", "mermaid", "table")
OUTPUT = Path("diagrams/generated")


class UnknownMachine(UsageError):
    """The name to draw is neither in the catalogue nor a machine or a system in a module."""


HELP = "draw the state machines: diagrams and transition tables"
DESCRIPTION = "Draw state machines as diagrams and transition tables, from their rows."
EPILOG = f"""\
examples:
  epochgate draw                          all machines, all formats, into diagrams/generated
  epochgate draw gateway -o shown         one machine, into the folder shown
  epochgate draw my_package.door:Door -o shown --format svg,table
                                          a machine of your own
  epochgate draw my_package.order:machine -o shown
                                          one of transitions or python-statemachine
  epochgate draw my_package.door:Airlock -o shown
                                          a system: its machines, and which triggers which
  epochgate draw --check                  whether the committed set is fresh (exit code 1 if not)
  epochgate draw --list                   the machines that epochgate is made of

{codes_of("draw")}"""


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument(
        "machines",
        nargs="*",
        metavar="MACHINE",
        help="a name that --list shows, or module:Class of a machine or a system; all of "
        "epochgate's when none is given",
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
    """Draw, check or list; returns 1 when --check finds something that is not fresh."""
    from epochgate.diagrams.collection import Collection
    from epochgate.models import MACHINES, RUNNING

    if arguments.list:
        for name, machine in MACHINES.items():
            counts = f"{len(machine.STATES)} states, {len(machine.triggers())} triggers"
            print(f"{name:<12} {counts}, {len(machine.ROWS)} rows")
        return 0
    is_whole = not arguments.machines and arguments.format == FORMATS
    machines, systems = chosen(arguments.machines) if arguments.machines else (MACHINES, [])
    systems = [*RUNNING] if is_whole else systems
    collection = Collection(machines, systems, arguments.format)
    if arguments.check:
        return check(collection, arguments)
    changed = collection.write(arguments.output)
    print(f"{len(collection.names)} files in {arguments.output}, {changed} of them changed")
    return 0


def check(collection: Collection, arguments: argparse.Namespace) -> int:
    """Say what is not fresh, and what to run."""
    found = collection.freshness(arguments.output)
    if found:
        print(f"{len(collection.names)} files in {arguments.output} are fresh")
        return 0
    for what, names in (
        ("missing", found.missing),
        ("stale", found.stale),
        ("orphan", found.orphans),
    ):
        for name in names:
            print(f"{what}: {arguments.output / name}")
    machines = "".join(f" {name}" for name in arguments.machines)
    output = "" if arguments.output == OUTPUT else f" --output {arguments.output}"
    format = "" if arguments.format == FORMATS else f" --format {','.join(arguments.format)}"
    if found.missing or found.stale:
        print(f"run: epochgate draw{machines}{output}{format}", file=sys.stderr)
    if found.orphans:
        paths = " ".join(str(arguments.output / name) for name in found.orphans)
        print(f"run: rm {paths}", file=sys.stderr)
    return 1


def chosen(names: Sequence[str]) -> tuple[dict[str, type[Machine]], list[type[System]]]:
    """Return the machines that the names mean, and the systems among what they name.

    Raises UnknownMachine.
    """
    from epochgate.fsm import System
    from epochgate.models import MACHINES

    found: dict[str, type[Machine]] = {}
    systems: list[type[System]] = []
    for name in names:
        if ":" not in name and name not in MACHINES:
            raise UnknownMachine(
                f"there is no machine {name!r}; choose from {', '.join(MACHINES)}, "
                f"or name a machine or a system of your own as module:Class"
            )
        named = MACHINES[name] if name in MACHINES else imported(name)
        if issubclass(named, System):
            systems.append(named)
            new = dict(named.MACHINES)
        else:
            new = {name.partition(":")[2] or name: named}
        if twice := sorted(found.keys() & new.keys()):
            raise UnknownMachine(f"two of the machines are named {twice[0]!r}; draw one at a time")
        found |= new
    return found, systems


def imported(name: str) -> type[Machine] | type[System]:
    """Import a machine or a system named as module:Class. Raises UnknownMachine."""
    from epochgate.fsm import Machine, System
    from epochgate.fsm.existing import read_if_machine

    module_name, attribute, found = named_class(name, UnknownMachine)
    if isinstance(found, type) and issubclass(found, Machine) and found.ROWS:
        return found
    if isinstance(found, type) and issubclass(found, System) and found.MACHINES:
        return found
    read = read_if_machine(found)
    if read is not None:
        return read.machine
    there = vars(sys.modules[module_name])
    named = [
        name
        for name, one in there.items()
        if isinstance(one, type)
        and one.__module__ == module_name
        and ((issubclass(one, Machine) and one.ROWS) or (issubclass(one, System) and one.MACHINES))
    ]
    other = ", nor a machine of transitions or python-statemachine"
    has = f"; it has {', '.join(named)}" if named else other
    raise UnknownMachine(
        f"{attribute!r} in module {module_name!r} is no machine with rows and no system of "
        f"machines{has}"
    )
