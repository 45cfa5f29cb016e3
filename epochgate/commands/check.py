"""`epochgate check`: explores closed systems exhaustively, and says how a claim breaks."""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

from epochgate.commands.check_options import declare, expect_of_one_kind
from epochgate.commands.check_searches import searches
from epochgate.commands.named_class import named_class
from epochgate.errors import UsageError
from epochgate.exit_codes import WORST_FIRST, ExitCode, RunFailed, table

if TYPE_CHECKING:
    from epochgate.commands.check_searches import Search
    from epochgate.fsm.checker import Result
    from epochgate.fsm.closed import ClosedSystem


class UnknownSystem(UsageError):
    """A system to check that is neither in the catalogue nor in a module."""


__all__ = ["DESCRIPTION", "EPILOG", "HELP", "declare", "run"]

HELP = "check the protocols: every interleaving of failures, aborts and late messages"
DESCRIPTION = "Explore closed systems of state machines exhaustively, within their bounds."
EPILOG = """\
examples:
  epochgate check                             every system of the protocol that runs
  epochgate check epochgate --set subtasks=3
                                              one system, at other bounds
  epochgate check live --workers 2 --max-memory 4G --resume search.bin
                                              go on where an earlier run was stopped
  epochgate check reference --set N=3 --spill /scratch/search --max-memory 8G
                                              states on disk, where memory has no room
  epochgate check reference --set E=2 --master spark://host:7077 --resume /shared/search
                                              on Spark, where one machine has no room
  epochgate check my_package.door:House       a system of your own
  epochgate check residing --inductive leaves --set attempts=1000000 --set F=1000000
                                              beyond what a search reaches: by induction
  epochgate check live --simulate 100000000 --workers 2
                                              and by random walks
  epochgate check my_package.order:machine    a machine of transitions or python-statemachine
                                              (docs/existing-machines.md)
  epochgate check --junit check.xml --sarif check.sarif --html check.html
                                              everything, as files for CI and for people
  epochgate check --list                      which systems there are
  epochgate check --list live                 the constants of one, which --set changes

Of several systems the worst decides the exit code:
""" + table()


def run(arguments: argparse.Namespace) -> int:
    """Check the systems named, and return the exit code of the worst verdict."""
    if arguments.list:
        return listing(arguments.systems)
    from epochgate.fsm.checker.report import untaken_states
    from epochgate.models.closed.untaken import NOT_FROM

    chosen = systems(arguments.systems)
    expect_of_one_kind(arguments)
    if len(chosen) > 1 and arguments.inductive is not None:
        raise UsageError("--inductive names claims of one system; name it")
    if len(chosen) > 1 and (arguments.set or arguments.resume or arguments.spill):
        raise UsageError("--set, --resume and --spill are about one system; name it")
    if len(chosen) > 1 and arguments.mermaid is not None and arguments.mermaid.suffix != ".md":
        raise UsageError(
            f"--mermaid {arguments.mermaid} has room for one diagram and {len(chosen)} systems are "
            f"checked; name one, or write to a file that ends in .md"
        )
    with searches(arguments, chosen.values()) as search:
        results, is_carried_through = run_all(chosen, arguments, search)
    told = untaken_states(results.values(), NOT_FROM.keys())
    if told:
        told.insert(0, "taken, but not from each of their states:")
        print("\n  ".join(told), file=_stream(arguments))
    codes = [ExitCode(result.exit_code) for result in results.values()]
    if not is_carried_through:
        codes.append(ExitCode.RUN_FAILED)
    try:
        write(results, chosen, arguments)
    except OSError as error:
        print(f"epochgate check: a report cannot be written: {error}", file=sys.stderr)
        codes.append(ExitCode.RUN_FAILED)
    return min(codes, key=WORST_FIRST.index)


