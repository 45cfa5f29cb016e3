"""The outcome of a mutant, and whether the reasons say the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from epochgate.fsm.errors import DeclarationError
from epochgate.models.closed import untaken
from epochgate.models.closed.concurrent import ConcurrentAttempts
from tests.mutation.by_test import found_by_tests
from tests.mutation.checking import Found, exercising, first_findings
from tests.mutation.mutants import AnyMutant
from tests.mutation.reasons import (
    EQUIVALENT,
    UNSEEN_BY_THE_CHECKER,
    UNSEEN_BY_THE_RUNTIME,
)
from tests.mutation.running import found_by_the_runtime, played
from tests.mutation.seen import Seen

PRECONDITION = "it only allows what would be an error, and the right machine never comes to that"
LISTS = {
    (False, False): ("EQUIVALENT", EQUIVALENT),
    (False, True): ("UNSEEN_BY_THE_CHECKER", UNSEEN_BY_THE_CHECKER),
    (True, False): ("UNSEEN_BY_THE_RUNTIME", UNSEEN_BY_THE_RUNTIME),
}
"""By whom a mutant is found, checker and runtime -> the list in which the reason has to be."""


COLUMNS = ("mutants", "refused", "by both", "by the checker", "by the runtime", "by neither")


@dataclass(frozen=True)
class Outcome:
    """The finder of a mutant: its declaration, or checker and runtime."""

    mutant: AnyMutant
    refusal: str
    unreached: str
    """Why no closed system comes to where the mutant differs; empty if one does."""
    found: Found | None
    seen: Seen | None

    @property
    def surprise(self) -> str:
        """Return what the reasons do not say; empty if they are right."""
        name = self.mutant.name
        stands = [where for where, reasons in LISTS.values() if name in reasons]
        belongs = [LISTS[self.by_whom][0]] if self.by_whom in LISTS else []
        if stands == belongs:
            return ""
        return f"{name}: is in {stands} and belongs to {belongs}; {self.account}"

    @property
    def column(self) -> str:
        """Return where it counts in the table of all mutants."""
        if self.refusal:
            return "refused"
        by_whom = self.found is not None, self.seen is not None
        columns = {(True, True): "by both", (True, False): "by the checker"}
        return {**columns, (False, True): "by the runtime", (False, False): "by neither"}[by_whom]

    @property
    def by_whom(self) -> tuple[bool, bool]:
        """True if the checker and the runtime have found it, or need not."""
        if self.refusal:
            return True, True
        # Where no closed system gets, the runtime has to find it alone.
        is_found = self.found is not None or bool(self.unreached and self.seen)
        return is_found, self.seen is not None

    @property
    def account(self) -> str:
        """Return who has found what, in a line."""
        if self.refusal:
            return f"declaration: {self.refusal}"
        checker = self.found or self.unreached or "survives"
        return f"checker: {checker}; runtime: {self.seen or 'survives'}"


def judged(mutants: Sequence[AnyMutant]) -> list[Outcome]:
    """Judge mutants one by one; run the tests with those that the runtime has not found before, and
    look for further counterexamples of what is left.
    """
    outcomes = [judge(mutant) for mutant in mutants]
    unseen = [each.mutant for each in outcomes if not each.refusal and each.seen is None]
    seen = found_by_tests(unseen)
    outcomes = [replace(each, seen=each.seen or seen.get(each.mutant.name)) for each in outcomes]
    return [replace(each, seen=each.seen or _seen_elsewhere(each)) for each in outcomes]


def judge(mutant: AnyMutant) -> Outcome:
    """Break one thing, and look who finds it; without the tests, which run with many at once."""
    if refusal := mutant.refusal:
        return Outcome(mutant, refusal, "", None, None)
    unreached = "" if any(exercising(mutant)) else why_unreached(mutant)
    try:
        found = next(first_findings(mutant), None)
        return Outcome(mutant, "", unreached, found, found_by_the_runtime(mutant, found))
    except DeclarationError as error:
        return Outcome(mutant, f"it cannot be compiled: {error}", "", None, None)


def _seen_elsewhere(outcome: Outcome) -> Seen | None:
    """A further system may have a counterexample that shows the runtime a mutant."""
    if outcome.found is None:
        return None
    others = islice(first_findings(outcome.mutant), 1, None)
    return next(filter(None, (played(outcome.mutant, each) for each in others)), None)


def why_unreached(mutant: AnyMutant) -> str:
    """The reasons of the rows that no closed system takes. KeyError for a row without one."""
    if not mutant.affected:
        return PRECONDITION
    names = {f"{machine}.{trigger}: {because}" for machine, trigger, because in mutant.affected}
    excused = {**untaken.NOWHERE, **ConcurrentAttempts.UNTAKEN}
    return "; ".join(sorted({excused[name] for name in names}))
