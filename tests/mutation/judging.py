"""Judges the mutants of every kind, of all machines or of those that are named, and makes
docs/mutants.md of the verdicts.

    python -m tests.mutation.judging [MACHINE...]    judge what has no verdict, and make the page
    python -m tests.mutation.judging --lies [MACHINE...]    only the arguments that are told wrong
    python -m tests.mutation.judging --table         make the page of the verdicts that are kept

A mutant is found by a scenario, by a claim of the closed systems that its machine is part of, or by
a test of its machine; a wrong argument by a claim alone. A change that only alters how many states
there are is found by none. What is quick goes first: scenarios, the first states, tests; the
closed systems are searched as a whole for what is left.
Before all of it, what found a mutant when it was judged last is asked again.
What survives needs a reason in `reasons` or `excused`. A run that is cut goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache

from epochgate.fsm.errors import DeclarationError
from tests.mutation.by_test import TESTS, failures
from tests.mutation.checking import (
    Found,
    claimed,
    claimed_soon,
    require_declared,
    systems_around,
)
from tests.mutation.every import every_of
from tests.mutation.excused import EXCUSED
from tests.mutation.homes import HOMES
from tests.mutation.lies import lies, lies_of, reason_for as reason_for_lie
from tests.mutation.mutants import AnyMutant
from tests.mutation.page import PAGE, page
from tests.mutation.reasons import EQUIVALENT, UNSEEN_BY_THE_RUNTIME
from tests.mutation.running import OF_NO_SCENARIO, told_otherwise
from tests.mutation.verdicts import (
    NOT_ASKED,
    NOWHERE,
    OF_CHECKER,
    OF_SCENARIO,
    OF_TEST,
    REFUSED,
    SURVIVES,
    UNSEARCHED,
    UNTESTED,
    UNTRIED,
    Verdicts,
)

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
    """Give every mutant of a machine, or every lie alone, a verdict, and keep it.

    Raises DeclarationError if a system around the machine cannot be compiled as it stands.
    """
    require_declared(HOMES[machine], machine)
    verdicts = Verdicts.kept(machine)
    every = lies_of(machine) if are_lies else every_of(machine)
    _each(verdicts, every, "", lambda each: by_earlier(each, verdicts) or by_what_is_quick(each))
    for asked, survived in ((UNTRIED, UNSEARCHED), (UNTESTED, SURVIVES)):
        left = [mutant for mutant in every if verdicts.of[mutant.name] == asked]
        for start in range(0, len(left), BATCH):
            verdicts.of |= by_tests(left[start : start + BATCH], survived)
            verdicts.keep()
    _each(verdicts, every, UNSEARCHED, by_search)
    return verdicts


def _each(
    verdicts: Verdicts,
    every: Sequence[AnyMutant],
    asked: str,
    verdict_on: Callable[[AnyMutant], str],
) -> None:
    """Judge those of one verdict, or without any, and keep what there is every now and then."""
    kept_s = time.monotonic()
    for mutant in every:
        if verdicts.of.get(mutant.name, "") == asked:
            verdicts.of[mutant.name] = verdict_on(mutant)
            if time.monotonic() > kept_s + SAVED_EACH_S:
                verdicts.keep()
                kept_s = time.monotonic()
    verdicts.keep()


def by_earlier(mutant: AnyMutant, verdicts: Verdicts) -> str:
    """Return what has found it before, if it finds it again; that it has survived so far if it did;
    or else empty.
    """
    earlier = verdicts.earlier.get(mutant.name, "")
    if mutant.refusal:
        return REFUSED
    if earlier == SURVIVES and mutant.affected:
        return UNTRIED
    if earlier.startswith(OF_SCENARIO) and told_otherwise(
        mutant, earlier.removeprefix(OF_SCENARIO)
    ):
        return earlier
    if not earlier.startswith(OF_CHECKER):
        return ""
    try:
        found = claimed(mutant, earlier.removeprefix(OF_CHECKER).partition(": ")[0])
    except DeclarationError:
        return REFUSED
    return "" if found is None else _told(found)


def by_what_is_quick(mutant: AnyMutant) -> str:
    """A scenario, or a claim that fails in the first states, or why none is needed."""
    if mutant.refusal:
        return REFUSED
    if not mutant.affected:
        return NOWHERE
    if reason_for_lie(mutant.name):
        return NOT_ASKED
    if seen := by_scenario(mutant):
        return seen
    try:
        found = claimed_soon(mutant)
    except DeclarationError:
        return REFUSED
    return UNTRIED if found is None else _told(found)


@cache
def by_scenario(mutant: AnyMutant) -> str:
    """The scenario that comes out otherwise; empty if none does, or if a claim is wanted."""
    if mutant.home.system in OF_NO_SCENARIO or mutant.name in lies():
        return ""
    seen = told_otherwise(mutant)
    return f"{OF_SCENARIO}{seen.account.partition(':')[0]}" if seen else ""


def by_tests(mutants: list[AnyMutant], survived: str) -> dict[str, str]:
    """Mutant -> the scenario or the test that fails with it, or `survived`, as a lie does."""
    verdicts = {each.name: by_scenario(each) or survived for each in mutants}
    left = [name for name in verdicts if verdicts[name] == survived and name not in lies()]
    tests = TESTS[HOMES[mutants[0].machine].system]
    if left and tests:
        for name, failed in failures(tests, left, is_once=True).items():
            if failed:
                verdicts[name] = f"{OF_TEST}{next(iter(failed))}"
    return verdicts


def by_search(mutant: AnyMutant) -> str:
    """The claim that fails somewhere in the closed systems, or SURVIVES."""
    found = claimed(mutant)
    return SURVIVES if found is None else _told(found)


def _told(found: Found) -> str:
    return f"{OF_CHECKER}{found.where}: {found.what}"


def surprises(verdicts: Verdicts) -> Iterator[str]:
    """Return what survives without a reason, and the reasons that are not needed."""
    for name, verdict in verdicts.of.items():
        if verdict == SURVIVES and not reason_for(name):
            yield f"survives without a reason: {name}"
        if verdict.startswith(OF_TEST) and name in lies() and not reason_for(name):
            yield f"{UNTESTED} ({verdict}): {name}"
        if verdict not in (SURVIVES, UNTRIED, UNSEARCHED, UNTESTED) and name in EXCUSED:
            yield f"has a reason that is not needed ({verdict}): {name}"


def reason_for(name: str) -> str:
    """Return why a mutant may survive; empty if no list says so. What neither side finds, or the
    runtime does not, is in the lists of those that both have to find.
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