def run_all(
    chosen: dict[str, type[ClosedSystem]], arguments: argparse.Namespace, search: Search
) -> tuple[dict[str, Result], bool]:
    """Check each system; and tell whether none of the runs failed. Raises UsageError."""
    results, is_carried_through = {}, True
    for name, system in chosen.items():
        try:
            results[name] = checked(name, system, arguments, search)
        except UsageError:
            raise
        except Exception as error:  # noqa: BLE001  # the run has failed; the next system is checked
            is_carried_through = False
            if not isinstance(error, RunFailed | MemoryError | OSError):
                traceback.print_exc()
            told = str(error) or type(error).__name__
            if isinstance(error, MemoryError):
                told = "there is no memory left; set --max-memory"
            print(f"epochgate check: {name}: {told}", file=sys.stderr)
    return results, is_carried_through


def write(
    results: dict[str, Result],
    chosen: dict[str, type[ClosedSystem]],
    arguments: argparse.Namespace,
) -> None:
    """Write everything that was asked for; raises OSError."""
    if arguments.json is not None:
        found = [result.to_json() for result in results.values()]
        text = json.dumps(found[0] if len(found) == 1 else found, indent=2)
        if str(arguments.json) == "-":
            print(text)
        else:
            arguments.json.write_text(text + "\n", encoding="utf-8")
    write_reports(results, arguments)
    if arguments.pytest is not None:
        write_tests(results, chosen, arguments.pytest)


def write_reports(results: dict[str, Result], arguments: argparse.Namespace) -> None:
    """Write the files that were asked for."""
    from epochgate import reports

    if arguments.junit is not None:
        arguments.junit.write_text(reports.junit_xml(results), encoding="utf-8")
    if arguments.sarif is not None:
        arguments.sarif.write_text(reports.sarif_json(results), encoding="utf-8")
    if arguments.html is not None:
        arguments.html.write_text(reports.html_page(results), encoding="utf-8")
    if arguments.mermaid is not None:
        if arguments.mermaid.suffix == ".md":
            text = reports.sequence_diagrams(results)
        else:
            ((name, result),) = results.items()
            text = reports.sequence_diagram(name, result)
        arguments.mermaid.write_text(text, encoding="utf-8")


def write_tests(
    results: dict[str, Result], systems: dict[str, type[ClosedSystem]], path: Path
) -> None:
    """Write a pytest file, if there is anything for it to play."""
    from epochgate.reports import pytest_module

    text = pytest_module(results, systems, path.parent)
    if text:
        path.write_text(text, encoding="utf-8")
    else:
        print(f"no counterexample was found: {path} is not written", file=sys.stderr)


def checked(
    name: str, system: type[ClosedSystem], arguments: argparse.Namespace, search: Search
) -> Result:
    """Check one system and print what was found."""
    from epochgate.commands.check_progress import Watch
    from epochgate.fsm.checker.report import report

    constants: dict[str, int] = dict(arguments.set)
    with Watch(name) as watch:
        result = search(system(**constants), watch.show)
    print(report(name, result), file=_stream(arguments))
    return result


def _stream(arguments: argparse.Namespace) -> TextIO:
    """Return the stream of a report: beside the results, where they are written to stdout."""
    return sys.stderr if str(arguments.json) == "-" else sys.stdout


def listing(names: list[str]) -> int:
    """Print all systems with what they are about, or the constants of those that are named."""
    for name in names:
        list_constants(name)
    if names:
        return 0
    from epochgate.models.closed.catalogue import SYSTEMS

    list_systems("Systems of epochgate, which `epochgate check` explores:", SYSTEMS.summaries)
    from epochgate.models.studies.catalogue import CASES, PROOFS, STUDIES

    list_systems("Studies, explored where they are named:", STUDIES.summaries)
    list_systems("Of any size, for --inductive all:", PROOFS.summaries)
    title = "Public bugs of other projects, mended and broken (docs/cases):"
    list_systems(title, CASES.summaries)
    print("`epochgate check --list SYSTEM` shows the constants of a system, which --set changes.")
    return 0


