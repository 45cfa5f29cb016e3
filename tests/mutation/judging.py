"""Judges the mutants of every kind, of all machines or of those that are named, and makes
docs/mutants.md of the verdicts.

    python -m tests.mutation.judging [MACHINE...]    judge what has no verdict, and make the page
    python -m tests.mutation.judging --lies [MACHINE...]    only the arguments that are told wrong
    python -m tests.mutation.judging --table         make the page of the verdicts that are kept

A mutant is found by a claim of the closed systems that its machine is part of, or by a scenario or
a test of its machine. A change that only alters how many states there are is found by neither.
What survives needs a reason in `reasons` or `excused`. A run that is cut goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator

from epochgate.fsm.errors import DeclarationError
from tests.mutation.by_test import TESTS, failures
from tests.mutation.checking import claimed, systems_around
from tests.mutation.every import every_of
from tests.mutation.excused import EXCUSED
from tests.mutation.homes import HOMES
from tests.mutation.lies import lies, lies_of, reason_for as reason_for_lie
from tests.mutation.mutants import AnyMutant
from tests.mutation.page import PAGE, page
from tests.mutation.reasons import EQUIVALENT, UNSEEN_BY_THE_RUNTIME
from tests.mutation.running import OF_NO_SCENARIO, told_otherwise
from tests.mutation.verdicts import NOT_ASKED, NOWHERE, REFUSED, SURVIVES, UNTESTED, Verdicts

BATCH = 60
"""How many mutants go through the tests in one process."""
SAVED_EACH_S = 10


def smallest_first() -> list[str]:
    """The machines in the order of the sizes of what they are checked in."""
    alone = [name for name in HOMES if HOMES[name].system in OF_NO_SCENARIO]
    return sorted(
        HOMES, key=lambda name: (name not in alone, len(systems_around(HOMES[name].system, name)))
    )


def judge(machine: str, are_lies: bool = False) -> Verdicts:
    """Give every mutant of a machine, or every lie alone, a verdict, and keep it."""
    verdicts, kept_s = Verdicts.kept(machine), time.monotonic()
    every = lies_of(machine) if are_lies else every_of(machine)
    for mutant in every:
        if mutant.name not in verdicts.of:
            verdicts.of[mutant.name] = by_checker(mutant)
            if time.monotonic() > kept_s + SAVED_EACH_S:
                verdicts.keep()
                kept_s = time.monotonic()
    verdicts.keep()
    left = [each for each in every if verdicts.of[each.name] == UNTESTED]
    for start in range(0, len(left), BATCH):
        verdicts.of |= by_tests(left[start : start + BATCH])
        verdicts.keep()
    return verdicts


def by_checker(mutant: AnyMutant) -> str:
    """The claim that a mutant breaks, or why none is needed; UNTESTED if it breaks none."""
    if mutant.refusal:
        return REFUSED
    if not mutant.affected:
        return NOWHERE
    if reason_for_lie(mutant.name):
        return NOT_ASKED
    try:
        found = claimed(mutant)
    except DeclarationError:
        return REFUSED
    return UNTESTED if found is None else f"checker: {found.where}: {found.what}"


def by_tests(mutants: list[AnyMutant]) -> dict[str, str]:
    """Mutant -> the scenario or the test that fails with it, or SURVIVES."""
    verdicts = dict(_by_scenario(mutants))
    left = [mutant.name for mutant in mutants if mutant.name not in verdicts]
    tests = TESTS[HOMES[mutants[0].machine].system]
    if left and tests:
        for name, failed in failures(tests, left, is_once=True).items():
            verdicts[name] = f"test: {next(iter(failed))}" if failed else SURVIVES
    return verdicts


def _by_scenario(mutants: list[AnyMutant]) -> Iterator[tuple[str, str]]:
    for mutant in mutants:
        if mutant.home.system not in OF_NO_SCENARIO and (seen := told_otherwise(mutant)):
            yield mutant.name, f"test: scenario {seen.account.partition(':')[0]}"


def surprises(verdicts: Verdicts) -> Iterator[str]:
    """What survives without a reason, and the reasons that are not needed."""
    for name, verdict in verdicts.of.items():
        if verdict == SURVIVES and not reason_for(name):
            yield f"survives without a reason: {name}"
        if verdict.startswith("test") and name in lies() and not reason_for(name):
            yield f"{UNTESTED} ({verdict}): {name}"
        if verdict != SURVIVES and name in EXCUSED:
            yield f"has a reason that is not needed ({verdict}): {name}"


def reason_for(name: str) -> str:
    """Why a mutant may survive; empty if no list says so. What neither side finds, or the runtime
    does not, is in the lists of those that both have to find.
    """
    lists = (EXCUSED, EQUIVALENT, UNSEEN_BY_THE_RUNTIME)
    return next((reasons[name] for reasons in lists if name in reasons), reason_for_lie(name))


def main() -> None:
    """Judge, machine by machine, and make the page after each."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation.judging")
    parser.add_argument("machines", nargs="*", metavar="MACHINE", help="all if none is named")
    parser.add_argument("--table", action="store_true", help="make the page alone")
    parser.add_argument("--lies", action="store_true", help="judge wrong arguments alone")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.machines if name not in HOMES]:
        parser.error(f"there is no machine {unknown}; there are {', '.join(HOMES)}")
    told: list[str] = []
    for machine in [] if arguments.table else arguments.machines or smallest_first():
        found = [*surprises(judge(machine, arguments.lies))]
        told += found
        sys.stdout.write("\n  ".join([f"{machine}: {len(found)} surprises", *found]) + "\n")
        sys.stdout.flush()
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), reason_for), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), reason_for), encoding="utf-8")
    sys.exit(1 if told else 0)


if __name__ == "__main__":
    main()
