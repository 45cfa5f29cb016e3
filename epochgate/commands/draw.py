"""`epochgate draw`: diagrams and transition tables of machines, whether they are fresh, what has
changed in them, and which of their rows were taken.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from epochgate.commands.named_class import named_class
from epochgate.errors import UsageError
from epochgate.exit_codes import codes_of

if TYPE_CHECKING:
    from epochgate.diagrams.collection import Collection
    from epochgate.diagrams.description import Description, Painting
    from epochgate.fsm import Machine, System

FORMATS = ("svg", "table", "png", "dot", "mermaid")
DRAWN = ("svg", "table")
OUTPUT = Path("diagrams/generated")
OWN = "epochgate.models:MACHINES"
"""All machines of epochgate, for a child that imports them."""


class UnknownMachine(UsageError):
    """The name to draw is neither in the catalogue nor a machine or a system in a module."""


class NoFolder(UsageError):
    """No folder is named for pictures that are not the usual ones."""


HELP = "draw the state machines: diagrams and transition tables"
DESCRIPTION = "Draw state machines as diagrams and transition tables, from their rows."
EPILOG = f"""\
examples:
  epochgate draw                          all machines, into diagrams/generated
  epochgate draw gateway -o shown         one machine, into the folder shown
  epochgate draw my_package.door:Door -o shown --format svg,table,png
                                          a machine of your own
  epochgate draw my_package.order:machine -o shown
                                          one of transitions or python-statemachine
  epochgate draw my_package.door:Airlock -o shown
                                          a system: its machines, and which triggers which
  epochgate draw --check                  whether the committed set is fresh (exit code 1 if not)
  epochgate draw my_package.door:Door --diff main -o changed
                                          what has changed since main: Markdown, and pictures
  epochgate draw --taken-by traces -o taken
                                          how often each row was taken in these traces
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
        metavar="DIR",
        help=f"the folder to write to (default: {OUTPUT}; with --diff none, with --taken-by it has "
        f"to be named)",
    )
    parser.add_argument(
        "--format",
        type=formats,
        default=DRAWN,
        metavar="LIST",
        help=f"comma-separated: {', '.join(FORMATS)} (default: {','.join(DRAWN)})",
    )
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--check", action="store_true", help="write nothing; name what is stale")
    modes.add_argument("--list", action="store_true", help="list the machines and stop")
    modes.add_argument(
        "--diff",
        metavar="REV",
        help="print as Markdown what has changed since a revision of this git repository, and "
        "nothing if nothing has; with -o also draw the machines that have changed",
    )
    modes.add_argument(
        "--taken-by",
        type=Path,
        action="append",
        metavar="PATH",
        help="paint how often each row was taken: a folder or file of traces, of counts that "
        "`pytest --epochgate-rows` has written, or of results of `epochgate check --json`; may be "
        "given several times",
    )


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
    """Draw, check, compare or list; returns 1 when --check finds something that is not fresh."""
    from epochgate.diagrams.collection import Collection
    from epochgate.diagrams.description import describe
    from epochgate.models import MACHINES, RUNNING, VARIANTS

    if arguments.list:
        for name, machine in MACHINES.items():
            counts = f"{len(machine.STATES)} states, {len(machine.triggers())} triggers"
            print(f"{name:<12} {counts}, {len(machine.ROWS)} rows")
        return 0
    is_whole = not arguments.machines and {*DRAWN} <= {*arguments.format}
    machines, systems = chosen(arguments.machines) if arguments.machines else (MACHINES, [])
    described = describe(machines)
    if arguments.diff is not None:
        return compare(described, arguments)
    paintings = {}
    if arguments.taken_by:
        from epochgate.commands.draw_taken import taken_by
        from epochgate.diagrams.taken import painted

        if arguments.output is None:
            raise NoFolder("--taken-by draws other pictures than usual: name a folder for them, -o")
        sources = taken_by(arguments.taken_by, described.values())
        paintings = {name: painted(one, sources) for name, one in described.items()}
    systems = [*RUNNING, *VARIANTS] if is_whole else systems
    collection = Collection(described, systems, arguments.format, paintings)
    if arguments.check:
        return check(collection, arguments)
    folder = arguments.output or OUTPUT
    changed = collection.write(folder)
    print(f"{len(collection.names)} files in {folder}, {changed} of them changed")
    for line in never_taken(paintings):
        print(line)
    return 0


def never_taken(paintings: Mapping[str, Painting]) -> Iterator[str]:
    """Name each row that nothing took."""
    for name, painting in paintings.items():
        for row, mark in painting.rows.items():
            if mark.paint == "never":
                sources = row.source if isinstance(row.source, str) else ", ".join(row.source)
                yield f"never: {name}.{row.trigger} in {sources} ({row.because})"


def compare(machines: Mapping[str, Description], arguments: argparse.Namespace) -> int:
    """Print what has changed since a revision, and draw it if there is a folder; silent when
    nothing has.
    """
    from epochgate.diagrams.collection import Collection
    from epochgate.diagrams.difference import differences
    from epochgate.diagrams.revision import described_at

    named = dict.fromkeys(name if ":" in name else OWN for name in arguments.machines or [OWN])
    before = described_at(arguments.diff, [*named])
    if arguments.machines and OWN in named:
        from epochgate.models import MACHINES

        before = {n: one for n, one in before.items() if n in machines or n not in MACHINES}
    found = differences(before, machines)
    if not found:
        return 0
    text = f"## Changes of the state machines since {arguments.diff}\n\n"
    text += "\n".join(one.markdown() for one in found)
    print(text, end="")
    if arguments.output is not None:
        pictures = {one.name: one.picture() for one in found}
        collection = Collection(
            {name: merged for name, (merged, _) in pictures.items()},
            formats=arguments.format,
            paintings={name: painting for name, (_, painting) in pictures.items()},
        )
        collection.write(arguments.output)
    return 0


def check(collection: Collection, arguments: argparse.Namespace) -> int:
    """Say what is not fresh, and what to run."""
    folder = arguments.output or OUTPUT
    found = collection.freshness(folder)
    if found:
        print(f"{len(collection.names)} files in {folder} are fresh")
        return 0
    for what, names in (
        ("missing", found.missing),
        ("stale", found.stale),
        ("orphan", found.orphans),
    ):
        for name in names:
            print(f"{what}: {folder / name}")
    machines = "".join(f" {name}" for name in arguments.machines)
    output = "" if folder == OUTPUT else f" --output {folder}"
    format = "" if arguments.format == DRAWN else f" --format {','.join(arguments.format)}"
    if found.missing or found.stale:
        print(f"run: epochgate draw{machines}{output}{format}", file=sys.stderr)
    if found.orphans:
        paths = " ".join(str(folder / name) for name in found.orphans)
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