def list_systems(title: str, summaries: Mapping[str, str]) -> None:
    """Print each system with its summary, and import none."""
    print(title)
    for name, summary in summaries.items():
        # A long name has a line of its own.
        print(f"  {name:13}" if len(name) < 14 else f"  {name}\n{'':15}", end=" ")
        print(summary)
    print()


def list_constants(name: str) -> None:
    """Print what a system is about, and each of its constants with its value and meaning."""
    system, meanings = found(name)
    print(f"{name}: {(system.__doc__ or '').partition(chr(10))[0]}")
    for constant, value in system.CONSTANTS.items():
        if constant not in system.DERIVED:
            print(f"  {constant:20} {value:3}  {meanings.get(constant, '')}".rstrip())


Named = tuple["Mapping[str, type[ClosedSystem]]", "Mapping[str, str]"]
"""Systems by their names, and the meanings of their constants."""


def catalogues() -> Iterator[Named]:
    """Yield the systems that run, then studies and cases, then the variants that must fail."""
    from epochgate.models.closed.catalogue import CONSTANTS, SYSTEMS

    yield SYSTEMS, CONSTANTS
    from epochgate.models.studies.catalogue import (
        CASES,
        CONSTANTS as OF_STUDIES,
        CONSTANTS_OF_CASES as OF_CASES,
        PROOFS,
        STUDIES,
    )

    yield STUDIES, OF_STUDIES
    yield PROOFS, OF_STUDIES
    yield CASES, OF_CASES
    from epochgate.models.studies.broken.catalogue import BROKEN

    variants = {name: variant.system for name, variant in BROKEN.items()}
    yield variants, {**OF_CASES, **OF_STUDIES, **CONSTANTS}


def found(name: str) -> tuple[type[ClosedSystem], Mapping[str, str]]:
    """Return the system of a name, and what constants mean; no other is imported.

    Raises UnknownSystem.
    """
    if ":" in name:
        return imported(name), {}
    for named, meanings in catalogues():
        if name in named:
            return named[name], meanings
    known = [one for named, _ in islice(catalogues(), 4) for one in named]
    raise UnknownSystem(
        f"there is no system {name!r}; choose from {', '.join(known)}, "
        f"or name one of your own as module:Class; "
        f"the variants that must fail are in models/studies/broken/catalogue.py"
    )


def systems(names: list[str]) -> dict[str, type[ClosedSystem]]:
    """Return the systems that the names mean, all of epochgate's when there are none.

    Raises UnknownSystem.
    """
    from epochgate.models.closed.catalogue import SYSTEMS

    return {name: found(name)[0] for name in names} if names else dict(SYSTEMS)


def imported(name: str) -> type[ClosedSystem]:
    """Import a system named as module:Class, or read a machine; what else the module declares
    wrongly is told beside it.

    Raises UnknownSystem, and DeclarationError with all that is wrong in the module.
    """
    from epochgate.fsm.closed import ClosedSystem
    from epochgate.fsm.errors import DeclarationError
    from epochgate.fsm.existing import read_if_machine
    from epochgate.fsm.faults import deferred, faults_of

    with deferred() as refused:
        module_name, attribute, system = named_class(name, UnknownSystem)
    is_closed = isinstance(system, type) and issubclass(system, ClosedSystem)
    if faults := faults_of(refused):
        if system in refused or not is_closed:
            raise DeclarationError("\n".join(faults), faults=tuple(faults))
        told = "\n  ".join(faults)
        print(f"epochgate check: beside {attribute} this is refused:\n  {told}", file=sys.stderr)
    if is_closed and system.STEPS:
        return cast("type[ClosedSystem]", system)
    read = read_if_machine(system)
    if read is None:
        raise UnknownSystem(
            f"{attribute!r} in module {module_name!r} is no closed system, and no machine of "
            f"transitions or python-statemachine; name a machine, or an object that has one as an "
            f"attribute"
        )
    return read.system
